package echo_test

import (
	"testing"

	"provegym/gym/packtest"
	"provegym/packs/echo"
)

func TestPack(t *testing.T) { packtest.Run(t, echo.Pack) }

package echo_test

import (
	"testing"

	"provegym/gym/packtest"
	"provegym/packs/echo"
)

func TestPack(t *testing.T) { packtest.Run(t, echo.Pack) }

func TestGolden(t *testing.T) { packtest.Golden(t, echo.Pack) }

func TestNothingLeaks(t *testing.T) {
	for _, problem := range packtest.Watch(echo.Pack, packtest.Options{}, 1200) {
		t.Error(problem)
	}
}

package stats_test

import (
	"fmt"

	"provegym/gym/prove/stats"
)

// One condition of a family of four: of 120 tasks, 24 are passed by the
// checkpoint only and 6 by the base only.
func Example() {
	b, c, n := 24, 6, 120
	family := []float64{stats.McNemarExact(b, c), .20, .64, .91}
	lo, hi := stats.Tango(b, c, n, .05)
	psi0 := float64(b+c+1) / float64(n+2)
	mde, ok := stats.MDEBinary(n, psi0, .05/4, .80)
	fmt.Printf("change %+.1f points, 95 %% interval %+.1f to %+.1f\n", 100*float64(b-c)/float64(n), 100*lo, 100*hi)
	fmt.Printf("Holm p = %.3f\n", stats.Holm(family)[0])
	fmt.Printf("could have detected %.1f points: %v\n", 100*mde, ok)
	// Output:
	// change +15.0 points, 95 % interval +6.5 to +24.0
	// Holm p = 0.006
	// could have detected 21.1 points: true
}

// The same totals whichever way a cluster's samples are counted: halves and
// quarters lie on one lattice.
func ExampleSignFlip() {
	fmt.Println(stats.SignFlip([]int{3, 1, -2, 4, 0, 2, -1, 3}))
	fmt.Println(stats.SignFlip([]int{6, 2, -4, 8, 0, 4, -2, 6}))
	// Output:
	// 0.1875
	// 0.1875
}

//go:build capitest

package main

// The library under test can be made to panic.
func init() {
	methods["test.panic"] = alone(func(in *struct{}) (any, error) {
		var none []int
		return none[len(methods)], nil
	})
}

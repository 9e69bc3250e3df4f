// Package rounds bounds how often tests with random input repeat. It is for tests alone and depends on nothing.
package rounds

// Of returns n, or a quarter of it in a program with the race detector, which makes a round several times as slow and finds nothing in code
// without goroutines. `make test-go` runs such tests in full without the detector.
func Of[T ~int | ~uint64](n T) T {
	if raceDetector {
		return max(n/4, 1)
	}
	return n
}

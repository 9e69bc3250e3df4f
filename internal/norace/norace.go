// Package norace excludes tests from runs with the race detector. It is for tests alone.
package norace

import "testing"

// Only skips t in a program with the race detector, which makes thousands of random worlds several times as slow and finds nothing in code
// without goroutines. `make test-go` runs the packages that call it a second time, without the detector.
func Only(t *testing.T) {
	t.Helper()
	if raceDetector {
		t.Skip("runs without the race detector")
	}
}

// Package norace excludes tests from runs with the race detector. It is for tests alone.
package norace

import "testing"

// Only skips t in a program with the race detector, which makes thousands of random worlds, or a SQLite with 100,000 tickets, several times
// as slow and finds nothing in code without goroutines. `make test-go` runs such tests without the detector.
func Only(t *testing.T) {
	t.Helper()
	if raceDetector {
		t.Skip("runs without the race detector")
	}
}

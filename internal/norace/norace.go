// Package norace excludes tests from runs with the race detector. It is for tests alone.
package norace

import "testing"

// SkipUnderRace skips t in a program that is built with the race detector. The detector makes thousands of random worlds, or lists of
// 100,000 tickets, several times slower, and finds nothing in code without goroutines. `make test-go` runs such tests.
func SkipUnderRace(t *testing.T) {
	t.Helper()
	if raceDetector {
		t.Skip("runs without the race detector")
	}
}

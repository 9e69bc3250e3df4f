// Package eventually lets a test wait for a condition that another goroutine or program brings about.
package eventually

import (
	"errors"
	"testing"
	"time"
)

const (
	// timeout is long, because tests of several packages share the processors. A test that passes does not wait for it.
	timeout  = 2 * time.Minute
	interval = 20 * time.Millisecond
)

var errNotYet = errors.New("it is not")

// True calls ok every 20 ms until it returns true, and fails the test after two minutes. what says what is waited for, such as "the portal is ready".
func True(t testing.TB, what string, ok func() bool) {
	t.Helper()
	NilWithin(t, timeout, what, func() error {
		if ok() {
			return nil
		}
		return errNotYet
	})
}

// NilWithin calls check every 20 ms until it returns nil, and fails the test with its last error after a time. Check is called at least once.
func NilWithin(t testing.TB, most time.Duration, what string, check func() error) {
	t.Helper()
	for end := time.Now().Add(most); ; time.Sleep(interval) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("timed out after %s waiting until %s: %v", most, what, err)
		}
	}
}

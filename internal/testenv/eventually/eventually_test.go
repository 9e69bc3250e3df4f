package eventually

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// recorder records with which text a test failed.
type recorder struct {
	testing.TB
	text string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) {
	r.text = fmt.Sprintf(format, args...)
	panic(r)
}

func failure(f func(testing.TB)) string {
	var r recorder
	func() {
		defer func() { _ = recover() }() // Fatalf ends f
		f(&r)
	}()
	return r.text
}

func TestEventually(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		if text := failure(func(t testing.TB) { True(t, "it is late", func() bool { return time.Since(begin) > time.Second }) }); text != "" {
			t.Errorf("it became true: %s", text)
		}
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("it returned after %s", took)
		}
		text := failure(func(t testing.TB) { True(t, "the portal is ready", func() bool { return false }) })
		if text != "timed out after 2m0s waiting until the portal is ready: it is not" {
			t.Error(text)
		}
		calls := 0
		text = failure(func(t testing.TB) {
			NilWithin(t, 0, "x", func() error { calls++; return errors.New("this is why") })
		})
		if !strings.HasSuffix(text, "this is why") || calls == 0 {
			t.Errorf("%d calls, %q", calls, text)
		}
	})
}

package statuscache

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A policy that waits for a resource is enqueued by the next report about it, once, though the report may have nothing of it.
func TestAwaited(t *testing.T) {
	b := New()
	b.Await("second", "redis", "mysql")
	b.Await("first", "redis")
	b.Put(Report{Resource: "redis"})
	for _, c := range []struct {
		reason, resource string
		want             []string
	}{
		{"both waited", "redis", []string{"first", "second"}},
		{"they were enqueued", "redis", nil},
		{"the other report is still to come", "mysql", []string{"second"}},
		{"nobody waited", "kafka", nil},
	} {
		if diff := cmp.Diff(c.want, b.Awaited(c.resource)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.reason, diff)
		}
	}
}

package host

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestNoChangeIsLost checks that every name is delivered once, in order, however many wait: an ended statement that was restored is searched for
// only when its policy is named.
func TestNoChangeIsLost(t *testing.T) {
	h := &Host{policies: make(chan string), changedNames: newNameQueue()}
	var want []string
	for i := range 5000 {
		name := fmt.Sprint("p", i)
		want = append(want, name)
		h.notify(name)
		h.notify(name)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go h.changedNames.deliver(ctx, h.policies)
	var got []string
	for range want {
		got = append(got, <-h.PolicyChanges())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	h.notify("p1")
	if name := <-h.PolicyChanges(); name != "p1" {
		t.Errorf("a name that was delivered and changed again: got %s", name)
	}
}

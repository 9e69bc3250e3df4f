package approval_test

import (
	"context"
	"errors"
	"testing"

	"github.com/acp-io/acp/internal/approval"
)

// cancelingHost cancels a context while it compiles the first item.
type cancelingHost struct {
	approval.Host
	cancel   func()
	compiled int
}

func (h *cancelingHost) Compiled(it approval.Item) ([]string, error) {
	h.compiled++
	h.cancel()
	return h.Host.Compiled(it)
}

// TestPlanEndsWithItsCaller checks that the items of a request are not compiled any more when the caller has disconnected.
func TestPlanEndsWithItsCaller(t *testing.T) {
	m := quiet(t)
	ctx, cancel := context.WithCancel(t.Context())
	h := &cancelingHost{Host: m.svc.Host, cancel: cancel}
	m.svc.Host = h
	r := grant(0)
	r.Items = append(r.Items, r.Items[0])
	r.Items[1].Resource = "low"
	if _, err := m.svc.Plan(ctx, m.actorOf("alice"), r); !errors.Is(err, context.Canceled) || h.compiled != 1 {
		t.Errorf("%d items were compiled: %v", h.compiled, err)
	}
}

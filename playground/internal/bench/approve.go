package bench

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

type ticket struct {
	ID      string `json:"id"`
	Version int64  `json:"version"`
}

// approveToRealized lives the story's grant n times, each revoked before the next, and returns the time from sending the
// last approver's decision to hearing from the event stream that the statement was read back in every member.
func approveToRealized(ctx context.Context, portal string, n int) ([]time.Duration, error) {
	people := map[string]*person{}
	for _, name := range []string{"alice", "bob", "carol"} {
		p, err := login(ctx, portal, name)
		if err != nil {
			return nil, err
		}
		people[name] = p
	}
	streamCtx, end := context.WithCancel(ctx)
	defer end()
	events, err := people["bob"].events(streamCtx)
	if err != nil {
		return nil, err
	}
	took := make([]time.Duration, 0, n)
	for i := range n {
		d, err := oneTicket(ctx, people, events, i)
		if err != nil {
			return nil, fmt.Errorf("ticket %d of %d: %w", i+1, n, err)
		}
		took = append(took, d)
	}
	return took, nil
}

func oneTicket(ctx context.Context, people map[string]*person, events <-chan ticketEvent, i int) (time.Duration, error) {
	request := map[string]any{
		"items":  []any{map[string]any{"application": "app-888", "resource": "bobs-cluster", "actions": []string{"redis:connect"}}},
		"reason": fmt.Sprintf("measurement %d", i+1),
	}
	var t ticket
	if err := people["alice"].call(ctx, http.MethodPost, "/tickets", request, &t); err != nil {
		return 0, err
	}
	if err := people["carol"].call(ctx, http.MethodPost, "/tickets/"+t.ID+"/decision", approval(t), &t); err != nil {
		return 0, err
	}
	start := time.Now()
	if err := people["bob"].call(ctx, http.MethodPost, "/tickets/"+t.ID+"/decision", approval(t), &t); err != nil {
		return 0, err
	}
	at, err := await(ctx, events, t.ID, "effective")
	if err != nil {
		return 0, err
	}
	revoke := map[string]any{"reason": "end of the measurement"}
	if err := people["bob"].call(ctx, http.MethodPost, "/tickets/"+t.ID+"/revoke", revoke, nil); err != nil {
		return 0, err
	}
	if _, err := await(ctx, events, t.ID, "revoked"); err != nil {
		return 0, err
	}
	return at.Sub(start), nil
}

func approval(t ticket) map[string]any {
	return map[string]any{"decision": "approve", "version": t.Version}
}

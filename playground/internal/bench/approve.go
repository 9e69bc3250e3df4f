package bench

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

type ticket struct {
	ID      string `json:"id"`
	Version int64  `json:"version"`
	Events  []struct {
		At      time.Time `json:"at"`
		Kind    string    `json:"kind"`
		Cluster string    `json:"cluster"`
	} `json:"events"`
}

// sample contains the measured times of one ticket.
type sample struct {
	took time.Duration
	// story contains the times of the events of a ticket, to show where a slow one waited.
	story string
}

// approveToRealized requests and approves the grant of the demo n times and revokes it after each. It returns the times from
// sending the last approver's decision to the event that reports the statement as realized in every member.
func approveToRealized(ctx context.Context, portal string, n int) ([]sample, error) {
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
	samples := make([]sample, 0, n)
	for i := range n {
		one, err := oneTicket(ctx, people, events, i)
		if err != nil {
			return nil, fmt.Errorf("ticket %d of %d: %w", i+1, n, err)
		}
		samples = append(samples, one)
	}
	return samples, nil
}

func oneTicket(ctx context.Context, people map[string]*person, events <-chan ticketEvent, i int) (sample, error) {
	request := map[string]any{
		"items":  []any{map[string]any{"application": "app-888", "resource": "bobs-cluster", "actions": []string{"redis:connect"}}},
		"reason": fmt.Sprintf("measurement %d", i+1),
	}
	var t ticket
	if err := people["alice"].call(ctx, http.MethodPost, "/tickets", request, &t); err != nil {
		return sample{}, err
	}
	if err := people["carol"].call(ctx, http.MethodPost, "/tickets/"+t.ID+"/decision", approval(t), &t); err != nil {
		return sample{}, err
	}
	start := time.Now()
	if err := people["bob"].call(ctx, http.MethodPost, "/tickets/"+t.ID+"/decision", approval(t), &t); err != nil {
		return sample{}, err
	}
	at, err := await(ctx, events, t.ID, "effective")
	if err != nil {
		return sample{}, err
	}
	var done ticket
	if err := people["bob"].call(ctx, http.MethodGet, "/tickets/"+t.ID, nil, &done); err != nil {
		return sample{}, err
	}
	revoke := map[string]any{"reason": "end of the measurement"}
	if err := people["bob"].call(ctx, http.MethodPost, "/tickets/"+t.ID+"/revoke", revoke, nil); err != nil {
		return sample{}, err
	}
	if _, err := await(ctx, events, t.ID, "revoked"); err != nil {
		return sample{}, err
	}
	return sample{took: at.Sub(start), story: done.story(start)}, nil
}

func approval(t ticket) map[string]any {
	return map[string]any{"decision": "approve", "version": t.Version}
}

func (t ticket) story(start time.Time) string {
	var b strings.Builder
	b.WriteString(t.ID)
	for _, e := range t.Events {
		if e.At.After(start) {
			fmt.Fprintf(&b, ", %s%s %.0f ms", e.Kind, strings.TrimSuffix(" in "+e.Cluster, " in "), Millis(e.At.Sub(start)))
		}
	}
	return b.String()
}

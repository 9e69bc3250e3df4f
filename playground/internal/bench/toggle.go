package bench

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

const (
	toggled = "/resources/bobs-cluster"
	// pollInterval is the interval at which the resource is read, which is the precision of the figure. A user is limited to 50
	// requests a second.
	pollInterval = 25 * time.Millisecond
	// toggleLimit is the time after which the measurement fails when a member does not converge.
	toggleLimit = 30 * time.Second
)

// toggleToRealized switches an enforced resource to temporary audit and back n times. It returns the times from sending the request
// until the resource reports that the result was read back from every member.
func toggleToRealized(ctx context.Context, portal string, n int) ([]time.Duration, error) {
	bob, err := login(ctx, portal, "bob")
	if err != nil {
		return nil, err
	}
	out := make([]time.Duration, 0, n)
	for i := range n {
		start := time.Now()
		begin := map[string]any{"until": start.Add(time.Hour).UTC(), "reason": fmt.Sprintf("measurement %d", i+1)}
		if err := bob.call(ctx, http.MethodPut, toggled+"/temporary-audit", begin, nil); err != nil {
			return nil, err
		}
		if err := bob.inMode(ctx, "Audit"); err != nil {
			return nil, fmt.Errorf("toggle %d of %d: %w", i+1, n, err)
		}
		out = append(out, time.Since(start))
		if err := bob.call(ctx, http.MethodDelete, toggled+"/temporary-audit", map[string]any{"reason": "end of the measurement"}, nil); err != nil {
			return nil, err
		}
		if err := bob.inMode(ctx, "Enforce"); err != nil {
			return nil, fmt.Errorf("toggle back %d of %d: %w", i+1, n, err)
		}
	}
	return out, nil
}

// inMode waits until every member of the resource reports the mode, as it was read back.
func (p *person) inMode(ctx context.Context, mode string) error {
	limit, cancel := context.WithTimeout(ctx, toggleLimit)
	defer cancel()
	look := time.NewTicker(pollInterval)
	defer look.Stop()
	for {
		var r struct {
			Protection struct {
				EffectiveMode string
				Realized      bool
				Clusters      []struct{ Cluster, State, Mode string }
			}
		}
		if err := p.call(limit, http.MethodGet, toggled, nil, &r); err != nil {
			return err
		}
		there := r.Protection.Realized && r.Protection.EffectiveMode == mode && len(r.Protection.Clusters) > 0
		for _, c := range r.Protection.Clusters {
			there = there && c.State == "Realized" && c.Mode == mode
		}
		if there {
			return nil
		}
		select {
		case <-look.C:
		case <-limit.Done():
			return fmt.Errorf("not every member is in %s: %+v", mode, r.Protection.Clusters)
		}
	}
}

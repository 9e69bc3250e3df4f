package membership

import (
	"errors"
	"testing"
)

// TestHostIsNoMember checks that nothing is written or removed in the host cluster as if it were a member: a member's accounts and roles have
// the names of those of ACP's programs there.
func TestHostIsNoMember(t *testing.T) {
	ctx := t.Context()
	var steps []Step
	j := joining(t, "self", &steps)
	if _, err := j.Run(ctx); err != nil {
		t.Fatal(err)
	}
	steps = nil
	onStep := func(s Step) { steps = append(steps, s) }
	for reason, run := range map[string]func() error{
		"join": func() error {
			other := *j
			other.Cluster.Name, other.Member = "self-2", hostServer.Config
			_, err := other.Run(ctx)
			return err
		},
		"join again": func() error {
			again := *j
			again.Member = hostServer.Config
			_, err := again.Run(ctx)
			return err
		},
		"fix": func() error {
			return (&Fix{Host: j.Host, Name: "self", Member: hostServer.Config, OnStep: onStep}).Run(ctx)
		},
		"leave": func() error {
			_, err := (&Leave{Host: j.Host, Name: "self", Member: hostServer.Config, Force: true, OnStep: onStep}).Run(ctx)
			return err
		},
		"leave of a name that is not registered": func() error {
			_, err := (&Leave{Host: j.Host, Name: "nobody", Member: hostServer.Config, OnStep: onStep}).Run(ctx)
			return err
		},
	} {
		if err := run(); !errors.Is(err, ErrIsHostCluster) || len(steps) > 0 {
			t.Errorf("%s: got %v, steps %v, want ErrIsHostCluster and none", reason, err, steps)
		}
	}
	if _, c, err := j.Host.registration(ctx, "self"); err != nil || c.Leaving {
		t.Errorf("the member does not stay as it is: %+v, %v", c, err)
	}
}

package memberhealth

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/guard"
	"github.com/acp-io/acp/internal/federation/preflight"
)

// Timing of looks at the members.
type Timing struct {
	// Interval between two looks. KubeFed's process ends five minutes after a kind cannot be listed.
	Interval time.Duration
	// Again is when one is repeated that something follows from, if it is confirmed.
	Again time.Duration
}

// DefaultTiming finds a member that stops KubeFed within half a minute.
var DefaultTiming = Timing{Interval: 30 * time.Second, Again: 5 * time.Second}

// firstLook is how long a look at members that were never read waits for more of them.
const firstLook = 50 * time.Millisecond

// Inspector looks at all registered members again and again. It runs on the leader.
type Inspector struct {
	// Clusters are the registered members.
	Clusters func() []federation.Cluster
	// Read gathers the facts of one.
	Read func(context.Context, federation.Cluster) preflight.Facts
	// Kinds are those that KubeFed carries now.
	Kinds func() []federation.Kind
	// Keys are the labels that classes select pods by now.
	Keys func() []preflight.Key
	// Changed is called when a member began or ceased to enforce what is pushed to it, or to take policies of others.
	Changed func(cluster string)
	// Looked is called after each look at all of them.
	Looked func()
	// Registrations keep KubeFed from members.
	Registrations interface {
		Suspend(ctx context.Context, cluster, why string) error
		SuspendDowngraded(ctx context.Context, cluster string, mark guard.Downgrade) error
		Resume(ctx context.Context, cluster string) error
	}
	Timing Timing
	Log    logr.Logger

	wake      chan struct{}
	histories map[string]history

	mu sync.RWMutex
	// members are those that were read, and met also those that were found unreadable.
	members map[string]fitness
	met     map[string]bool
	// lacking are the members some label of which may not be in identities, and those that never answered.
	lacking map[string]struct{}
	// judged are the label keys that the findings take into account.
	judged map[string]bool
	looks  map[string]Look
}

// Prepare completes an inspector.
func (i *Inspector) Prepare() error {
	if i.Clusters == nil || i.Read == nil || i.Registrations == nil || i.Kinds == nil || i.Keys == nil {
		return errors.New("member: Clusters, Read, Kinds, Keys and Registrations are needed")
	}
	if i.Timing == (Timing{}) {
		i.Timing = DefaultTiming
	}
	i.wake, i.histories = make(chan struct{}, 1), map[string]history{}
	i.members, i.met, i.looks = map[string]fitness{}, map[string]bool{}, map[string]Look{}
	i.lacking, i.judged = map[string]struct{}{}, map[string]bool{}
	return nil
}

// Wake asks for a look soon: a member was registered, lost or found again.
func (i *Inspector) Wake() {
	select {
	case i.wake <- struct{}{}:
	default:
	}
}

// The preflight lists the kinds as KubeFed does, with its token.
//
// +kubebuilder:rbac:groups=core.kubefed.io,namespace=kube-federation-system,resources=kubefedclusters,verbs=get;patch
// +kubebuilder:rbac:groups="",namespace=kube-federation-system,resources=secrets,verbs=get

// Start looks until the context ends.
func (i *Inspector) Start(ctx context.Context) error {
	for {
		next := i.Timing.Interval
		if i.look(ctx) {
			next = i.Timing.Again
		}
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-i.wake:
			timer.Stop()
			again := i.Timing.Again // many members may wake at once
			if i.Waits() {
				again = min(again, firstLook) // and units wait for those that were never read
			}
			if !pause(ctx, again) {
				return nil
			}
		case <-timer.C:
		}
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// look looks at every member once, and tells whether it has to look again soon.
func (i *Inspector) look(ctx context.Context) (again bool) {
	clusters := i.Clusters()
	facts := make([]preflight.Facts, len(clusters))
	var reading sync.WaitGroup
	for n, c := range clusters {
		reading.Go(func() {
			facts[n] = i.Read(ctx, c)
			if ctx.Err() == nil {
				// At once: whoever decides about this member does not wait for one that is slow to answer.
				i.note(c.Name, &facts[n])
			}
		})
	}
	reading.Wait()
	if ctx.Err() != nil {
		return false
	}
	seen := map[string]history{}
	for n, c := range clusters {
		needs := preflight.Needs{Kinds: i.Kinds(), Keys: i.Keys(), Others: facts}
		findings := preflight.Assess(facts[n], needs)
		i.remember(facts[n], needs, findings)
		next, do, why := judge(i.histories[c.Name], c.Held, findings)
		do = heed(c, &facts[n], do)
		seen[c.Name] = next
		undecided := do == keep && (next.Bad > 0 || c.Held && next.Good > 0)
		if err := i.act(ctx, c, do, why, facts[n].Mark); err != nil {
			undecided = true
		}
		again = again || undecided || i.proxyDown(c.Name)
	}
	i.histories = seen
	i.forget(seen)
	if i.Looked != nil {
		i.Looked()
	}
	return again
}

func (i *Inspector) act(ctx context.Context, c federation.Cluster, do action, why string, mark *guard.Downgrade) error {
	var err error
	switch do {
	case hold:
		if c.Held && c.Why == why && c.Downgrade == nil {
			return nil
		}
		err = i.Registrations.Suspend(ctx, c.Name, why)
	case spare:
		if c.Downgrade != nil && c.Downgrade.Same(*mark) {
			return nil
		}
		why, err = mark.String(), i.Registrations.SuspendDowngraded(ctx, c.Name, *mark)
	case release:
		err = i.Registrations.Resume(ctx, c.Name)
	case keep:
		return nil
	}
	switch {
	case apierrors.IsConflict(err):
		return err // KubeFed writes its status there, too
	case err != nil:
		i.Log.Error(err, "Member's registration cannot be changed; KubeFed may stop for every member", "member", c.Name, "to", do, "because", why)
		return err
	}
	i.Log.Info("Changed a member's registration", "member", c.Name, "to", do, "because", why)
	return nil
}

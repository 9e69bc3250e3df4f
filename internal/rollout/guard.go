package rollout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/notify"
)

const (
	// watchFor is how long a member must have been watched since it began to enforce until its denials no longer stop a
	// rollout. Later denials are mistakes or attacks, and must not open what has been closed for a long time.
	watchFor = 24 * time.Hour
	// stopFor is the duration of the temporary audit of a stop, in which a person has to examine the denials.
	stopFor = 24 * time.Hour
	// MaxGuardWindow is the longest window in which denials are counted, as in api/openapi.yaml.
	MaxGuardWindow = 24 * time.Hour
	// MaxGuardLimit is the highest limit, as in api/openapi.yaml.
	MaxGuardLimit = 1_000_000
)

// Denials counts default-denied connections and requests of clients with a name to a resource in one member, in a
// window. A client that was refused on the same port before a given instant is not new, and does not count.
type Denials interface {
	// HaveDenials returns which of some resources, in which members, have at least one connection that Refused or Contradicted may count in a window, or
	// in a part of it. It may return others.
	HaveDenials(ctx context.Context, resources []string, since, until time.Time) (map[MemberResource]bool, error)
	Refused(ctx context.Context, resource, cluster string, before, since, until time.Time) (int64, error)
	// RefusedIn counts the same for every resource in every member that a function selects, leaving out those with none.
	RefusedIn(ctx context.Context, of func(resource, cluster string) bool, before, since, until time.Time) (map[MemberResource]int64, error)
	// Contradicted counts the connections of clients with a name in a window of which the dataplane's verdict contradicts the policies.
	Contradicted(ctx context.Context, resource, cluster string, since, until time.Time) (int64, error)
	// ContradictedIn counts the same for every resource in every member that a function selects, leaving out those with none.
	ContradictedIn(ctx context.Context, of func(resource, cluster string) bool, since, until time.Time) (map[MemberResource]int64, error)
	// Missing returns the members whose flows are not completely seen now, so that an absence of denials proves
	// nothing.
	Missing(ctx context.Context, clusters []string, now time.Time) (map[string]GapKind, error)
}

// MemberResource is a resource in a member.
type MemberResource struct{ Resource, Cluster string }

// Tickets is the guard's interface to tickets.
type Tickets interface {
	// Halt ends the requests to close a resource (a catalog id) further that are not written yet, and returns their
	// number.
	Halt(ctx context.Context, resource string, reason message.Message) (int, error)
}

// Watcher watches resources that were closed recently. Only one replica does this at a time.
type Watcher struct {
	*Service
	Name    string // unique among replicas
	Denials Denials
	Tickets Tickets
	// Resources returns the names of the resources that a member enforces, or would without a temporary audit; false if
	// they are not known yet.
	Resources func() ([]string, bool)
	Every     time.Duration
	Log       *slog.Logger
}

// Run checks the resources, and reminds of due reviews, until the context ends.
func (w *Watcher) Run(ctx context.Context) {
	t := time.NewTicker(w.Every)
	defer t.Stop()
	for {
		leads, err := w.Store.Lead(ctx, w.Name, w.Now(), 3*w.Every)
		if err == nil && leads {
			err = errors.Join(w.CheckAll(ctx), w.RemindReviews(ctx))
		}
		if err != nil && ctx.Err() == nil {
			w.Log.Warn("rollouts could not be checked; retrying", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// CheckAll checks every resource once, and every class whose change reaches the members in waves. An error about one does not affect the
// others.
func (w *Watcher) CheckAll(ctx context.Context) error {
	enforced, known := w.Resources()
	if !known {
		return nil
	}
	states, err := w.Store.States(ctx)
	if err != nil {
		return err
	}
	failed := w.checkClasses(ctx, states)
	names := slices.Clone(enforced)
	for name, st := range states { // announced, or enforced until now
		if st.Announcement != nil || len(st.Enforced) > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	denials := sync.OnceValues(func() (denialsOfAll, error) { return w.denialsOf(ctx, states) })
	for _, name := range names {
		e, ok := w.Catalog().Resource(idOf(w.Catalog(), name))
		if !ok {
			continue // no one to notify, and no rollout
		}
		if states[name].Unreadable {
			failed = fmt.Errorf("watch %s: %w", name, StateUnreadable(name))
			continue
		}
		if err := w.checkResource(ctx, e, states[name], denials); err != nil {
			failed = fmt.Errorf("watch %s: %w", name, err)
		}
	}
	return failed
}

// denialsOfAll are the resources with denials, read once for all resources of a check. Nearly all have none in any member, and after a
// change of a class all of its resources are watched in all members: to count the denials of each pair would take half a processor with 40,000 pairs.
type denialsOfAll struct {
	// read are the resources that were read, and found those with denials, in each member.
	read  map[string]bool
	found map[MemberResource]bool
}

// mayHave reports whether a resource may have denials in a member.
func (d denialsOfAll) mayHave(resource, cluster string) bool {
	return !d.read[resource] || d.found[MemberResource{resource, cluster}]
}

// denialsOf reads which of the guarded resources have denials in the longest of their windows.
func (w *Watcher) denialsOf(ctx context.Context, states map[string]State) (denialsOfAll, error) {
	d, now, window := denialsOfAll{read: map[string]bool{}}, w.Now(), time.Duration(0)
	for name, st := range states {
		if st.Guard.Off {
			continue
		}
		for cluster := range st.Enforced {
			if st.guarded(cluster, now) {
				d.read[name], window = true, max(window, st.Guard.DenialWindow())
				break
			}
		}
	}
	var err error
	d.found, err = w.Denials.HaveDenials(ctx, slices.Sorted(maps.Keys(d.read)), now.Add(-window), now)
	return d, err
}

func idOf(c *catalog.Catalog, name string) string {
	e, _ := c.ByName(name)
	return e.ID
}

func (w *Watcher) checkResource(ctx context.Context, e catalog.Entity, st State, denials func() (denialsOfAll, error)) error {
	p := w.Host.Protection(e.Name)
	if p == nil {
		return nil
	}
	now := w.Now()
	if st.Announcement != nil && StageOf(Input{Protection: p, Now: now}) == StageObserve {
		if err := w.unannounce(ctx, e); err != nil {
			return err
		}
	}
	enforced := enforcedIn(p, st.Enforced, now)
	if !maps.EqualFunc(enforced, st.Enforced, time.Time.Equal) {
		var err error
		if st, err = w.Store.Change(ctx, e.Name, func(s *State) (News, error) { s.Enforced = enforced; return News{}, nil }); err != nil {
			return err
		}
	}
	if halfStopped(p, st.Guard, now) {
		return w.stopped(ctx, e, stopOf(p, st.Guard, now), p.Spec.TemporaryAudit.Until.UTC())
	}
	st, err := w.armAfterInstruction(ctx, e, p, st)
	if err != nil {
		return err
	}
	if err := w.haltWaves(ctx, p, st.Guard.Stop); err != nil {
		return err
	}
	if err := w.recordHalt(ctx, e, Progress(p), st.WavesHalted); err != nil {
		return err
	}
	if st.Guard.Off || InTemporaryAudit(p.Spec, now) || st.Guard.Stop != nil && !st.Guard.Reopens {
		return nil
	}
	if st, err = w.observe(ctx, e, st, now); err != nil {
		return err
	}
	for cluster, since := range st.Enforced {
		if !st.guarded(cluster, now) {
			continue
		}
		all, err := denials()
		if err != nil {
			return err
		}
		if !all.mayHave(e.Name, cluster) {
			continue
		}
		before := since
		if before.Before(st.Guard.ArmedAt) { // denials before the guard was armed were examined by the user who armed it
			before = st.Guard.ArmedAt
		}
		from := now.Add(-st.Guard.DenialWindow())
		if from.Before(before) {
			from = before
		}
		n, err := w.Denials.Refused(ctx, e.Name, cluster, before, from, now)
		if err != nil {
			return err
		}
		if n > st.Guard.DenialLimit() {
			return w.stop(ctx, e, cluster, n, st.Guard)
		}
		if err := w.compareVerdicts(ctx, p, cluster, from, now, st.Guard); err != nil {
			return err
		}
	}
	return nil
}

// enforcedIn returns since when each member enforces, as it was observed.
func enforcedIn(p *v1alpha1.ProtectedResource, before map[string]time.Time, now time.Time) map[string]time.Time {
	out := map[string]time.Time{}
	for _, c := range p.Status.States() {
		if c.Mode != v1alpha1.ModeEnforce {
			continue
		}
		name := string(c.Name)
		since, known := before[name]
		switch {
		case known:
			out[name] = since
		case c.State != v1alpha1.MemberRealized:
		case c.Since != nil: // after a restart, an old enforcement must not count as new
			out[name] = c.Since.UTC()
		default:
			out[name] = now.UTC()
		}
	}
	return out
}

// stop ends what would close the resource further and notifies the people concerned, after it has opened the resource
// for a time if this is configured. If a later step fails, it is repeated at the next check, while the temporary audit
// lasts.
func (w *Watcher) stop(ctx context.Context, e catalog.Entity, cluster string, n int64, g Guard) error {
	now := w.Now()
	reason := newDenials(n, cluster, g)
	stop := Stop{At: now.UTC(), Cluster: cluster, Count: n, Reason: message.Stored{Message: reason}}
	if !g.Reopens {
		return w.stopped(ctx, e, stop, time.Time{})
	}
	until := metav1.NewTime(now.Add(stopFor).UTC().Truncate(time.Second))
	if _, err := w.begin(ctx, "", e, "", &v1alpha1.TemporaryAudit{Until: until, Reason: reason.Text, By: GuardName}, reason); err != nil {
		return err
	}
	return w.stopped(ctx, e, stop, until.UTC())
}

// stopped records a stop. The time until which the resource is open is zero if it is not.
func (w *Watcher) stopped(ctx context.Context, e catalog.Entity, stop Stop, until time.Time) error {
	details := map[string]string{"cluster": stop.Cluster, "count": strconv.FormatInt(stop.Count, 10)}
	ledger.SetMessage(details, "reason", stop.Reason.Message)
	_, err := w.Store.Change(ctx, e.Name, func(s *State) (News, error) {
		s.Guard.Stop = &stop
		return News{
			Entries: []ledger.Entry{line(stop.At, "", "resource.rollout-stopped", e, details)},
			ResourceEvents: []notify.ResourceEvent{
				resourceEvent(
					stop.At,
					notify.EventRolloutStopped,
					e,
					notify.Facts{Message: stop.Reason.Message, Count: stop.Count, Cluster: stop.Cluster, Until: until},
					ownersAndSecurity(w.Catalog(), e),
				),
			},
		}, nil
	})
	if err != nil {
		return err
	}
	halted, err := w.Tickets.Halt(ctx, e.ID, message.TicketRolloutStopped(stop.Reason.Message))
	w.Log.Warn("new denials stopped a rollout", "resource", e.Name, "cluster", stop.Cluster, "denials", stop.Count, "requestsEnded", halted)
	return err
}

// halfStopped reports whether the guard began a temporary audit without completing the stop.
func halfStopped(p *v1alpha1.ProtectedResource, g Guard, now time.Time) bool {
	return g.Stop == nil && InTemporaryAudit(p.Spec, now) && p.Spec.TemporaryAudit.By == GuardName && p.Spec.TemporaryAudit.Until.Add(-stopFor).After(g.ArmedAt)
}

// stopOf returns the stop that halfStopped found. The temporary audit stores only the English text of its reason, so the message is computed
// again from the members and the settings of the guard. If those have changed since, the text stays without a code.
func stopOf(p *v1alpha1.ProtectedResource, g Guard, now time.Time) Stop {
	text := p.Spec.TemporaryAudit.Reason
	digits, _, _ := strings.Cut(text, " ")
	if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
		for _, c := range p.Status.States() {
			if reason := newDenials(n, string(c.Name), g); reason.Text == text {
				return Stop{At: now.UTC(), Cluster: string(c.Name), Count: n, Reason: message.Stored{Message: reason}}
			}
		}
	}
	return Stop{At: now.UTC(), Reason: message.Stored{Message: message.OfText(text)}}
}

// newDenials returns the reason of a stop.
func newDenials(n int64, cluster string, g Guard) message.Message {
	return message.GuardNewDenials(int(n), cluster, g.DenialWindow().String(), int(g.DenialLimit()))
}

// Set is a change of a guard's settings; nil keeps the current value.
type Set struct {
	Enabled *bool
	Reopens *bool
	Limit   *int64
	Window  *time.Duration
	Arm     bool // continue after a stop
	Reason  string
}

// SetGuard changes the guard of a resource.
func (s *Service) SetGuard(ctx context.Context, a approval.Actor, e catalog.Entity, want Set) (Guard, error) {
	if err := s.allowed(a, e); err != nil {
		return Guard{}, err
	}
	reason, err := reasonOf(want.Reason, message.GuardReasonNeeded())
	if err != nil {
		return Guard{}, err
	}
	switch {
	case want.Limit != nil && (*want.Limit < 0 || *want.Limit > MaxGuardLimit):
		return Guard{}, invalid("limit", message.GuardLimitRange(MaxGuardLimit))
	case want.Window != nil && (*want.Window < time.Minute || *want.Window > MaxGuardWindow):
		return Guard{}, invalid("windowSeconds", message.GuardWindowRange())
	}
	st, err := s.Store.Change(ctx, e.Name, func(st *State) (News, error) {
		g := &st.Guard
		if want.Enabled != nil {
			g.Off = !*want.Enabled
		}
		if want.Reopens != nil {
			g.Reopens = *want.Reopens
		}
		if want.Limit != nil {
			g.Limit = want.Limit
		}
		if want.Window != nil {
			g.Window = *want.Window
		}
		details := map[string]string{
			"reason":  reason,
			"enabled": strconv.FormatBool(!g.Off),
			"reopens": strconv.FormatBool(g.Reopens),
			"limit":   strconv.FormatInt(g.DenialLimit(), 10),
			"window":  g.DenialWindow().String(),
		}
		if want.Arm {
			if g.Stop == nil {
				return News{}, fail(approval.CodeConflict, message.GuardNotStopped(e.Title))
			}
			g.Stop, g.ArmedAt = nil, s.Now().UTC()
			details["armed"] = "true"
		}
		return News{Entries: []ledger.Entry{line(s.Now(), a.ID, "resource.rollout-guard", e, details)}}, nil
	})
	return st.Guard, err
}

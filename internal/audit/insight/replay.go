package insight

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// Replay decides every edge of the window by what the members have before and after a change, without the statements
// that are refused, with every name of its ends. The recorded decisions are not used.
func Replay(ctx context.Context, r Reader, in ReplayInput) (Impact, error) {
	if in.Before == nil || in.After == nil {
		return Impact{}, errors.New("replay a change: the policies before and after it are needed")
	}
	if in.At.IsZero() {
		in.At = in.Until
	}
	if in.MaxLines <= 0 {
		in.MaxLines = MaxImpactLines
	}
	p := newReplayer(&in)
	err := r.Totals(ctx, audit.Filter{Since: in.Since, Until: in.Until, Resources: in.Resources}, func(t audit.Total) error {
		p.add(&t)
		return nil
	})
	if err != nil {
		return Impact{}, fmt.Errorf("replay a change: %w", err)
	}
	placed := in.placed()
	watch, err := WatchedDays(ctx, r, in.Since, in.Until, sortedKeys(placed.members))
	if err != nil {
		return Impact{}, fmt.Errorf("replay a change: %w", err)
	}
	if len(in.Resources) > 0 && placed.unknown == 0 {
		watch = watch.Of(sortedKeys(placed.members))
	}
	im := p.finish(watch)
	if placed.unknown > 0 {
		im.Uncertain = append([]Uncertain{{From: in.Since, To: in.Until, Reason: message.ReplayPlacementUnknown()}}, im.Uncertain...)
	}
	return im, nil
}

// placed returns where the resources of the change are placed, before or after it.
func (in *ReplayInput) placed() placements {
	p := placements{members: map[string]bool{}}
	for _, policies := range []*policy.Snapshot{in.Before, in.After} {
		if len(in.Resources) == 0 {
			in.Fleet.addStated(&p, policies)
			continue
		}
		for _, name := range in.Resources {
			p.add(in.Fleet.PlacedIn(policies, name))
		}
	}
	return p
}

// replayer sums up edges as they are read.
type replayer struct {
	in        *ReplayInput
	decider   *decider
	resources map[string]bool // the filter of resources

	allowed, denied, otherwise changes
	unchanged                  int64
	uncertain                  list[Uncertain]

	// plain is the last edge whose ends have one name each, with its decisions: edges that differ only in their
	// recorded decision are consecutive. The query has the names and the port of the edge.
	plain struct {
		query             policy.Query
		subject, resource [1]string
		before, after     policy.Decision
		known             bool
		// leavesOut reports for each state whether something about the resource may be refused in the member.
		leavesOut [2]bool
	}
}

func newReplayer(in *ReplayInput) *replayer {
	p := &replayer{in: in, decider: newDecider(newPolicyState(in.Before, in.At), newPolicyState(in.After, in.At)), resources: map[string]bool{}}
	for _, name := range in.Resources {
		p.resources[name] = true
	}
	for _, c := range []*changes{&p.allowed, &p.denied, &p.otherwise} {
		c.lines.limit, c.clients, c.resources = in.MaxLines, map[string]struct{}{}, map[string]struct{}{}
	}
	p.uncertain.limit = in.MaxLines
	p.plain.query = policy.Query{Subjects: p.plain.subject[:], Resources: p.plain.resource[:], At: in.At}
	return p
}

func (p *replayer) add(t *audit.Total) {
	var before, after policy.Decision
	if p.isPlain(&t.Edge) {
		before, after = p.decidePlain(&t.Edge)
		if before.Verdict == after.Verdict {
			p.unchanged += t.Count
			return
		}
	} else {
		v := p.decider.decide(&t.Edge, asIs)
		counted := countedHere(&t.Edge, p.resources)
		switch {
		case v.same && counted:
			p.unchanged += t.Count
			return
		case v.same:
			return
		case v.why != nil:
			if counted {
				p.doubt(t, v.why)
			}
			return
		}
		before, after = v.of[0], v.of[1]
	}
	switch was, is := before.Verdict.LetsThrough(), after.Verdict.LetsThrough(); {
	case !was && is:
		p.allowed.add(p, t, before, after)
	case was && !is:
		p.denied.add(p, t, before, after)
	default:
		p.otherwise.add(p, t, before, after)
	}
}

// isPlain reports whether the decision depends only on one name of each end.
func (p *replayer) isPlain(e *audit.Edge) bool {
	return e.Subject != "" && e.Resource != "" && e.OtherSubjects == "" && e.OtherResources == "" &&
		(e.SourceCluster != "" || len(p.decider.states[0].owned) == 0)
}

func (p *replayer) decidePlain(e *audit.Edge) (before, after policy.Decision) {
	c := &p.plain
	same := c.known && c.resource[0] == e.Resource && c.query.Cluster == e.Cluster
	if same && c.subject[0] == e.Subject && c.query.Port == e.Port && e.Protocol == c.query.Protocol && c.query.Action == "" {
		return c.before, c.after
	}
	c.subject[0], c.resource[0], c.known = e.Subject, e.Resource, true
	e.FillQuery(&c.query)
	if !same { // the result is the same for all edges of the resource in the member, which are consecutive
		c.leavesOut = [2]bool{p.in.Before.LeavesOut(&c.query), p.in.After.LeavesOut(&c.query)}
	}
	if c.leavesOut[0] {
		c.before = p.in.Before.EffectiveInto(&c.query, nil)
	} else {
		c.before = p.in.Before.DecideInto(&c.query, nil)
	}
	if c.leavesOut[1] {
		c.after = p.in.After.EffectiveInto(&c.query, nil)
	} else {
		c.after = p.in.After.DecideInto(&c.query, nil)
	}
	return c.before, c.after
}

func (p *replayer) doubt(t *audit.Total, why *message.Message) {
	source := t.Source
	if t.Subject != "" {
		source = t.Subject
	}
	resource := t.Resource
	if resource == "" {
		resource = t.Destination
	}
	p.uncertain.add(
		Uncertain{Cluster: t.Cluster, From: t.FirstSeen, To: t.LastSeen, Source: source, Resource: resource, Count: t.Count, Reason: *why},
		compareUncertain,
	)
}

func (p *replayer) finish(w *Watch) Impact {
	im := Impact{Since: p.in.Since, Until: p.in.Until, Unchanged: p.unchanged}
	im.NewlyAllowed, im.Allowed = p.allowed.finish()
	im.NewlyDenied, im.Denied = p.denied.finish()
	im.ReasonChanged, im.ReasonChangedTotal = p.otherwise.finish()
	im.Truncated = p.allowed.lines.truncated || p.denied.lines.truncated || p.otherwise.lines.truncated || p.uncertain.truncated
	im.Uncertain = append(w.doubts(), p.uncertain.sorted(compareUncertain)...)
	return im
}

// doubts are the times about which nothing, or not everything, is known.
func (w *Watch) doubts() []Uncertain {
	out := []Uncertain{}
	if len(w.Members) == 0 && w.Until.After(w.Since) {
		return append(out, Uncertain{From: w.Since, To: w.Until, Reason: message.ReplayNothingWatched()})
	}
	for _, m := range w.Members {
		out = append(out, m.doubts()...)
	}
	return out
}

// unwatchedAtLeast is the part of a day that must be missing to be reported: the collector resumes where it stopped
// after a restart.
const unwatchedAtLeast = time.Minute

// doubts joins consecutive days.
func (m *MemberWatch) doubts() (out []Uncertain) {
	var missing time.Duration
	from, to := time.Time{}, time.Time{}
	end := func() {
		if missing > 0 {
			out = append(out, Uncertain{Cluster: m.Cluster, From: from, To: to, Reason: message.ReplayMemberNotWatched(m.Cluster, span(missing))})
		}
		missing = 0
	}
	for _, d := range m.Days {
		lacks := d.To.Sub(d.From) - d.Watched
		if lacks < unwatchedAtLeast {
			end()
			continue
		}
		if missing == 0 {
			from = d.From
		}
		missing, to = missing+lacks, d.To
	}
	end()
	for _, d := range m.Days {
		if d.Lost > 0 {
			out = append(out, Uncertain{Cluster: m.Cluster, From: d.From, To: d.To, Reason: message.ReplayFlowsLost(int(d.Lost), m.Cluster)})
		}
	}
	return out
}

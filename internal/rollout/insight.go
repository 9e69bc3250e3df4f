package rollout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/insight"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// assessedAtOnce bounds the number of resources in one query to the store.
const assessedAtOnce = 500

var errPoliciesUnknown = errors.New("the host cluster's policies are not known yet")

// InsightConfig is the configuration of an Insight; all fields are required.
type InsightConfig struct {
	Flows    audit.Reader
	Snapshot func() (*policy.Snapshot, bool)
	// Fleet returns the members in which resources are placed.
	Fleet func() insight.Fleet
	// Enforced returns the names of the resources that a member enforces, or would without a temporary audit; false if
	// they are not known yet.
	Enforced func() ([]string, bool)
	Store    Store
	Window   time.Duration // the evaluated period
	// Threshold is the score from which on a resource can be enforced; 0 means always.
	Threshold int
	Now       func() time.Time
}

// Insight evaluates the flows of resources. Its results are kept for a moment; see cachedAssessor and cachedWatches.
type Insight struct {
	InsightConfig
	assessor assessor
	watches  watches
}

type assessed struct {
	Assessment
	score insight.Score
	at    time.Time
}

// NewInsight returns an Insight.
func NewInsight(c InsightConfig) *Insight {
	w := &cachedWatches{watches: storedWatches{c.Flows, c.Window}}
	return &Insight{InsightConfig: c, watches: w, assessor: &cachedAssessor{assessor: flowAssessor{c, w}}}
}

var (
	_ approval.Evidence = (*Insight)(nil)
	_ Denials           = (*Insight)(nil)
)

// Assess returns the assessments of resources by name. If it returns an error, the map contains those that were
// completed before it.
func (i *Insight) Assess(ctx context.Context, resources ...string) (map[string]Assessment, error) {
	all, err := i.assessor.assess(ctx, resources, i.Now())
	out := make(map[string]Assessment, len(all))
	for name, a := range all {
		out[name] = a.Assessment
	}
	return out, err
}

// flowAssessor assesses resources by their flows in the store.
type flowAssessor struct {
	InsightConfig
	watches watches
}

func (f flowAssessor) assess(ctx context.Context, resources []string, now time.Time) (map[string]assessed, error) {
	out := make(map[string]assessed, len(resources))
	snap, ok := f.Snapshot()
	if !ok {
		return out, errPoliciesUnknown
	}
	watch, err := f.watches.watch(ctx, now)
	if err != nil {
		return out, err
	}
	for names := range slices.Chunk(resources, assessedAtOnce) {
		found, err := f.assessAll(ctx, snap, watch, names, now)
		if err != nil {
			return out, err
		}
		maps.Copy(out, found)
	}
	return out, nil
}

// assessAll reads the flows of resources and assesses their evidence.
func (f flowAssessor) assessAll(
	ctx context.Context,
	snap *policy.Snapshot,
	watch *insight.Watch,
	resources []string,
	now time.Time,
) (map[string]assessed, error) {
	scores, err := insight.EvidenceOf(
		ctx,
		f.Flows,
		insight.EvidenceInput{Snapshot: snap, Fleet: f.Fleet(), Now: now, Window: f.Window, Threshold: f.Threshold, Watch: watch},
		resources,
	)
	if err != nil {
		return nil, err
	}
	clients := map[string]*observedClients{}
	err = f.Flows.Totals(ctx, audit.Filter{Since: now.Add(-f.Window), Until: now, Resources: resources}, func(t audit.Total) error {
		c := clients[t.Resource]
		if c == nil {
			c = &observedClients{subjects: map[string]bool{}, sources: map[string]bool{}}
			clients[t.Resource] = c
		}
		c.add(snap, &t, now)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("ask for the clients that were seen: %w", err)
	}
	fleet, out := f.Fleet(), make(map[string]assessed, len(resources))
	for _, name := range resources {
		s := scores[name]
		a := assessed{
			score:      s,
			at:         now,
			Assessment: Assessment{Score: approval.Score{Value: s.Value, Threshold: f.Threshold, Enough: s.Enough || f.Threshold == 0}},
		}
		a.score.Threshold, a.score.Enough = f.Threshold, a.Enough
		a.Missing = s.Missing()
		if placed, known := fleet.PlacedIn(snap, name); known {
			never, ended := watch.Of(placed).Unwatched()
			a.Unwatched = slices.Sorted(slices.Values(append(never, ended...)))
		}
		if c := clients[name]; c != nil {
			a.Clients = slices.Sorted(maps.Keys(c.subjects))
			a.Newcomers = slices.DeleteFunc(slices.Clone(a.Clients), func(s string) bool { return !c.subjects[s] })
			a.Unattributed = len(c.sources)
		}
		out[name] = a
	}
	return out, nil
}

// observedClients contains the clients of one resource. The value of a subject reports whether no statement allows it. Sources are clients without
// a name.
type observedClients struct {
	subjects map[string]bool
	sources  map[string]bool
}

// ownNode is the description of the destination's own node, which is always let in.
const ownNode = "reserved:host"

func (c *observedClients) add(snap *policy.Snapshot, t *audit.Total, now time.Time) {
	if t.Subject == "" {
		if t.Source != ownNode && t.Decision != policy.Allowed {
			c.sources[t.Source] = true
		}
		return
	}
	q := policy.Query{Subjects: append([]string{t.Subject}, strings.Fields(t.OtherSubjects)...),
		Resources: append([]string{t.Resource}, strings.Fields(t.OtherResources)...), At: now}
	t.FillQuery(&q)
	// A deny names a client that is not wanted and need not be examined again.
	c.subjects[t.Subject] = c.subjects[t.Subject] || snap.EffectiveEnforced(&q, nil).Verdict == policy.DefaultDenied
}

// Evidence returns the complete evidence of a resource.
func (i *Insight) Evidence(ctx context.Context, resource string) (insight.Score, time.Time, error) {
	all, err := i.assessor.assess(ctx, []string{resource}, i.Now())
	return all[resource].score, all[resource].at, err
}

// Score implements approval.Evidence.
func (i *Insight) Score(ctx context.Context, resource string) (approval.Score, error) {
	all, err := i.assessor.assess(ctx, []string{resource}, i.Now())
	return all[resource].Score, err
}

// Seen implements approval.Evidence.
func (i *Insight) Seen(ctx context.Context, application, resource string) (bool, error) {
	now := i.Now()
	page, err := i.Flows.Connections(ctx, audit.ConnectionQuery{Filter: audit.Filter{Since: now.Add(-i.Window), Until: now.Add(time.Minute),
		Subjects: []string{application}, Resources: []string{resource}}, Limit: 1})
	if err != nil {
		return false, fmt.Errorf("ask whether a client was seen: %w", err)
	}
	return len(page.Items) > 0, nil
}

// Stopped implements approval.Evidence.
func (i *Insight) Stopped(ctx context.Context, resource string) (message.Message, error) {
	states, err := i.Store.States(ctx, resource)
	if err != nil {
		return message.Message{}, err
	}
	if states[resource].Unreadable {
		return message.Message{}, StateUnreadable(resource)
	}
	if s := states[resource].Guard.Stop; s != nil {
		return s.Reason.Message, nil
	}
	return message.Message{}, nil
}

// OfClass implements approval.Evidence.
func (i *Insight) OfClass(ctx context.Context, class v1alpha1.ResourceClassSpec) (approval.ClassEvidence, error) {
	var worst approval.ClassEvidence
	enforced, known := i.Enforced()
	snap, ok := i.Snapshot()
	if !known || !ok {
		return worst, errPoliciesUnknown
	}
	stem, wild := strings.CutSuffix(string(class.Pattern), "*")
	names := slices.DeleteFunc(slices.Clone(enforced), func(name string) bool { return name != stem && (!wild || !strings.HasPrefix(name, stem)) })
	if len(names) == 0 {
		return worst, nil
	}
	states, err := i.Store.States(ctx, names...)
	if err != nil {
		return worst, err
	}
	for _, name := range names {
		if states[name].Unreadable {
			return worst, StateUnreadable(name)
		}
		if s := states[name].Guard.Stop; s != nil {
			return approval.ClassEvidence{Resource: name, Stopped: s.Reason.Message}, nil
		}
	}
	now := i.Now()
	watch, err := i.watches.watch(ctx, now)
	if err != nil {
		return worst, err
	}
	in := insight.EvidenceInput{Snapshot: snap, Fleet: i.Fleet(), Placement: &class.Placement, Now: now, Window: i.Window, Threshold: i.Threshold, Watch: watch}
	for chunk := range slices.Chunk(names, assessedAtOnce) {
		scores, err := insight.EvidenceOf(ctx, i.Flows, in, chunk)
		if err != nil {
			return worst, err
		}
		for _, name := range chunk {
			s := scores[name]
			e := approval.ClassEvidence{
				Resource: name,
				Score:    approval.Score{Value: s.Value, Threshold: i.Threshold, Enough: s.Enough || i.Threshold == 0, Missing: s.Missing()},
			}
			if worst.Resource == "" || worst.Score.Enough && !e.Score.Enough || worst.Score.Enough == e.Score.Enough && e.Score.Value < worst.Score.Value {
				worst = e
			}
		}
	}
	return worst, nil
}

// HaveDenials implements Denials. The buckets in which the window begins and ends count, which those of Refused and Contradicted need not.
func (i *Insight) HaveDenials(ctx context.Context, resources []string, since, until time.Time) (map[MemberResource]bool, error) {
	out := map[MemberResource]bool{}
	for names := range slices.Chunk(resources, assessedAtOnce) {
		window := audit.Filter{Resources: names, Since: since.Truncate(audit.BucketWidth), Until: until.Add(1)}
		refused, contradicted := window, window
		refused.Decisions, contradicted.Disagree = []policy.Verdict{policy.DefaultDenied}, true
		for _, in := range []audit.Filter{refused, contradicted} {
			if err := i.Flows.Totals(ctx, in, func(t audit.Total) error {
				if t.Subject != "" {
					out[MemberResource{t.Resource, t.Cluster}] = true
				}
				return nil
			}); err != nil {
				return nil, fmt.Errorf("find refused and contradicted connections: %w", err)
			}
		}
	}
	return out, nil
}

// Contradicted implements Denials.
func (i *Insight) Contradicted(ctx context.Context, resource, cluster string, since, until time.Time) (int64, error) {
	found, err := i.contradicted(ctx, audit.Filter{Resources: []string{resource}, Clusters: []string{cluster}}, everyOne, since, until)
	return found[MemberResource{resource, cluster}], err
}

// ContradictedIn implements Denials.
func (i *Insight) ContradictedIn(
	ctx context.Context,
	of func(resource, cluster string) bool,
	since, until time.Time,
) (map[MemberResource]int64, error) {
	return i.contradicted(ctx, audit.Filter{}, of, since, until)
}

func everyOne(string, string) bool { return true }

func (i *Insight) contradicted(
	ctx context.Context,
	in audit.Filter,
	of func(resource, cluster string) bool,
	since, until time.Time,
) (map[MemberResource]int64, error) {
	if from := since.Truncate(audit.BucketWidth); from.Before(since) {
		since = from.Add(audit.BucketWidth)
	}
	if !since.Before(until) {
		return nil, nil
	}
	in.Since, in.Until, in.Disagree = since, until.Add(1), true
	out := map[MemberResource]int64{}
	err := i.Flows.Totals(ctx, in, func(t audit.Total) error {
		if t.Subject != "" && of(t.Resource, t.Cluster) {
			out[MemberResource{t.Resource, t.Cluster}] += t.Count
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("count contradicted connections: %w", err)
	}
	return out, nil
}

// refusedBefore is the period before an instant in which an earlier denial of a client makes a later one count as
// known.
const refusedBefore = 14 * 24 * time.Hour

// Refused implements Denials. A bucket counts only if it began in the window, so that denials before a member enforced
// are not counted; the present minute counts.
func (i *Insight) Refused(ctx context.Context, resource, cluster string, before, since, until time.Time) (int64, error) {
	found, err := i.refused(ctx, audit.Filter{Resources: []string{resource}, Clusters: []string{cluster}}, everyOne, before, since, until)
	return found[MemberResource{resource, cluster}], err
}

// RefusedIn implements Denials, with the buckets of Refused.
func (i *Insight) RefusedIn(
	ctx context.Context,
	of func(resource, cluster string) bool,
	before, since, until time.Time,
) (map[MemberResource]int64, error) {
	return i.refused(ctx, audit.Filter{}, of, before, since, until)
}

// refusedClient is a client of a resource in a member that was refused.
type refusedClient struct {
	MemberResource
	subject  string
	port     uint16
	protocol v1alpha1.Protocol
	action   string // the HTTP action
}

func refusedClientOf(t *audit.Total) refusedClient {
	c := refusedClient{MemberResource: MemberResource{t.Resource, t.Cluster}, subject: t.Subject, port: t.Port, protocol: t.Protocol}
	if t.Protocol == audit.ProtocolHTTP {
		c.action = t.Action
	}
	return c
}

func (i *Insight) refused(
	ctx context.Context,
	in audit.Filter,
	of func(resource, cluster string) bool,
	before, since, until time.Time,
) (map[MemberResource]int64, error) {
	if from := since.Truncate(audit.BucketWidth); from.Before(since) {
		since = from.Add(audit.BucketWidth)
	}
	if !since.Before(until) {
		return nil, nil
	}
	clients := map[refusedClient]int64{}
	resources := map[string]bool{}
	in.Since, in.Until, in.Decisions = since, until.Add(1), []policy.Verdict{policy.DefaultDenied}
	err := i.Flows.Totals(ctx, in, func(t audit.Total) error {
		if t.Subject != "" && of(t.Resource, t.Cluster) {
			clients[refusedClientOf(&t)] += t.Count
			resources[t.Resource] = true
		}
		return nil
	})
	in.Since, in.Until = before.Add(-refusedBefore), before.Truncate(audit.BucketWidth)
	for names := range slices.Chunk(slices.Sorted(maps.Keys(resources)), assessedAtOnce) {
		if err != nil {
			break
		}
		in.Resources = names
		err = i.Flows.Totals(ctx, in, func(t audit.Total) error {
			delete(clients, refusedClientOf(&t))
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("count refused connections: %w", err)
	}
	out := map[MemberResource]int64{}
	for c, n := range clients {
		out[c.MemberResource] += n
	}
	return out, nil
}

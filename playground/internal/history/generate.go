package history

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/playground/internal/demo"
)

// step is the interval between the roll-ups of one client. One roll-up per minute would be too many.
const step = 30 * time.Minute

// input contains everything that the past is generated from.
type input struct {
	lines     []line
	workloads []demo.Workload
	policies  *policy.Snapshot
}

// pods is a group of identical pods in one cluster.
type pods struct {
	demo.Workload
	cluster string
}

// generate creates the roll-ups between the two times and passes them to take, one call per line.
func (in input) generate(from, to time.Time, take func([]audit.Rollup) error) error {
	for _, l := range in.lines {
		if err := take(in.ofLine(l, from, to)); err != nil {
			return err
		}
	}
	return nil
}

// coverage returns the collection coverage of the members: nearly complete, with one queue overflow and a gap of some minutes in
// which the collector was down, so that the page of losses has typical content.
func (in input) coverage(from, to time.Time) *audit.Batch {
	b := &audit.Batch{ID: "history-watched"}
	for _, c := range in.clusters() {
		b.Watched = append(b.Watched, audit.WatchedSpan{Source: c, From: from, To: to})
	}
	if len(b.Watched) == 0 {
		return b
	}
	queue, away := to.Add(-9*24*time.Hour), to.Add(-4*24*time.Hour)
	first, last := b.Watched[0].Source, b.Watched[len(b.Watched)-1].Source
	for _, l := range []audit.Loss{
		{Cluster: first, Node: first + "/" + first + "-node-1", Reason: audit.LossQueue, Count: 37, From: queue, To: queue.Add(2 * time.Second)},
		{Cluster: last, Reason: audit.LossGap, From: away, To: away.Add(6 * time.Minute)},
	} {
		if !l.From.Before(from) {
			b.Losses = append(b.Losses, l)
		}
	}
	return b
}

func (in input) clusters() []string {
	var out []string
	for _, workload := range in.workloads {
		out = append(out, workload.Clusters...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (in input) ofLine(l line, from, to time.Time) []audit.Rollup {
	if l.since > 0 && to.Add(-l.since).After(from) {
		from = to.Add(-l.since)
	}
	sources := []pods{{}} // an address is a single source
	if l.from != nil {
		sources = in.pods(l.from, l.Source.Clusters)
	}
	var out []audit.Rollup
	for _, destination := range in.pods(l.to, nil) {
		for i, source := range sources {
			p := pair{line: l, source: source, destination: destination, random: seeded(l.Name, source.cluster, source.Name, destination.cluster)}
			if l.schedule != nil {
				p.share = share(l.Connections, len(sources), i)
			}
			out = append(out, p.rollups(in.policies, from, to)...)
		}
	}
	return out
}

func (in input) pods(selector labels.Selector, clusters []string) []pods {
	var out []pods
	for _, workload := range in.workloads {
		if !selector.Matches(labels.Set(workload.PodLabels())) {
			continue
		}
		for _, c := range workload.Clusters {
			if len(clusters) == 0 || slices.Contains(clusters, c) {
				out = append(out, pods{workload, c})
			}
		}
	}
	return out
}

// share returns the part of a job's connections that source i makes.
func share(connections, sources, i int) int64 {
	n := connections / sources
	if i < connections%sources {
		n++
	}
	return int64(n)
}

// pair is one traffic line between the pods of two clusters.
type pair struct {
	line                line
	source, destination pods
	random              *rand.Rand
	share               int64
}

func (p pair) rollups(e *policy.Snapshot, from, to time.Time) []audit.Rollup {
	var out []audit.Rollup
	add := func(at time.Time, count int64) {
		if count > 0 && !at.Before(from) && at.Before(to) {
			out = append(out, p.at(e, at, count)...)
		}
	}
	switch {
	case p.line.schedule != nil:
		for t := p.line.schedule.Next(from.Add(-time.Second)); t.Before(to); t = p.line.schedule.Next(t) {
			add(t, p.share)
		}
	case p.line.LongLived:
		// The pods are replaced every night, and then open their connection pools again.
		const night = 3 * time.Hour
		for day := from.Truncate(24 * time.Hour); day.Before(to); day = day.Add(24 * time.Hour) {
			add(day.Add(night+time.Duration(p.random.IntN(30))*time.Minute), int64(max(p.source.Replicas, 1)))
		}
	default:
		perStep := float64(max(p.source.Replicas, 1)) * float64(step) / float64(p.line.interval)
		for t := from.Truncate(step); t.Before(to); t = t.Add(step) {
			count := perStep * busy(t) * (0.9 + 0.2*p.random.Float64())
			add(t.Add(time.Duration(p.random.IntN(int(step/time.Minute)))*time.Minute), int64(count+0.5))
		}
	}
	return out
}

// busy returns the traffic relative to noon of a working day, from 0 to 1: it is lower at night and on weekends.
func busy(t time.Time) float64 {
	out := 1.0
	if h := t.Hour(); h < 6 || h >= 22 {
		out = 0.4
	} else if h < 9 || h >= 18 {
		out = 0.7
	}
	if t.Weekday() == time.Saturday || t.Weekday() == time.Sunday {
		out *= 0.8
	}
	return out
}

// at returns what the collector would have counted: both ends attributed, the connection decided, and the dataplane's verdict equal
// to the decision.
func (p pair) at(e *policy.Snapshot, at time.Time, count int64) []audit.Rollup {
	first := at.Add(time.Duration(p.random.IntN(20)) * time.Second)
	o := audit.Observation{
		Time: first, Cluster: p.destination.cluster, Source: p.from(), Destination: endpoint(p.destination),
		Protocol: v1alpha1.Protocol(strings.ToUpper(p.line.Protocol)), Verdict: audit.VerdictForwarded, Count: count,
	}
	o.Destination.Port = p.line.Port
	r := audit.Attribute(e, o)
	switch {
	case r.Decision == policy.Denied || r.Decision == policy.DefaultDenied:
		r.Verdict = audit.VerdictDropped
	case p.line.LongLived:
		r.Verdict = audit.VerdictUnknown // only packets of the connection were observed
	}
	last := first
	if count > 1 {
		last = first.Add(time.Duration(1+p.random.IntN(30)) * time.Second)
	}
	edges := r.Edges(e)
	out := make([]audit.Rollup, 0, len(edges))
	for _, edge := range edges {
		out = append(out, audit.Rollup{Bucket: at.Truncate(audit.BucketWidth), Edge: edge, Count: count, FirstSeen: first, LastSeen: last})
	}
	return out
}

func (p pair) from() audit.Endpoint {
	if p.line.address.IsValid() {
		return audit.Endpoint{Kind: audit.KindOutside, Address: p.line.address}
	}
	return endpoint(p.source)
}

func endpoint(p pods) audit.Endpoint {
	return audit.Endpoint{Kind: audit.KindWorkload, Labels: p.PodLabels(), Namespace: p.Namespace, Cluster: p.cluster}
}

// seeded returns a random generator that depends only on the words, so that a new line does not change the data of other lines.
func seeded(words ...string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(strings.Join(words, "\x00")))
	return rand.New(rand.NewPCG(h.Sum64(), 0)) //nolint:gosec // not a secret: it shall be the same each time
}

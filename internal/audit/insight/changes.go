package insight

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

// list keeps the first items by an order, with bounded memory.
type list[T any] struct {
	limit     int
	truncated bool
	items     []T
}

func (l *list[T]) add(item T, order func(a, b T) int) {
	l.items = append(l.items, item)
	if len(l.items) >= 2*l.limit+1 {
		l.cut(order)
	}
}

func (l *list[T]) cut(order func(a, b T) int) {
	slices.SortFunc(l.items, order)
	if len(l.items) > l.limit {
		l.items, l.truncated = l.items[:l.limit], true
	}
}

func (l *list[T]) sorted(order func(a, b T) int) []T {
	l.cut(order)
	return append([]T{}, l.items...)
}

// changes collects the connections whose decision a change alters in one way.
type changes struct {
	lines       list[ImpactLine]
	connections int64
	clients     map[string]struct{}
	resources   map[string]struct{}

	// open are the lines of the resource that is being read; its edges are consecutive.
	resource string
	open     map[lineKey]*ImpactLine
}

// lineKey identifies the line of an edge.
type lineKey struct {
	cluster, subject, source string
	destination              string
	at                       portKey
	before, after            policy.Verdict
}

func (c *changes) add(p *replayer, t *audit.Total, before, after policy.Decision) {
	if countedHere(&t.Edge, p.resources) {
		c.connections += t.Count
	}
	c.clients[t.Subject+"\n"+t.Source] = struct{}{}
	c.resources[t.Resource+"\n"+t.Destination] = struct{}{}
	if t.Resource != c.resource || c.open == nil {
		c.close()
		c.resource, c.open = t.Resource, map[lineKey]*ImpactLine{}
	}
	key := lineKey{t.Cluster, t.Subject, t.Source, t.Destination, portOf(&t.Edge), before.Verdict, after.Verdict}
	if line := c.open[key]; line != nil {
		line.Count += t.Count
		line.First, line.Last = audit.Earlier(line.First, t.FirstSeen), audit.Later(line.Last, t.LastSeen)
		return
	}
	line := &ImpactLine{
		Cluster:     t.Cluster,
		Subject:     t.Subject,
		Source:      t.Source,
		Resource:    t.Resource,
		Destination: t.Destination,
		Port:        t.Port,
		Protocol:    t.Protocol,
		Count:       t.Count,
		First:       t.FirstSeen,
		Last:        t.LastSeen,
		Before:      before.Verdict,
		After:       after.Verdict,
	}
	if t.Resource != "" {
		line.Action, _ = p.decider.states[1].actionOf(t.Resource, key.at)
	}
	line.Statements = after.Statements
	if len(line.Statements) == 0 {
		line.Statements = before.Statements
	}
	line.Statements = slices.Clone(line.Statements)
	c.open[key] = line
}

func (c *changes) close() {
	for _, line := range c.open {
		c.lines.add(*line, compareLines)
	}
	c.open = nil
}

func (c *changes) finish() ([]ImpactLine, ImpactTotal) {
	c.close()
	return c.lines.sorted(compareLines), ImpactTotal{Connections: c.connections, Clients: len(c.clients), Resources: len(c.resources)}
}

// compareLines orders by the number of connections, descending.
func compareLines(a, b ImpactLine) int {
	return cmp.Or(
		cmp.Compare(b.Count, a.Count),
		cmp.Compare(a.Resource, b.Resource),
		cmp.Compare(a.Subject, b.Subject),
		cmp.Compare(a.Source, b.Source),
		cmp.Compare(
			a.Destination,
			b.Destination,
		),
		cmp.Compare(a.Cluster, b.Cluster),
		cmp.Compare(a.Protocol, b.Protocol),
		cmp.Compare(a.Port, b.Port),
		cmp.Compare(a.Action, b.Action),
		cmp.Compare(a.Before, b.Before),
		cmp.Compare(a.After, b.After),
	)
}

func compareUncertain(a, b Uncertain) int {
	return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Cluster, b.Cluster),
		a.From.Compare(b.From), a.To.Compare(b.To), cmp.Compare(a.Reason.Text, b.Reason.Text))
}

// span formats a duration with its two largest units.
func span(d time.Duration) string {
	d = d.Round(time.Minute)
	var parts []string
	for _, unit := range []struct {
		length time.Duration
		sign   string
	}{{day, "d"}, {time.Hour, "h"}, {time.Minute, "m"}} {
		if n := d / unit.length; n > 0 {
			parts = append(parts, fmt.Sprintf("%d%s", n, unit.sign))
			d -= n * unit.length
		}
		if len(parts) == 2 {
			break
		}
	}
	if len(parts) == 0 {
		return "0m"
	}
	return strings.Join(parts, " ")
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

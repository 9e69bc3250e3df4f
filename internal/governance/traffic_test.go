package governance

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

// connected returns the connections of one edge.
func connected(subject, resource string, decision policy.Verdict, count int64, statement policy.Ref) audit.Total {
	return audit.Total{Edge: audit.Edge{Cluster: "m1", Subject: subject, Resource: resource, Source: "10.0.0.0/24", Destination: "namespace=x",
		Decision: decision, Verdict: audit.VerdictUnknown, Statement: statement}, Count: count, LastSeen: at.Add(time.Duration(count) * time.Minute)}
}

// described returns each link as its ends, what was seen, and the statement that covers it.
func described(links []TrafficLink) []string {
	out := make([]string, 0, len(links))
	for i := range links {
		l := &links[i]
		text := l.Subject + l.Source + " -> " + l.Resource + l.Destination
		for _, decision := range []policy.Verdict{policy.Allowed, policy.Audited, policy.Unmanaged, policy.DefaultDenied, policy.Denied} {
			if n, ok := l.Seen[decision]; ok {
				text += fmt.Sprintf(" %s=%d", decision, n)
			}
		}
		if l.Grant != nil {
			text += " granted by " + l.Grant.Ref.SID
		}
		out = append(out, text)
	}
	return out
}

// TestTraffic checks which links a map has: what was seen, each pair once, and statements that nobody used.
func TestTraffic(t *testing.T) {
	ranged := "trnv1:rsc:o:net:cidr:10.0.0.0/8"
	later := statementOf("later", policy.Allow, apps+"9", redis+"a")
	later.NotBefore = new(metav1.NewTime(at.Add(time.Hour)))
	s := policy.NewSnapshot(world(acp("p",
		statementOf("one", policy.Allow, apps+"1", redis+"a"),
		statementOf("again", policy.Allow, apps+"1", redis+"a"),
		statementOf("idle", policy.Allow, apps+"2", redis+"a"),
		statementOf("wide", policy.Allow, apps+"3", redis+"*"),
		statementOf("narrow", policy.Allow, apps+"3", redis+"b"),
		statementOf("unused", policy.Allow, apps+"4", redis+"*"),
		statementOf("net", policy.Allow, ranged, redis+"b"),
		statementOf("all", policy.Allow, apps+"*", web+"one"),
		statementOf("no", policy.Deny, apps+"1", redis+"b"),
		later,
	)))
	by := func(sid string) policy.Ref { return policy.Ref{Policy: "p", SID: sid} }
	for name, tc := range map[string]struct {
		reason string
		seen   []audit.Total
		want   []string
	}{
		"nothing seen": {"every allow statement is unused, each pair of ends once, and a future one does not count", nil, []string{
			apps + "* -> " + web + "one granted by all", apps + "1 -> " + redis + "a granted by again", apps + "2 -> " + redis + "a granted by idle",
			apps + "3 -> " + redis + "* granted by wide", apps + "3 -> " + redis + "b granted by narrow", apps + "4 -> " + redis + "* granted by unused",
			ranged + " -> " + redis + "b granted by net",
		}},
		"seen": {"what was refused comes first, then the most connections; used wildcards and ranges have no link of their own", []audit.Total{
			connected(apps+"1", redis+"a", policy.Allowed, 5, by("one")), connected(apps+"1", redis+"a", policy.Unmanaged, 2, policy.Ref{}),
			connected(apps+"3", redis+"b", policy.Allowed, 9, by("narrow")), connected("", redis+"b", policy.Allowed, 1, by("net")),
			connected(apps+"5", redis+"b", policy.DefaultDenied, 1, policy.Ref{}), connected(apps+"5", web+"one", policy.Audited, 3, policy.Ref{}),
			connected(apps+"6", "", policy.Unmanaged, 2, policy.Ref{}),
		}, []string{
			apps + "5 -> " + web + "one audited=3 granted by all", apps + "5 -> " + redis + "b default-denied=1",
			apps + "3 -> " + redis + "b allowed=9 granted by narrow", apps + "1 -> " + redis + "a allowed=5 unmanaged=2 granted by one",
			apps + "6 -> namespace=x unmanaged=2", "10.0.0.0/24 -> " + redis + "b allowed=1 granted by net",
			apps + "2 -> " + redis + "a granted by idle", apps + "4 -> " + redis + "* granted by unused",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			edges, _ := Edges(s, at, func(*Edge) bool { return true })
			traffic := NewTraffic(edges, at)
			for _, x := range tc.seen {
				traffic.Add(x)
			}
			links, cut := traffic.Links(func(*Edge) bool { return true })
			got := described(links)
			if d := cmp.Diff(tc.want, got); d != "" || cut {
				t.Errorf("%s: %v %s", tc.reason, cut, d)
			}
		})
	}
}

// TestTrafficUse checks when a grant counts as used: a refused connection is no use, and one that is let in without a statement is.
func TestTrafficUse(t *testing.T) {
	s := policy.NewSnapshot(world(acp("p", statementOf("a", policy.Allow, apps+"1", redis+"*"))))
	edges, _ := Edges(s, at, func(*Edge) bool { return true })
	for decision, unused := range map[policy.Verdict]bool{policy.Denied: true, policy.DefaultDenied: true, policy.Allowed: false, policy.Unmanaged: false} {
		traffic := NewTraffic(edges, at)
		traffic.Add(connected(apps+"1", redis+"a", decision, 4, policy.Ref{}))
		links, _ := traffic.Links(func(*Edge) bool { return true })
		if got := slices.Contains(described(links), apps+"1 -> "+redis+"* granted by a"); got != unused {
			t.Errorf("%s: the wildcard is shown as unused: %v", decision, got)
		}
		if seen := links[0]; seen.Grant == nil || !seen.LastSeen.Equal(at.Add(4*time.Minute)) || seen.LastUsed.IsZero() != unused {
			t.Errorf("%s: %+v", decision, seen)
		}
	}
	traffic := NewTraffic(edges, at)
	links, _ := traffic.Links(func(*Edge) bool { return false })
	if len(links) != 0 {
		t.Errorf("a statement that is not visible has links: %v", described(links))
	}
}

// TestTrafficIsBounded checks that a flood of sources does not fill the memory, and that the map says that it lacks some.
func TestTrafficIsBounded(t *testing.T) {
	traffic := NewTraffic(nil, at)
	for i := range MaxTrafficLinks + 10 {
		x := connected("", redis+"a", policy.Unmanaged, 1, policy.Ref{})
		x.Source = fmt.Sprint("10.", i)
		traffic.Add(x)
	}
	links, cut := traffic.Links(func(*Edge) bool { return true })
	if len(links) != MaxTrafficLinks || !cut {
		t.Errorf("%d links, cut %v", len(links), cut)
	}
}

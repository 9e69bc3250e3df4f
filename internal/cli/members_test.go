package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portalclient"
)

func TestPrintMembers(t *testing.T) {
	var many []portalclient.ClusterState
	for i := range 500 {
		many = append(many, portalclient.ClusterState{Cluster: fmt.Sprintf("m%03d", i), State: portalclient.ClusterStateStateRealized})
	}
	many[400] = portalclient.ClusterState{Cluster: "m400", State: portalclient.ClusterStateStateUnreachable, Message: new(message.Verbatim("away"))}
	states := map[string]int{"Realized": 30, "Pending": 10}
	for name, tc := range map[string]struct {
		reason  string
		members []portalclient.ClusterState
		counts  *portalclient.MemberCounts
		lines   int
		first   []string
		last    string
	}{
		"Few":  {"as they come", many[:3], nil, 3, []string{"  m000       Realized"}, "  m002       Realized"},
		"Many": {"the worst first", many, nil, 22, []string{"  500 members: 1 Unreachable, 499 Realized", "  m400       Unreachable: away"}, "  and 480 more"},
		"Unlisted": {"more than are listed", many[:3], &portalclient.MemberCounts{Total: 40, Listed: 3, States: &states}, 5,
			[]string{"  40 members: 10 Pending, 30 Realized"},
			"  and 37 more, which the host cluster counts and has no room to list"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			printMembers(&out, tc.members, tc.counts)
			lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			if len(lines) != tc.lines || lines[len(lines)-1] != tc.last || !strings.HasPrefix(out.String(), strings.Join(tc.first, "\n")+"\n") {
				t.Errorf("%s: %d lines:\n%s", tc.reason, len(lines), out.String())
			}
		})
	}
}

// TestPrintNodes checks that the nodes of an item are printed with those that lag, and that nothing is printed if they are not known.
func TestPrintNodes(t *testing.T) {
	var out strings.Builder
	printNodes(&out, nil)
	if out.String() != "" {
		t.Errorf("nodes that are not known are printed: %q", out.String())
	}
	printNodes(&out, &portalclient.NodeSummary{
		Messages: []portalclient.Message{message.NodesRealized(1, 3)},
		Clusters: []portalclient.MemberNodes{
			{Message: message.NodesMember("m1", 1, 3, []message.Message{message.NodesLagging(message.NamesList([]string{"n2", "n3"}))})},
		},
	})
	if want := "  Realized on 1 of 3 nodes.\n    m1: realized on 1 of 3 nodes; lagging: n2, n3\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

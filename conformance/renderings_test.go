package conformance

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"os"
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// rendered is a line of the file that the translator's own tests keep up to date.
type rendered struct {
	Destination map[string]string         `json:"destination"`
	Specs       map[string]map[string]any `json:"specs"`
	Groups      map[string]struct {
		Labels map[string]string `json:"labels"`
		Spec   struct {
			ExternalCIDRs []netip.Prefix `json:"externalCIDRs"`
		} `json:"spec"`
	} `json:"groups"`
	Connections []struct {
		Source        map[string]string `json:"source"`
		SourceCluster string            `json:"sourceCluster"`
		Address       string            `json:"address"`
		Reserved      string            `json:"reserved"`
		Protocol      v1alpha1.Protocol `json:"protocol"`
		Port          uint16            `json:"port"`
		Pass          bool              `json:"pass"`
		Word          policy.Verdict    `json:"verdict"`
	} `json:"connections"`
}

// The translator's tests have no engine; what they say about it is checked here.
func TestRenderingsOfTheTranslatorsTests(t *testing.T) {
	text, err := os.ReadFile("../internal/enforcer/cilium/testdata/conformance.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for i, line := range bytes.Split(bytes.TrimSpace(text), []byte("\n")) {
		var w rendered
		if err := json.Unmarshal(line, &w); err != nil {
			t.Fatalf("line %d: %v", i+1, err)
		}
		objects := Objects{Policies: w.Specs, Groups: map[string]Group{}}
		for name, g := range w.Groups {
			objects.Groups[name] = Group{Labels: g.Labels, Prefixes: g.Spec.ExternalCIDRs}
		}
		var sources []Source
		for _, c := range w.Connections {
			s := Source{Labels: c.Source, Cluster: c.SourceCluster, Address: c.Address, Reserved: c.Reserved}
			switch {
			case s.Cluster == "c1": // the member of the file
				s.Cluster = Here
			case s.Cluster == "" && s.Address == "" && s.Reserved == "":
				s.Reserved = "world-ipv4"
			}
			sources = append(sources, s)
		}
		m, err := newMember(objects, sources, []map[string]string{w.Destination})
		if err != nil {
			t.Fatalf("line %d: %v", i+1, err)
		}
		for j, c := range w.Connections {
			got, err := m.engine.decide(m.sources[j], m.destinations[0], protocols[c.Protocol], c.Port)
			if err != nil {
				t.Fatalf("line %d: %v", i+1, err)
			}
			compared++
			if got.Pass != c.Pass {
				t.Errorf("line %d, connection %d is %s: Cilium lets it through: %v, want %v", i+1, j, c.Word, got.Pass, c.Pass)
			}
		}
	}
	if compared < 1000 {
		t.Errorf("only %d connections were compared", compared)
	}
}

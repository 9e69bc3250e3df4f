package conformance

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/policy"
)

// The page says that this is so. When it no longer is, the comparison must stop leaving it out.
func TestLimitRequestsInAudit(t *testing.T) {
	c := read(t, "testdata/limits/requests-in-audit.yaml")
	s := policy.NewSnapshot(*c.Input)
	objects, err := Translate(s, c.At)
	if err != nil {
		t.Fatal(err)
	}
	m, err := newMember(objects, []Source{c.Connection.Source}, []map[string]string{c.Connection.Destination})
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.engine.decide(m.sources[0], m.destinations[0], protocols[c.Connection.Protocol], c.Connection.Port)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(verdict{Pass: true}, got); diff != "" {
		t.Errorf("%s, so nobody looks at the requests: -want +got:\n%s", c.Why, diff)
	}
	q := query(s, c.Connection, c.At)
	if word := s.Decide(q).Word; word != c.Word {
		t.Errorf("while the request is not known it is %s, want %s", word, c.Word)
	}
	q.Method, q.Path = "DELETE", "/orders/1"
	if word := s.Decide(q).Word; word != policy.DefaultDenied {
		t.Errorf("a request that nobody allowed is %s, want %s", word, policy.DefaultDenied)
	}
}

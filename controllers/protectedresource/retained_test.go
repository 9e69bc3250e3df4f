package protectedresource

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
)

// TestChangeOfDataplaneNeverOpensAMember checks that a change of the class's dataplane does not open a member where the new
// one enforces nothing: the former object stays there, and gets every change, until the new dataplane enforces.
func TestChangeOfDataplaneNeverOpensAMember(t *testing.T) {
	const ciliumName, istioName = v1alpha1.EnforcerCilium, v1alpha1.EnforcerIstio
	for _, c := range []struct {
		reason   string
		from, to v1alpha1.EnforcerName
	}{
		{"from Cilium to Istio", ciliumName, istioName},
		{"from Istio to Cilium", istioName, ciliumName},
	} {
		t.Run(c.reason, func(t *testing.T) {
			from, to := kindOf(c.from), kindOf(c.to)
			s := newScene(t, "m1", "m2")
			s.enforcers, s.allowed = []v1alpha1.EnforcerName{c.from}, []string{"1", "2"}
			s.settle()
			if diff := cmp.Diff([]string{"m1", "m2"}, s.closed(from)); diff != "" {
				t.Fatalf("-want +got\n%s", diff)
			}
			if !s.letsIn(from, "2") {
				t.Fatal("nobody is let in to begin with")
			}
			s.enforcers = []v1alpha1.EnforcerName{c.to}
			s.lacking, s.members = map[string]string{"m1": "it declares no Istio"}, unsound{"m1": "its agents only log"}
			states := s.settle()
			if diff := cmp.Diff([]string{"m1"}, s.closed(from)); diff != "" {
				t.Fatalf("what closes m1 has to stay, and in m2 it is replaced: -want +got\n%s", diff)
			}
			if diff := cmp.Diff([]string{"m1", "m2"}, s.closed(to)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if m := states["m1"]; m.State != v1alpha1.MemberPending || !strings.Contains(m.Message, "still closes it") {
				t.Errorf("%+v", m)
			}
			if m := states["m2"]; m.State != v1alpha1.MemberRealized {
				t.Errorf("%+v", m)
			}

			s.allowed = []string{"1"} // a revocation
			s.settle()
			if s.letsIn(from, "2") {
				t.Error("what stays in m1 still lets the revoked application in")
			}
			if diff := cmp.Diff([]string{"m1"}, s.closed(from)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}

			s.lacking, s.members = nil, sound{}
			if m := s.settle()["m1"]; m.State != v1alpha1.MemberRealized {
				t.Errorf("%+v", m)
			}
			if diff := cmp.Diff([]string(nil), s.closed(from), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("nothing is left of it: -want +got\n%s", diff)
			}
			if slices.ContainsFunc(s.existing, func(e *federation.Object) bool { return e.Kind == from }) {
				t.Error("its object stays on the host")
			}
		})
	}
}

// TestReplacedRenderingEndsWithEnforce checks that a member that changes to Audit is opened, whichever dataplane closed it.
func TestReplacedRenderingEndsWithEnforce(t *testing.T) {
	s := newScene(t, "m1")
	s.settle()
	s.enforcers, s.lacking = []v1alpha1.EnforcerName{v1alpha1.EnforcerIstio}, map[string]string{"m1": "it declares no Istio"}
	s.settle()
	if len(s.closed(federation.CiliumPolicy)) != 1 {
		t.Fatal("m1 was opened")
	}
	s.spec.Mode = v1alpha1.ModeAudit
	s.settle()
	if len(s.closed(federation.CiliumPolicy)) != 0 {
		t.Error("m1 is closed still")
	}
}

// letsIn reports whether m1 has an object of a kind that names an application.
func (s *scene) letsIn(kind federation.Kind, app string) bool {
	for _, e := range s.existing {
		text, err := json.Marshal(e.SpecIn("m1"))
		if err != nil {
			s.Fatal(err)
		}
		if e.Kind == kind && (strings.Contains(string(text), `"`+app+`"`) || strings.Contains(string(text), "/app-"+app)) {
			return true
		}
	}
	return false
}

package direct

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
)

// oneClient is the client of every member.
type oneClient struct{ dynamic.Interface }

func (c oneClient) Of(context.Context, federation.Cluster) (dynamic.Interface, error) { return c, nil }
func (oneClient) Forget(string)                                                       {}

// ownMember is a registry with one member of the engine, which KubeFed cannot reach.
type ownMember struct{ oneMember }

func (ownMember) Cluster(name string) (federation.Cluster, bool) {
	return federation.Cluster{Name: name, Engine: federation.EngineDirect, Secret: federation.DirectSecretName(name)}, true
}

// unansweredScene is an engine with one object in one member, whose requests are counted.
type unansweredScene struct {
	engine *Engine
	clock  *clocktesting.FakeClock
	object *federation.Object
	at     place
	// requests are the verbs of the changes, and err is the result of the next ones.
	requests []string
	err      error
}

// newUnansweredScene returns a scene in which the member has the revision r2, or nothing, exactly as recorded.
func newUnansweredScene(t *testing.T, placed bool, results result) *unansweredScene {
	t.Helper()
	s := &unansweredScene{clock: clocktesting.NewFakeClock(time.Unix(1_000_000, 0))}
	s.object = &federation.Object{Kind: federation.CiliumPolicy, Meta: metav1.ObjectMeta{Name: "acp-x", UID: "u", Generation: 2},
		TemplateLabels: map[string]string{v1alpha1.LabelRevision: "r2"}, TemplateSpec: map[string]any{}}
	members := ownMember{oneMember{seen: federation.Observation{Registered: true, Reachable: true}}}
	if placed {
		s.object.Placement = []string{"m1"}
		members.seen.Object = &federation.Observed{Name: "acp-x", Revision: "r2", Label: "r2", Managed: true, KubeFed: true}
	}
	client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
	client.PrependReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		switch a.GetVerb() {
		case "patch":
			s.requests = append(s.requests, "patch")
			got := target(s.object, "m1")
			got.SetResourceVersion("7")
			return true, got, s.err
		case "delete":
			s.requests = append(s.requests, "delete")
			if s.err != nil {
				return true, nil, s.err
			}
		}
		return true, &unstructured.Unstructured{}, apierrors.NewNotFound(federation.CiliumPolicy.TargetResource.GroupResource(), "acp-x")
	})
	metrics, err := NewMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	s.engine, err = New(Config{Of: "policies", Host: oneObject{object: s.object}, Members: members, Clients: oneClient{client}, Metrics: metrics,
		Clock: s.clock, Revision: func(map[string]any) string { return "r2" }})
	if err != nil {
		t.Fatal(err)
	}
	s.at = place{"m1", s.object.Key()}
	results.uid, results.generation = "u", 2
	if results.unanswered != nil {
		results.uncertain = s.clock.Now().Add(uncertainty)
	}
	s.engine.results[s.at] = results
	return s
}

// TestUnansweredRequestOfAnotherVersion checks that a version that a request without an answer may still replace is not reported as lasting until the
// request cannot take effect any more and the object was written once more, because an observation may be older than the effect of the request.
func TestUnansweredRequestOfAnotherVersion(t *testing.T) {
	for _, c := range []struct {
		reason     string
		placed     bool
		unanswered []string
		verbs      []string
	}{
		{"a grant that was revoked meanwhile", true, []string{"r1"}, []string{"patch"}},
		{"a removal", true, []string{""}, []string{"patch"}},
		{"the creation of an object that was removed meanwhile", false, []string{"r1"}, []string{"delete"}},
		{"the same version again", true, []string{"r2"}, nil},
		{"the same version again, and another one", true, []string{"r2", "r1"}, []string{"patch"}},
		{"none", true, nil, nil},
	} {
		t.Run(c.reason, func(t *testing.T) {
			s := newUnansweredScene(t, c.placed, result{unanswered: c.unanswered})
			mayRevert := c.verbs != nil
			check := func(when string, want bool) {
				t.Helper()
				if got := s.engine.Report(s.object, "m1"); got.MayRevert != want {
					t.Errorf("%s: %+v, want MayRevert %t", when, got, want)
				}
			}
			check("at first", mayRevert)
			again := s.engine.handle(t.Context(), s.at)
			if len(s.requests) > 0 || again.failed || (again.after > 0) != (c.unanswered != nil) {
				t.Fatalf("%q requested, and again %+v", s.requests, again)
			}
			s.clock.Step(again.after + time.Millisecond)
			check("while the object was not written once more", mayRevert)
			if again := s.engine.handle(t.Context(), s.at); again != (next{}) {
				t.Errorf("handled again %+v, want only after an event", again)
			}
			if !slices.Equal(s.requests, c.verbs) {
				t.Errorf("requests %q, want %q", s.requests, c.verbs)
			}
			check("afterwards", false)
			if got := s.engine.Report(s.object, "m1"); !got.Handled {
				t.Errorf("%+v, want handled", got)
			}
		})
	}
}

// TestUncertainErrors checks after which errors a request may still take effect.
func TestUncertainErrors(t *testing.T) {
	policies := federation.CiliumPolicy.TargetResource.GroupResource()
	for _, c := range []struct {
		err       error
		uncertain bool
	}{
		{context.DeadlineExceeded, true},
		{errors.New("connection reset"), true},
		{apierrors.NewInternalError(errors.New("no")), true},
		{apierrors.NewServiceUnavailable("the proxy lost the API server"), true},
		{apierrors.NewGenericServerResponse(502, "patch", policies, "acp-x", "", 0, true), true},
		{apierrors.NewForbidden(policies, "acp-x", nil), false},
		{apierrors.NewTooManyRequests("later", 1), false},
	} {
		s := newUnansweredScene(t, true, result{})
		s.object.TemplateLabels[v1alpha1.LabelRevision] = "r3" // what the member does not have
		s.err = c.err
		s.engine.handle(t.Context(), s.at)
		r := s.engine.results[s.at]
		if slices.Equal(r.unanswered, []string{"r3"}) != c.uncertain || r.uncertain.IsZero() == c.uncertain {
			t.Errorf("%v: %+v, want uncertain %t", c.err, r, c.uncertain)
		}
	}
}

// TestRefusedRepetitionEndsTheUncertainty checks that a member which refuses the write after the uncertainty is handled, as any other that refuses.
func TestRefusedRepetitionEndsTheUncertainty(t *testing.T) {
	s := newUnansweredScene(t, true, result{unanswered: []string{"r1"}})
	s.clock.Step(uncertainty + time.Millisecond)
	s.err = apierrors.NewForbidden(federation.CiliumPolicy.TargetResource.GroupResource(), "acp-x", nil)
	s.engine.handle(t.Context(), s.at)
	if got := s.engine.Report(s.object, "m1"); got.MayRevert || !got.Handled || got.Reason != string(metav1.StatusReasonForbidden) {
		t.Errorf("%+v", got)
	}
}

package controllers_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/tracing"
)

// tracedScenario is a scenario whose adapter records spans.
type tracedScenario struct {
	*scenario
	recorder *tracetest.SpanRecorder
}

func (s *tracedScenario) policyName() string { return policy.PolicyNameFor(string(s.resource())) }

// position starts a trace, as the portal does, and returns the trace's id and an entry of the annotation for the sid.
func (s *tracedScenario) position(sid string) (id, annotation string) {
	s.Helper()
	ctx, span := tracing.New(sdk.NewTracerProvider()).Start(s.ctx, "host.write")
	span.End()
	position := tracing.Position(ctx)
	return tracing.ID(position), tracing.AddChanges("", s.clock.Now(), tracing.Change{SID: sid, Position: position, At: s.clock.Now()})
}

// spans returns the ended spans of a trace by name.
func (s *tracedScenario) spans(id string) map[string][]sdk.ReadOnlySpan {
	out := map[string][]sdk.ReadOnlySpan{}
	for _, x := range s.recorder.Ended() {
		if x.SpanContext().TraceID().String() == id {
			out[x.Name()] = append(out[x.Name()], x)
		}
	}
	return out
}

func (s *tracedScenario) untilSpans(id string, want map[string]int) map[string][]sdk.ReadOnlySpan {
	s.Helper()
	s.until("the trace has its spans", func() string {
		for name, n := range want {
			if got := len(s.spans(id)[name]); got < n {
				return fmt.Sprintf("%d %s, want %d", got, name, n)
			}
		}
		return ""
	})
	return s.spans(id)
}

func spanAttribute(x sdk.ReadOnlySpan, key attribute.Key) string {
	for _, a := range x.Attributes() {
		if a.Key == key {
			return a.Value.String()
		}
	}
	return ""
}

// TestTraceEndsWithTheReadBack follows a grant and its revocation from the annotation of the portal's policy to the members.
func TestTraceEndsWithTheReadBack(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	shared.tracer = tracing.New(sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder)))
	if err := shared.restart(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		shared.tracer = nil
		if err := shared.restart(); err != nil {
			t.Error(err)
		}
	})
	s := &tracedScenario{newScenario(t, shared, "traces"), recorder}
	s.protect(v1alpha1.ModeEnforce)
	grant, annotation := s.position("t-1-1")
	s.create(
		&v1alpha1.AccessControlPolicy{
			ObjectMeta: metav1.ObjectMeta{
				Name:        s.policyName(),
				Annotations: map[string]string{v1alpha1.AnnotationTraces: "garbage, ,x 00-0-0-00 1," + annotation},
			},
			Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{s.statement("t-1-1", "888")}},
		},
	)
	// The same annotation at a policy that is not the portal's is not read.
	foreign, other := s.position("one")
	s.create(&v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: s.service, Annotations: map[string]string{v1alpha1.AnnotationTraces: other}},
		Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{s.statement("one", "999")}}})
	s.untilPlaced("m1", "m2")
	s.pushUntilStates("both members are realized", bothRealized)
	got := s.untilSpans(grant, map[string]int{"unit.reconcile": 1, "unit.compile": 1, "unit.realize": 1, "member.realize": 2})
	var members []string
	for _, x := range got["member.realize"] {
		members = append(members, spanAttribute(x, tracing.Member))
		if x.Parent().SpanID() != got["unit.realize"][0].SpanContext().SpanID() || spanAttribute(x, tracing.MemberState) != string(v1alpha1.MemberRealized) {
			t.Errorf("%v of %v", x.Attributes(), x.Parent())
		}
	}
	if slices.Sort(members); !slices.Equal(members, []string{"m1", "m2"}) {
		t.Errorf("read back from %v", members)
	}
	if x := got["unit.realize"][0]; spanAttribute(x, tracing.Members) != "2" || spanAttribute(x, tracing.MembersTotal) != "2" {
		t.Errorf("%v", x.Attributes())
	}
	if n := len(s.spans(foreign)); n != 0 {
		t.Errorf("%d kinds of spans continue the trace of a policy that is not the portal's", n)
	}
	written, o := s.federated()
	changes := tracing.ParseChanges(o.Meta.Annotations[v1alpha1.AnnotationTraces], s.clock.Now())
	if len(changes) != 1 || tracing.ID(changes[0].Position) != grant {
		t.Errorf("the federated object has %q", o.Meta.Annotations[v1alpha1.AnnotationTraces])
	}

	// A new position alone causes no write.
	again, annotation := s.position("t-1-1")
	change(
		s.scenario,
		s.host,
		&v1alpha1.AccessControlPolicy{},
		s.policyName(),
		func(p *v1alpha1.AccessControlPolicy) { p.Annotations[v1alpha1.AnnotationTraces] = annotation },
	)
	change(
		s.scenario,
		s.host,
		&v1alpha1.ProtectedResource{},
		s.service,
		func(p *v1alpha1.ProtectedResource) { p.Annotations = map[string]string{"look": "again"} },
	)
	got = s.untilSpans(again, map[string]int{"unit.reconcile": 1, "unit.realize": 1})
	if what := spanAttribute(got["unit.reconcile"][0], tracing.Outcome); what != "unchanged" || len(got["unit.write"]) != 0 {
		t.Errorf("the reconcile says %q, and there are %d writes", what, len(got["unit.write"]))
	}
	if now, _ := s.federated(); now.GetResourceVersion() != written.GetResourceVersion() {
		// The test acts as KubeFed, so there is no other writer.
		if now.GetGeneration() != written.GetGeneration() ||
			now.GetAnnotations()[v1alpha1.AnnotationTraces] != written.GetAnnotations()[v1alpha1.AnnotationTraces] {
			t.Errorf("the federated object was written for a trace: %v", now.GetAnnotations())
		}
	}

	// An adapter does not trace again at its start what is realized. The revocation is a change of its own.
	if err := shared.restart(); err != nil {
		t.Fatal(err)
	}
	begun := len(recorder.Started())
	s.clock.Step(2 * time.Second)
	revocation, annotation := s.position("t-1-1")
	change(s.scenario, s.host, &v1alpha1.AccessControlPolicy{}, s.policyName(), func(p *v1alpha1.AccessControlPolicy) {
		p.Annotations[v1alpha1.AnnotationTraces], p.Spec.Statements = annotation, nil
	})
	s.untilSpans(revocation, map[string]int{"unit.reconcile": 1, "unit.write": 1})
	s.pushUntilStates("both members have the revocation", bothRealized)
	s.untilSpans(revocation, map[string]int{"unit.realize": 1, "member.realize": 2})
	for _, x := range recorder.Started()[begun:] {
		if id := x.SpanContext().TraceID().String(); id != revocation {
			t.Errorf("%s of trace %s began after the restart", x.Name(), id)
		}
	}
}

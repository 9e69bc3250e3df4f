package host_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/portal/host"
	"github.com/acp-io/acp/internal/portal/portaltest"
	"github.com/acp-io/acp/internal/tracing"
)

// The annotation with the positions of traces comes with changes of statements only, and never causes a write.
func TestTracesAreWrittenWithChangesOnly(t *testing.T) {
	h := newHost(t, portaltest.APIServer(t, true))
	w := h.Writer()
	tracer := tracing.New(sdk.NewTracerProvider())
	plain := t.Context()
	traced, span := tracer.Start(plain, "one")
	defer span.End()
	later, second := tracer.Start(plain, "two")
	defer second.End()
	live := func() (version string, annotations map[string]string) {
		t.Helper()
		p, err := h.Live(plain, "p")
		if err != nil {
			t.Fatal(err)
		}
		return p.ResourceVersion, p.Annotations
	}
	one := []v1alpha1.Statement{statement("t-1-1", portaltest.BobsCluster)}

	if _, err := w.Put(plain, "p", portaltest.BobsCluster, one, yes); err != nil {
		t.Fatal(err)
	}
	if _, a := live(); a[v1alpha1.AnnotationTraces] != "" {
		t.Errorf("nothing is traced: %v", a)
	}
	before, was := live()
	if _, err := w.Put(traced, "p", portaltest.BobsCluster, one, yes); err != nil {
		t.Fatal(err)
	}
	if now, a := live(); now != before || !maps.Equal(a, was) {
		t.Errorf("a write that changes nothing was made for the trace: %v", a)
	}
	if _, err := w.Put(traced, "p", portaltest.BobsCluster, []v1alpha1.Statement{statement("t-2-1", portaltest.BobsCluster)}, yes); err != nil {
		t.Fatal(err)
	}
	_, a := live()
	changes := tracing.ParseChanges(a[v1alpha1.AnnotationTraces], time.Now())
	if len(changes) != 1 || changes[0].SID != "t-2-1" || changes[0].Position != tracing.Position(traced) {
		t.Errorf("the change is not there: %v", a)
	}
	if _, err := w.Drop(later, "p", portaltest.BobsCluster, []string{"t-1-1"}, yes); err != nil {
		t.Fatal(err)
	}
	_, a = live()
	changes = tracing.ParseChanges(a[v1alpha1.AnnotationTraces], time.Now())
	if len(changes) != 2 || changes[0].SID != "t-1-1" || changes[0].Position != tracing.Position(later) || changes[1].SID != "t-2-1" {
		t.Errorf("a removal is a change, too: %v", a)
	}
	// A removal that finds nothing changes the fence, and no statement.
	if _, err := w.Drop(later, "p", portaltest.BobsCluster, []string{"t-9-1"}, yes); err != nil {
		t.Fatal(err)
	}
	if _, now := live(); now[v1alpha1.AnnotationTraces] != a[v1alpha1.AnnotationTraces] {
		t.Errorf("nothing was removed: %v", now)
	}
}

// The portal removes entries of the annotation that it did not write, and bounds the size of the annotation.
func TestForeignTracesAreReplaced(t *testing.T) {
	h := newHost(t, portaltest.APIServer(t, true))
	w := h.Writer()
	traced, span := tracing.New(sdk.NewTracerProvider()).Start(t.Context(), "one")
	defer span.End()
	put := func(w *host.Writer, sid string) {
		t.Helper()
		if _, err := w.Put(traced, "p", portaltest.BobsCluster, []v1alpha1.Statement{statement(sid, portaltest.BobsCluster)}, yes); err != nil {
			t.Fatal(err)
		}
	}
	put(w, "t-1-1")
	p, err := h.Live(t.Context(), "p")
	if err != nil {
		t.Fatal(err)
	}
	p = p.DeepCopy()
	p.Annotations[v1alpha1.AnnotationTraces] = strings.Repeat("<script>,", 10_000)
	if err := w.Client.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	for i := range tracing.MaxChanges + 3 {
		put(w, fmt.Sprintf("t-%d-1", i+2))
	}
	if p, err = h.Live(t.Context(), "p"); err != nil {
		t.Fatal(err)
	}
	a := p.Annotations[v1alpha1.AnnotationTraces]
	if n := len(tracing.ParseChanges(a, time.Now())); n != tracing.MaxChanges || len(a) > tracing.MaxAnnotation || strings.Contains(a, "script") {
		t.Errorf("%d changes in %d bytes: %s", n, len(a), a)
	}
}

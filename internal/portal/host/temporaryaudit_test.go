package host_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/externalchanges"
	"github.com/acp-io/acp/internal/portal/host"
	"github.com/acp-io/acp/internal/rollout"
	"github.com/acp-io/acp/internal/waves"
)

const bobs = "trnv1:rsc:trip-com:redis:clusters:bobs-cluster"

func protection(mode v1alpha1.Mode, audit *v1alpha1.TemporaryAudit) *v1alpha1.ProtectedResource {
	return &v1alpha1.ProtectedResource{
		ObjectMeta: metav1.ObjectMeta{Name: "bobs"},
		Spec:       v1alpha1.ProtectedResourceSpec{Resource: bobs, Mode: mode, TemporaryAudit: audit},
	}
}

func offline(t *testing.T, f interceptor.Funcs, objects ...client.Object) *host.Writer {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return &host.Writer{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(f).Build()}
}

func TestSetTemporaryAudit(t *testing.T) {
	until := metav1.NewTime(time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC))
	audit := &v1alpha1.TemporaryAudit{Until: until, Reason: "an outage", By: "bob"}
	agree := func(context.Context, v1alpha1.ProtectedResourceSpec) error { return nil }
	ctx := t.Context()

	w := offline(t, interceptor.Funcs{}, protection(v1alpha1.ModeEnforce, nil))
	o, err := w.SetTemporaryAudit(ctx, "bobs", "", audit, agree)
	if err != nil || cmp.Diff(audit, o.Spec.TemporaryAudit) != "" {
		t.Fatalf("it begins: %+v, %v", o, err)
	}
	if again, err := w.SetTemporaryAudit(ctx, "bobs", o.ResourceVersion, audit, agree); err != nil || again.ResourceVersion != o.ResourceVersion {
		t.Errorf("the same again writes nothing: %v", err)
	}
	if _, err := w.SetTemporaryAudit(ctx, "bobs", "1", nil, agree); !errors.Is(err, rollout.ErrChanged) {
		t.Errorf("who saw another object is refused: %v", err)
	}
	no := errors.New("no")
	if _, err := w.SetTemporaryAudit(ctx, "bobs", "", nil, func(context.Context, v1alpha1.ProtectedResourceSpec) error { return no }); !errors.Is(err, no) {
		t.Errorf("the check's error is returned as it is: %v", err)
	}
	o, err = w.SetTemporaryAudit(ctx, "bobs", o.ResourceVersion, nil, agree)
	if err != nil || o.Spec.TemporaryAudit != nil || o.Spec.Mode != v1alpha1.ModeEnforce {
		t.Errorf("it ends, and nothing else changes: %+v, %v", o, err)
	}
	if _, err := w.SetTemporaryAudit(ctx, "others", "", audit, agree); !errors.Is(err, rollout.ErrGone) {
		t.Errorf("what is not onboarded cannot be opened: %v", err)
	}
}

// TestProtectedResources checks that all pages are read, and that the statuses are left out.
func TestProtectedResources(t *testing.T) {
	pages := map[string]string{"": "second", "second": ""}
	w := offline(t, interceptor.Funcs{List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		var o client.ListOptions
		o.ApplyOptions(opts)
		p := protection(v1alpha1.ModeEnforce, nil)
		p.Name, p.Status.ObservedGeneration = "page "+o.Continue, 7
		list.(*v1alpha1.ProtectedResourceList).Items = []v1alpha1.ProtectedResource{*p}
		list.SetContinue(pages[o.Continue])
		return nil
	}})
	got, err := w.ProtectedResources(t.Context())
	if err != nil || len(got) != 2 || got[0].Name != "page " || got[1].Name != "page second" || got[1].Spec.Mode != v1alpha1.ModeEnforce ||
		got[1].Status.ObservedGeneration != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestSetTemporaryAuditMeanwhile checks that a concurrent change is kept, unless the caller named the version that they saw.
func TestSetTemporaryAuditMeanwhile(t *testing.T) {
	audit := &v1alpha1.TemporaryAudit{Until: metav1.NewTime(time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)), Reason: "an outage", By: "bob"}
	for name, tc := range map[string]struct {
		reason  string
		version func(*host.Writer) string
		want    error
	}{
		"any":   {"read again", func(*host.Writer) string { return "" }, nil},
		"named": {"the caller did not see it", func(w *host.Writer) string { return current(t, w).ResourceVersion }, rollout.ErrChanged},
	} {
		t.Run(name, func(t *testing.T) {
			w := offline(t, interceptor.Funcs{}, protection(v1alpha1.ModeEnforce, nil))
			version, others := tc.version(w), 0
			_, err := w.SetTemporaryAudit(t.Context(), "bobs", version, audit, func(ctx context.Context, _ v1alpha1.ProtectedResourceSpec) error {
				if others++; others > 1 {
					return nil
				}
				o := current(t, w)
				o.Spec.ClusterModes = []v1alpha1.ClusterMode{{Cluster: "m1", Mode: v1alpha1.ModeAudit}}
				return w.Client.Update(ctx, o)
			})
			if !errors.Is(err, tc.want) {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			o := current(t, w)
			if len(o.Spec.ClusterModes) != 1 || (o.Spec.TemporaryAudit != nil) != (tc.want == nil) {
				t.Errorf("%s: %+v", tc.reason, o.Spec)
			}
		})
	}
}

func current(t *testing.T, w *host.Writer) *v1alpha1.ProtectedResource {
	t.Helper()
	var o v1alpha1.ProtectedResource
	if err := w.Client.Get(t.Context(), client.ObjectKey{Name: "bobs"}, &o); err != nil {
		t.Fatal(err)
	}
	return &o
}

// TestModeTicketsLeaveTheTemporaryAudit: a ticket is based on the mode, so a temporary audit that began meanwhile does not
// refuse it, and is still there afterwards.
func TestModeTicketsLeaveTheTemporaryAudit(t *testing.T) {
	audit := &v1alpha1.TemporaryAudit{Until: metav1.NewTime(time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)), Reason: "an outage", By: "bob"}
	w := offline(t, interceptor.Funcs{}, protection(v1alpha1.ModeAudit, audit))
	c := approval.Change{Kind: approval.ObjectProtectedResource, Name: "bobs", Verb: approval.VerbUpdate,
		Before: text(t, protection(v1alpha1.ModeAudit, nil).Spec), After: text(t, protection(v1alpha1.ModeEnforce, nil).Spec)}
	for range 2 {
		if _, err := w.Apply(t.Context(), c, yes); err != nil {
			t.Fatal(err)
		}
	}
	o := current(t, w)
	if o.Spec.Mode != v1alpha1.ModeEnforce || cmp.Diff(audit, o.Spec.TemporaryAudit) != "" {
		t.Errorf("%+v", o.Spec)
	}
	seen, err := host.Seen(t.Context(), w.Client, nil, c.Kind, c.Name)
	if err != nil || string(seen.Spec) != string(c.After) {
		t.Errorf("what the ticket's progress compares is the mode: %s, %v", seen.Spec, err)
	}
}

// TestInstruct checks that an instruction replaces the one before, changes nothing else, and is validated.
func TestInstruct(t *testing.T) {
	ctx := t.Context()
	o := protection(v1alpha1.ModeEnforce, nil)
	o.Annotations = map[string]string{"other": "kept"}
	w := offline(t, interceptor.Funcs{}, o)
	var noted []string // before they are written
	w.NoteInstruction = func(_ context.Context, i externalchanges.Instructed) {
		if i.Object == "bobs" && current(t, w).Annotations[v1alpha1.AnnotationRollout] != i.String() {
			noted = append(noted, i.ID)
		}
	}
	for n, action := range []waves.Action{waves.Pause, waves.Resume} {
		want := waves.New(action, "bob", "because", time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC))
		if err := w.Instruct(ctx, "bobs", want); err != nil {
			t.Fatal(err)
		}
		var now v1alpha1.ProtectedResource
		if err := w.Client.Get(ctx, client.ObjectKey{Name: "bobs"}, &now); err != nil {
			t.Fatal(err)
		}
		got, err := waves.InstructionOf(&now)
		if err != nil || cmp.Diff(&want, got) != "" || now.Annotations["other"] != "kept" || now.Spec.Mode != v1alpha1.ModeEnforce {
			t.Errorf("%+v, %v, %+v", got, err, now)
		}
		if len(noted) != n+1 || noted[n] != want.ID {
			t.Errorf("the instructions %v were noted as the portal's own", noted)
		}
	}
	if err := w.Instruct(ctx, "others", waves.New(waves.Pause, "bob", "because", time.Now())); !errors.Is(err, rollout.ErrGone) {
		t.Errorf("what is not onboarded has no waves: %v", err)
	}
	if err := w.Instruct(ctx, "bobs", waves.Instruction{Action: "odd"}); err == nil {
		t.Error("an instruction that is not valid is written")
	}
}

// TestInstructIsLater checks that an instruction gets a later time than the last one that the adapter has carried out, whose author may have had
// a clock that was ahead, and that exactly this instruction is noted as the portal's own.
func TestInstructIsLater(t *testing.T) {
	at := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	o := protection(v1alpha1.ModeEnforce, nil)
	last := metav1.NewMicroTime(at.Add(time.Hour))
	o.Status.Rollout = &v1alpha1.RolloutStatus{Instruction: "other", InstructionAt: &last}
	w := offline(t, interceptor.Funcs{}, o)
	noted := ""
	w.NoteInstruction = func(_ context.Context, i externalchanges.Instructed) { noted = i.String() }
	if err := w.Instruct(t.Context(), "bobs", waves.New(waves.Pause, waves.Guard, "because", at)); err != nil {
		t.Fatal(err)
	}
	now := current(t, w)
	if got, err := waves.InstructionOf(now); err != nil || !got.At.Equal(last.Add(time.Microsecond)) {
		t.Errorf("got %+v, %v, want a time after %s", got, err, last)
	}
	if now.Annotations[v1alpha1.AnnotationRollout] != noted {
		t.Errorf("noted %s, want %s", noted, now.Annotations[v1alpha1.AnnotationRollout])
	}
}

// TestGuardDoesNotReplacePeople checks that the guard replaces an instruction of a person only after the adapter has handled it.
func TestGuardDoesNotReplacePeople(t *testing.T) {
	at := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	person, guard := waves.New(waves.RollBack, "bob", "because", at), waves.New(waves.Pause, waves.Guard, "because", at.Add(time.Second))
	earlier := waves.New(waves.Pause, waves.Guard, "because", at.Add(-time.Second))
	for _, c := range []struct {
		reason  string
		present waves.Instruction
		handled string
		given   waves.Instruction
		want    string
	}{
		{"a person's that waits", person, earlier.ID, guard, person.ID},
		{"a person's that was handled", person, person.ID, guard, guard.ID},
		{"one of the guard", earlier, "", guard, guard.ID},
		{"a person replaces anything", person, "", waves.New(waves.Pause, "sam", "because", at), waves.New(waves.Pause, "sam", "because", at).ID},
	} {
		t.Run(c.reason, func(t *testing.T) {
			o := protection(v1alpha1.ModeEnforce, nil)
			o.Annotations = map[string]string{v1alpha1.AnnotationRollout: c.present.String()}
			o.Status.Rollout = &v1alpha1.RolloutStatus{Instruction: c.handled}
			w := offline(t, interceptor.Funcs{}, o)
			if err := w.Instruct(t.Context(), "bobs", c.given); err != nil {
				t.Fatal(err)
			}
			var now v1alpha1.ProtectedResource
			if err := w.Client.Get(t.Context(), client.ObjectKey{Name: "bobs"}, &now); err != nil {
				t.Fatal(err)
			}
			if got, err := waves.InstructionOf(&now); err != nil || got.ID != c.want {
				t.Errorf("got %+v, %v, want %s", got, err, c.want)
			}
		})
	}
}

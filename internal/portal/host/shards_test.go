package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/policy"
)

const shardedResource = "trnv1:rsc:o:redis:clusters:r"

// sharded is a writer to an API server that takes as many statements as the real one.
func sharded(t *testing.T) *Writer {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	bounded := func(o client.Object) error {
		if p, ok := o.(*v1alpha1.AccessControlPolicy); ok && len(p.Spec.Statements) > v1alpha1.MaxStatements {
			return apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind("AccessControlPolicy").GroupKind(), p.Name, nil)
		}
		return nil
	}
	return &Writer{Client: fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return errors.Join(bounded(o), c.Create(ctx, o, opts...))
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if err := bounded(o); err != nil {
				return err
			}
			return c.Update(ctx, o, opts...)
		},
	}).Build()}
}

func grantOf(sid string) v1alpha1.Statement {
	return v1alpha1.Statement{
		SID:       sid,
		Effect:    v1alpha1.EffectAllow,
		Subjects:  []v1alpha1.Subject{"trnv1:rsc:o:iam:sa:app/1"},
		Actions:   []v1alpha1.Action{"redis:connect"},
		Resources: []v1alpha1.ResourceName{shardedResource},
	}
}

func always(context.Context, bool) error { return nil }

// full makes a resource's first policies full.
func full(t *testing.T, w *Writer, shards int) (base string) {
	t.Helper()
	base = policy.PolicyNameFor(shardedResource)
	for n := 1; n <= shards; n++ {
		p := &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: policy.PolicyShard(base, n)}}
		for i := range v1alpha1.MaxStatements {
			p.Spec.Statements = append(p.Spec.Statements, grantOf(approval.SID(int64(n), i)))
		}
		if n == 1 && shards > 1 {
			p.Annotations = map[string]string{v1alpha1.AnnotationPolicyShards: fmt.Sprint(shards)}
		}
		if err := w.Client.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	return base
}

func sidsOf(t *testing.T, w *Writer, name string) (out []string) {
	t.Helper()
	p, _, err := w.read(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Spec.Statements {
		out = append(out, s.SID)
	}
	return out
}

func TestFullPolicyContinuesInAnother(t *testing.T) {
	for _, shards := range []int{1, 2} {
		w := sharded(t)
		base := full(t, w, shards)
		next := policy.PolicyShard(base, shards+1)
		var first approval.Written
		for range 2 { // a job is done again after a crash
			got, err := w.Put(t.Context(), base, shardedResource, []v1alpha1.Statement{grantOf("t-900-1")}, always)
			if err != nil {
				t.Fatal(err)
			}
			if first.Policy == "" {
				first = got
			}
			if got.Policy != next || got != first {
				t.Errorf("it was written to %+v, and before to %+v, want %s", got, first, next)
			}
		}
		if got := sidsOf(t, w, next); !slices.Equal(got, []string{"t-900-1"}) {
			t.Errorf("%s has %v", next, got)
		}
		// The ticket knows the shard only if its job was finished.
		for _, name := range []string{base, next} {
			if _, err := w.Put(t.Context(), base, shardedResource, []v1alpha1.Statement{grantOf("t-901-1")}, always); err != nil {
				t.Fatal(err)
			}
			got, err := w.Drop(t.Context(), name, shardedResource, []string{"t-901-1"}, always)
			if err != nil || got.Policy != next || slices.Contains(sidsOf(t, w, next), "t-901-1") {
				t.Errorf("dropped by the name %s: %+v %v", name, got, err)
			}
		}
		// Freed room is used before another policy is created.
		if _, err := w.Drop(t.Context(), base, shardedResource, []string{approval.SID(1, 7)}, always); err != nil {
			t.Fatal(err)
		}
		if got, err := w.Put(t.Context(), base, shardedResource, []v1alpha1.Statement{grantOf("t-902-1")}, always); err != nil || got.Policy != base {
			t.Errorf("there is room in the first: %+v %v", got, err)
		}
	}
}

// A worker that checked its ticket before a revocation does not write after it, whatever policy it was about to write.
func TestARevokedStatementIsNotWrittenToAnyPolicy(t *testing.T) {
	for name, shards := range map[string]int{"into the first": 0, "into a new one": 1, "into the next new one": 2} {
		t.Run(name, func(t *testing.T) {
			w := sharded(t)
			base := policy.PolicyNameFor(shardedResource)
			if shards > 0 {
				full(t, w, shards)
			}
			revoked := errors.New("the ticket no longer wants this")
			checks := 0
			_, err := w.Put(t.Context(), base, shardedResource, []v1alpha1.Statement{grantOf("t-900-1")}, func(ctx context.Context, _ bool) error {
				if checks++; checks > 1 {
					return revoked
				}
				_, err := w.Drop(ctx, base, shardedResource, []string{"t-900-1"}, always)
				return err
			})
			if !errors.Is(err, revoked) {
				t.Errorf("the write that was under way: %v", err)
			}
			for n := 1; n <= shards+1; n++ {
				if slices.Contains(sidsOf(t, w, policy.PolicyShard(base, n)), "t-900-1") {
					t.Errorf("the revoked statement is in shard %d", n)
				}
			}
		})
	}
}

// A middle policy that was deleted hides none after it.
func TestADeletedShardHidesNothing(t *testing.T) {
	w := sharded(t)
	base := full(t, w, 3)
	if err := w.Client.Delete(t.Context(), &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: policy.PolicyShard(base, 2)}}); err != nil {
		t.Fatal(err)
	}
	third := approval.SID(3, 4)
	if got, err := w.Drop(
		t.Context(), base, shardedResource, []string{third}, always,
	); err != nil || got.Policy != policy.PolicyShard(base, 3) || slices.Contains(sidsOf(t, w, got.Policy), third) {
		t.Errorf("%+v %v", got, err)
	}
	if err := w.Client.Delete(t.Context(), &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: base}}); err != nil {
		t.Fatal(err)
	}
	other := approval.SID(3, 5) // the first said how many there are, and the ticket says where its statement is
	if got, err := w.Drop(
		t.Context(), policy.PolicyShard(base, 3), shardedResource, []string{other}, always,
	); err != nil || slices.Contains(sidsOf(t, w, got.Policy), other) {
		t.Errorf("%+v %v", got, err)
	}
}

func TestPrune(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ended := func(sid string, ago time.Duration, effect v1alpha1.Effect) v1alpha1.Statement {
		s := grantOf(sid)
		s.Effect, s.NotAfter = effect, &metav1.Time{Time: now.Add(-ago)}
		return s
	}
	p := &v1alpha1.AccessControlPolicy{Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{
		ended("t-1-1", expiredKept+time.Second, v1alpha1.EffectAllow), ended("t-2-1", expiredKept-time.Second, v1alpha1.EffectAllow),
		ended("by-hand", 10*expiredKept, v1alpha1.EffectAllow), ended("t-3-1", 10*expiredKept, v1alpha1.EffectDeny), grantOf("t-4-1")}}}
	prune(p, now)
	var got []string
	for _, s := range p.Spec.Statements {
		got = append(got, s.SID)
	}
	if want := []string{"t-2-1", "by-hand", "t-3-1", "t-4-1"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestHasStatement(t *testing.T) {
	base := policy.PolicyNameFor(shardedResource)
	in := func(name, sid string, resource v1alpha1.ResourceName) *v1alpha1.AccessControlPolicy {
		s := grantOf(sid)
		s.Resources = []v1alpha1.ResourceName{resource}
		return &v1alpha1.AccessControlPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{s}},
		}
	}
	for reason, tc := range map[string]struct {
		policies []*v1alpha1.AccessControlPolicy
		want     bool
	}{
		"nothing":                     {nil, false},
		"its own":                     {[]*v1alpha1.AccessControlPolicy{in(base, "t-1-1", shardedResource)}, false},
		"its own, in another shard":   {[]*v1alpha1.AccessControlPolicy{in(base+".2", "t-1-1", shardedResource)}, false},
		"another ticket's":            {[]*v1alpha1.AccessControlPolicy{in(base, "t-2-1", shardedResource)}, true},
		"somebody's by the same sid":  {[]*v1alpha1.AccessControlPolicy{in("by-hand", "t-1-1", shardedResource)}, true},
		"one about all of them":       {[]*v1alpha1.AccessControlPolicy{in("by-hand", "x", "trnv1:rsc:o:redis:clusters:*")}, false},
		"one about another resource":  {[]*v1alpha1.AccessControlPolicy{in("by-hand", "x", shardedResource+"2")}, false},
		"an administrator's about it": {[]*v1alpha1.AccessControlPolicy{in("by-hand", "x", shardedResource)}, true},
	} {
		if got := hasStatement(tc.policies, shardedResource, "t-1-1"); got != tc.want {
			t.Errorf("%s: %v", reason, got)
		}
	}
}

package host_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/catalog/workloads"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/portal/host"
	"github.com/acp-io/acp/internal/portal/portaltest"
	"github.com/acp-io/acp/internal/testenv/eventually"
)

var platform = workloads.Actor{ID: "vm-platform", Machine: true}

// registration is a registrar on a real API server.
type registration struct {
	*workloads.Registrar
	c client.Client
	w *host.Workloads
	h *host.Host
}

func newRegistration(t testing.TB) *registration {
	t.Helper()
	config := portaltest.APIServer(t, true)
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), &v1alpha1.SubjectClass{ObjectMeta: metav1.ObjectMeta{Name: "application"},
		Spec: v1alpha1.SubjectClassSpec{Pattern: "trnv1:rsc:trip-com:iam:sa:app/*", LabelKey: "com.trip/appid"}}); err != nil {
		t.Fatal(err)
	}
	h, err := host.New(config, func(string) {}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	x := &registration{c: c, w: h.Workloads(), h: h}
	x.Registrar = workloads.New(
		workloads.Config{Cluster: x.w, State: x.w.State, Catalog: func() *catalog.Catalog { return catalog.Build(nil) }, Covered: h.SubjectCovered,
			Record: func(context.Context, ...ledger.Entry) error { return nil }, Now: time.Now},
	)
	eventually.True(t, "the host cluster was seen", func() bool {
		_, err := x.PreviewSync(t.Context(), platform, "vms", nil)
		return err == nil && h.Ready()
	})
	return x
}

func machines(n int) []workloads.Workload {
	out := make([]workloads.Workload, n)
	for i := range out {
		out[i] = workloads.Workload{ID: fmt.Sprintf("vm-%d.rack", i), Subject: fmt.Sprintf("trnv1:rsc:trip-com:iam:sa:app/%d", i%400),
			Addresses: []string{fmt.Sprintf("10.%d.%d.%d", 100+i/62500, i/250%250, i%250+1)}}
	}
	return out
}

// sync previews and applies; what was written last may not be seen yet, so it asks until it fits.
func (r *registration) sync(t testing.TB, in []workloads.Workload) workloads.Sync {
	t.Helper()
	var s workloads.Sync
	eventually.True(t, "a preview that fits", func() bool {
		p, err := r.PreviewSync(t.Context(), platform, "vms", in)
		if err != nil {
			t.Fatal(err)
		}
		s, err = r.ApplySync(t.Context(), platform, "vms", in, p.Token, true)
		return err == nil
	})
	return s
}

func TestWorkloads(t *testing.T) {
	x := newRegistration(t)
	ctx := t.Context()
	all := machines(200)
	if s := x.sync(t, all); s.Added != 200 || len(s.Refused) != 0 {
		t.Fatalf("%+v", s)
	}
	eventually.True(t, "all are seen", func() bool {
		s, err := x.PreviewSync(ctx, platform, "vms", all)
		return err == nil && s.Unchanged == 200
	})
	get := func(name string) *v1alpha1.ExternalWorkload {
		t.Helper()
		var o v1alpha1.ExternalWorkload
		if err := x.c.Get(ctx, client.ObjectKey{Name: name}, &o); err != nil {
			t.Fatal(err)
		}
		return &o
	}
	o := get("vms.vm-7.rack")
	if o.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedByPortal || o.Labels["acp.io/source"] != "vms" ||
		o.Spec.Subject != "trnv1:rsc:trip-com:iam:sa:app/7" ||
		!slices.Equal(o.Spec.Addresses, []string{"10.100.0.8"}) {
		t.Errorf("%+v", o)
	}

	// The cache is stale: the object is changed between reading and writing.
	o.Annotations = map[string]string{"team": "kept"}
	if err := x.c.Update(ctx, o); err != nil {
		t.Fatal(err)
	}
	moved := workloads.Workload{ID: "vm-7.rack", Subject: "trnv1:rsc:trip-com:iam:sa:app/9", Addresses: []string{"10.200.0.1"}, Description: "moved"}
	got, err := x.Put(ctx, platform, "vms", []workloads.Workload{moved})
	if err != nil || got[0].Outcome != workloads.Changed {
		t.Fatal(got, err)
	}
	if o = get(
		"vms.vm-7.rack",
	); o.Annotations["team"] != "kept" || o.Annotations["acp.io/description"] != "moved" || o.Spec.Subject != "trnv1:rsc:trip-com:iam:sa:app/9" {
		t.Errorf("what others wrote stays: %+v", o)
	}

	// The status is the adapter's word.
	o.Status.Conditions = []metav1.Condition{
		{
			Type:               v1alpha1.ConditionAccepted,
			Status:             metav1.ConditionFalse,
			Reason:             "Duplicate",
			Message:            "it is given to several",
			ObservedGeneration: o.Generation,
			LastTransitionTime: metav1.Now(),
		},
	}
	if err := x.c.Status().Update(ctx, o); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the status is seen", func() bool {
		list, _, err := x.List(platform, workloads.Query{Text: "vm-7.rack", Limit: 1})
		return err == nil && len(list) == 1 && list[0].Accepted != nil && !*list[0].Accepted && list[0].Message == "it is given to several"
	})

	// An administrator's object is left alone, also when the cache does not know it yet.
	theirs := &v1alpha1.ExternalWorkload{
		ObjectMeta: metav1.ObjectMeta{Name: "vms.theirs"},
		Spec:       v1alpha1.ExternalWorkloadSpec{Subject: "trnv1:rsc:trip-com:iam:sa:app/1", Addresses: []string{"10.201.0.1"}},
	}
	if err := x.c.Create(ctx, theirs); err != nil {
		t.Fatal(err)
	}
	got, err = x.Put(ctx, platform, "vms", []workloads.Workload{{ID: "theirs", Subject: "trnv1:rsc:trip-com:iam:sa:app/2", Addresses: []string{"10.201.0.2"}}})
	if err != nil || got[0].Outcome != workloads.Refused || !strings.Contains(got[0].Message.Text, "was not registered here") {
		t.Errorf("%+v, %v", got, err)
	}

	rest := all[:150]
	if s := x.sync(t, rest); s.Removed != 50 || s.Changed != 1 {
		t.Errorf("%+v", s)
	}
	var left v1alpha1.ExternalWorkloadList
	if err := x.c.List(ctx, &left); err != nil || len(left.Items) != 151 {
		t.Errorf("150 and the administrator's: %d, %v", len(left.Items), err)
	}
}

func TestGrantsOf(t *testing.T) {
	x := newRegistration(t)
	const app, cache = "trnv1:rsc:trip-com:iam:sa:app/1", "trnv1:rsc:trip-com:redis:clusters:cache"
	for _, o := range []client.Object{
		&v1alpha1.ResourceClass{ObjectMeta: metav1.ObjectMeta{Name: "redis"},
			Spec: v1alpha1.ResourceClassSpec{Pattern: "trnv1:rsc:trip-com:redis:clusters:*", LabelKey: "com.trip/redis",
				Actions:   []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379}}}},
				Placement: v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}}},
		&v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{
			{
				SID: "one", Effect: v1alpha1.EffectAllow, Subjects: []v1alpha1.Subject{app},
				Actions: []v1alpha1.Action{"redis:connect"}, Resources: []v1alpha1.ResourceName{cache},
			},
			{
				SID: "all", Effect: v1alpha1.EffectAllow, Subjects: []v1alpha1.Subject{"trnv1:rsc:trip-com:iam:sa:app/2"},
				Actions: []v1alpha1.Action{"redis:connect"}, Resources: []v1alpha1.ResourceName{"trnv1:rsc:trip-com:redis:clusters:*"},
			},
			{
				SID: "no", Effect: v1alpha1.EffectDeny, Subjects: []v1alpha1.Subject{app},
				Actions: []v1alpha1.Action{"redis:connect"}, Resources: []v1alpha1.ResourceName{cache},
			},
		}}},
	} {
		if err := x.c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	want := []catalog.Grant{{Subject: app, Resource: cache, Policy: "p", SID: "one"}}
	eventually.True(t, "the grant is seen from both ends", func() bool {
		return slices.Equal(x.h.GrantsOf(app), want) && slices.Equal(x.h.GrantsOf(cache), want)
	})
	if got := x.h.GrantsOf("trnv1:rsc:trip-com:redis:clusters:other"); len(got) != 0 {
		t.Errorf("what is given to all of a class is nobody's own: %v", got)
	}
}

// TestWorkloadsAreDeletedAsTheyWereSeen checks that an object that changed since it was read is not deleted, unless only its status changed.
func TestWorkloadsAreDeletedAsTheyWereSeen(t *testing.T) {
	x := newRegistration(t)
	ctx := t.Context()
	x.sync(t, machines(2))
	see := func() (out []workloads.Registered) {
		eventually.True(t, "both are seen", func() bool {
			var err error
			out, _, err = x.List(platform, workloads.Query{Limit: 10})
			return err == nil && len(out) == 2
		})
		return out
	}
	seen := see()
	for i, change := range []func(*v1alpha1.ExternalWorkload) error{
		func(o *v1alpha1.ExternalWorkload) error {
			o.Status.Conditions = []metav1.Condition{
				{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: "Accepted", LastTransitionTime: metav1.Now()},
			}
			return x.c.Status().Update(ctx, o)
		},
		func(o *v1alpha1.ExternalWorkload) error {
			o.Spec.Addresses = []string{"10.250.0.1"}
			return x.c.Update(ctx, o)
		},
	} {
		var o v1alpha1.ExternalWorkload
		if err := x.c.Get(ctx, client.ObjectKey{Name: seen[i].Object}, &o); err != nil {
			t.Fatal(err)
		}
		if err := change(&o); err != nil {
			t.Fatal(err)
		}
	}
	errs := x.w.Delete(ctx, seen)
	if errs[0] != nil {
		t.Errorf("a new status does not matter: %v", errs[0])
	}
	if errs[1] == nil || !strings.Contains(errs[1].Error(), "meanwhile") {
		t.Errorf("new addresses do: %v", errs[1])
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if errs := x.w.Put(ended, machines(3)); errs[0] == nil || errs[2] == nil {
		t.Errorf("a caller who has gone is not worked for: %v", errs)
	}
}

// TestWorkloadsAreReadAsTheyWereWritten checks that who reads their own write finds it: a client such as Terraform takes a workload that it cannot read for
// removed.
func TestWorkloadsAreReadAsTheyWereWritten(t *testing.T) {
	x := newRegistration(t)
	for i := range 20 {
		m := workloads.Workload{ID: fmt.Sprintf("vm-%d", i), Subject: "trnv1:rsc:trip-com:iam:sa:app/1"}
		for n := range 3 {
			m.Addresses = []string{fmt.Sprintf("10.240.%d.%d", n, i)}
			if got, err := x.Put(t.Context(), platform, "vms", []workloads.Workload{m}); err != nil || got[0].Outcome == workloads.Refused {
				t.Fatal(got, err)
			}
			list, _, err := x.List(platform, workloads.Query{Limit: 1})
			if err != nil || len(list) != 1 || !slices.Equal(list[0].Addresses, m.Addresses) {
				t.Fatalf("after write %d of %s: %+v, %v", n, m.ID, list, err)
			}
		}
		if got, err := x.Remove(t.Context(), platform, "vms", []string{m.ID}); err != nil || got[0].Outcome != workloads.Removed {
			t.Fatal(got, err)
		}
		if list, _, err := x.List(platform, workloads.Query{Limit: 1}); err != nil || len(list) != 0 {
			t.Fatalf("after the removal of %s: %+v, %v", m.ID, list, err)
		}
	}
}

// BenchmarkWorkloadsSync is the first full sync of 40,000 machines, and one in which a hundredth has changed.
func BenchmarkWorkloadsSync(b *testing.B) {
	const n = 40_000
	x := newRegistration(b)
	for b.Loop() {
		all := machines(n)
		begin := time.Now()
		if s := x.sync(b, all); s.Added != n {
			b.Fatalf("%+v", s.Refused[:min(3, len(s.Refused))])
		}
		b.ReportMetric(time.Since(begin).Seconds(), "s/first")
		eventually.True(b, "all are seen", func() bool {
			s, err := x.PreviewSync(b.Context(), platform, "vms", all)
			return err == nil && s.Unchanged == n
		})
		for i := 0; i < n; i += 100 {
			all[i].Description = "changed"
		}
		begin = time.Now()
		if s := x.sync(b, all); s.Changed != n/100 {
			b.Fatalf("%+v", s)
		}
		b.ReportMetric(time.Since(begin).Seconds(), "s/again")
	}
}

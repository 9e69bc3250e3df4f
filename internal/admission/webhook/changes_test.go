package webhook

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/externalchanges/event"
	"github.com/acp-io/acp/internal/testenv"
	"github.com/acp-io/acp/internal/testenv/eventually"
)

// TestReportedChanges checks that the request determines what is reported, whether or not other objects could be read.
func TestReportedChanges(t *testing.T) {
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	object := func(generation int64) *v1alpha1.ApprovalPolicy {
		return &v1alpha1.ApprovalPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u1", Generation: generation}}
	}
	going := object(4)
	going.DeletionTimestamp = &metav1.Time{Time: at}
	enforced := &v1alpha1.ProtectedResource{
		ObjectMeta: metav1.ObjectMeta{Name: "bobs", UID: "u1", Generation: 3},
		Spec:       v1alpha1.ProtectedResourceSpec{Mode: v1alpha1.ModeEnforce},
	}
	yes := true
	for _, c := range []struct {
		name      string
		operation admissionv1.Operation
		kind      string
		old, now  any
		user      string
		dryRun    *bool
		want      string // OPERATION USER GENERATION
	}{
		{"created", admissionv1.Create, "ApprovalPolicy", nil, object(1), "alice", nil, "CREATE alice 1"},
		{"updated", admissionv1.Update, "ApprovalPolicy", object(1), object(2), "alice", nil, "UPDATE alice 2"},
		{"only metadata", admissionv1.Update, "ApprovalPolicy", object(2), object(2), "alice", nil, ""},
		{"deleted", admissionv1.Delete, "ApprovalPolicy", object(3), nil, "alice", nil, "DELETE alice 3"},
		{"deleted again", admissionv1.Delete, "ApprovalPolicy", going, nil, "alice", nil, ""},
		{"a dry run", admissionv1.Create, "ApprovalPolicy", nil, object(1), "alice", &yes, ""},
		{"the portal's", admissionv1.Create, "ApprovalPolicy", nil, object(1), PortalUser, nil, ""},
		{"the adapter's", admissionv1.Create, "ApprovalPolicy", nil, object(1), AdapterUser, nil, ""},
		{
			"another service account", admissionv1.Create, "ApprovalPolicy", nil, object(1),
			"system:serviceaccount:argocd:acp-portal", nil, "CREATE system:serviceaccount:argocd:acp-portal 1",
		},
		{
			"a workload", admissionv1.Create, "ExternalWorkload", nil,
			&v1alpha1.ExternalWorkload{ObjectMeta: metav1.ObjectMeta{Name: "vm", UID: "u1", Generation: 1}}, "alice", nil, "",
		},
		{"a refused deletion", admissionv1.Delete, "ProtectedResource", enforced, nil, "alice", nil, ""},
		{"admitted unseen", admissionv1.Update, "AccessControlPolicy",
			&v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u1", Generation: 1}},
			&v1alpha1.AccessControlPolicy{
				ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u1", Generation: 2},
				Spec:       v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{{SID: "s"}}},
			},
			"alice", nil, "UPDATE alice 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var told []string
			h := &Handler{
				Cached: &reader{err: errors.New("away")},
				Live:   &reader{err: errors.New("away")},
				Now:    func() time.Time { return at },
				Report: func(c event.Change) {
					told = append(told, strings.Join([]string{string(c.Operation), c.User, string(rune('0' + c.Generation))}, " "))
					if c.UID != "u1" || c.At != at || (c.Digest == "") != (c.Operation == event.Delete) {
						t.Errorf("got the change %+v", c)
					}
				},
			}
			req := review(t, c.operation, c.kind, c.old, c.now)
			req.UserInfo, req.DryRun = authenticationv1.UserInfo{Username: c.user}, c.dryRun
			h.Handle(t.Context(), req)
			if d := cmp.Diff(c.want, strings.Join(told, ",")); d != "" {
				t.Error(d)
			}
		})
	}
}

// Many changes, or an API server that does not answer, delay no review.
func TestReportingNeverBlocks(t *testing.T) {
	reporter, err := NewReporter(&rest.Config{Host: "https://127.0.0.1:1"}, event.Namespace, "x")
	if err != nil {
		t.Fatal(err)
	}
	for range maxQueued + 10 {
		reporter.Report(event.Change{})
	}
	if got := reporter.dropped.Load(); got != 10 {
		t.Errorf("got %d dropped changes, want 10", got)
	}
}

func TestEventsNameTheUserWhoChangedAnObject(t *testing.T) {
	server := testenv.Start(t, testenv.Options{CRDs: []string{"deploy/crds"}})
	c, err := client.New(server.Config, client.Options{Scheme: testScheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: event.Namespace}}); err != nil {
		t.Fatal(err)
	}
	reporter, err := NewReporter(server.Config, event.Namespace, "adapter-0")
	if err != nil {
		t.Fatal(err)
	}
	telling, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- reporter.Start(telling) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	dir, authority := t.TempDir(), newCA(t)
	authority.issue(t, dir)
	address := serve(t, dir, &Handler{Cached: c, Live: c, Now: time.Now, Report: reporter.Report})
	if err := c.Create(ctx, configuration(t, address, authority.pem)); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the API server calls the webhook", func() bool {
		err := c.Create(ctx, grant("probe", allow("s", app888, bobs)), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "validate.acp.io")
	})
	as := func(user string) client.Client {
		config := rest.CopyConfig(server.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}}
		one, err := client.New(config, client.Options{Scheme: testScheme(t)})
		if err != nil {
			t.Fatal(err)
		}
		return one
	}
	object := &v1alpha1.ApprovalPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "application"},
		Spec:       v1alpha1.ApprovalPolicySpec{Priority: 1, Steps: []v1alpha1.ApprovalStep{{Name: "owner", Approvers: []v1alpha1.Approver{"resource.owner"}}}},
	}
	digest := func() string {
		t.Helper()
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ApprovalPolicy"))
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), o); err != nil {
			t.Fatal(err)
		}
		out, err := event.Digest(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if err := as("alice").Create(ctx, object); err != nil {
		t.Fatal(err)
	}
	first := digest()
	object.Spec.Priority = 2
	if err := as("bob").Update(ctx, object); err != nil {
		t.Fatal(err)
	}
	second := digest()
	if err := as("carol").Delete(ctx, object); err != nil {
		t.Fatal(err)
	}
	base := event.Change{Kind: "ApprovalPolicy", Name: "application", UID: string(object.UID)}
	want := make([]event.Change, 3)
	for i, x := range []event.Change{
		{User: "alice", Operation: event.Create, Generation: 1, Digest: first},
		{User: "bob", Operation: event.Update, Generation: 2, Digest: second}, {User: "carol", Operation: event.Delete, Generation: 2},
	} {
		x.Kind, x.Name, x.UID = base.Kind, base.Name, base.UID
		want[i] = x
	}
	clients := kubernetes.NewForConfigOrDie(server.Config)
	var got []event.Change
	eventually.True(t, "three changes are reported", func() bool {
		list, err := clients.EventsV1().
			Events(event.Namespace).
			List(ctx, metav1.ListOptions{FieldSelector: "reason=" + event.Reason + ",regarding.uid=" + base.UID})
		if err != nil {
			t.Fatal(err)
		}
		got = nil
		for i := range list.Items {
			if x, ok := event.Parse(&list.Items[i], event.Namespace); ok {
				x.At = time.Time{}
				got = append(got, x)
			}
		}
		return len(got) >= 3
	})
	slices.SortFunc(got, func(a, b event.Change) int { return strings.Compare(a.User, b.User) })
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

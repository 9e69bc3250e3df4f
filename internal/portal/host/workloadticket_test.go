package host_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/approvaltest"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/catalog/workloads"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/host"
	"github.com/acp-io/acp/internal/portal/portaltest"
	"github.com/acp-io/acp/internal/testenv/eventually"
)

// registering is an item that registers addresses of application 888.
func registering(t *testing.T, addresses ...string) approval.Item {
	return approval.Item{
		ApplicationName: portaltest.App888,
		Change: &approval.Change{Kind: approval.ObjectExternalWorkload, Name: "portal.vm", Verb: approval.VerbCreate,
			After: text(t, v1alpha1.ExternalWorkloadSpec{Subject: portaltest.App888, Addresses: addresses})},
	}
}

// TestWorkloadLines checks that those who approve addresses see what the addresses reach by every enforcer, and that the
// lines grow when that does.
func TestWorkloadLines(t *testing.T) {
	at := time.Now()
	granted := func(resource string) *v1alpha1.AccessControlPolicy {
		return &v1alpha1.AccessControlPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: policy.PolicyNameFor(resource)},
			Spec:       v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{statement("x", resource)}},
		}
	}
	in := func() policy.Input {
		in := classes()
		in.Policies = []*v1alpha1.AccessControlPolicy{granted(portaltest.BobsCluster)}
		return in
	}
	lines := func(in policy.Input, it approval.Item) approval.Shown {
		t.Helper()
		out, err := host.WorkloadLines(policy.NewSnapshot(in), in, it, at)
		if err != nil {
			t.Fatal(err)
		}
		return approval.NewShown(out)
	}
	it := registering(t, "192.0.2.0/24")
	before := lines(in(), it)
	for _, want := range []string{
		"workloads outside the fleet of " + portaltest.App888 + ": 192.0.2.0/24",
		"allow workloads outside the fleet of " + portaltest.App888 + ": redis:connect on " + portaltest.BobsCluster,
		"allow workloads outside the fleet of " + portaltest.App888 + " to pods with com.trip/redis-cluster=bobs-cluster on 6379/TCP",
		"allow addresses 192.0.2.0/24 to pods with com.trip/redis-cluster=bobs-cluster on 6379/TCP by istio",
		"allow connections to pods with com.trip/redis-cluster=bobs-cluster in member m1",
	} {
		if !slices.Contains(before.Lines, want) {
			t.Errorf("no line %q in\n%s", want, strings.Join(before.Lines, "\n"))
		}
	}
	if strings.Contains(strings.Join(before.Lines, "\n"), "com.trip/appid") {
		t.Errorf("the application's pods are not what is asked for: %q", before.Lines)
	}
	for name, tc := range map[string]struct {
		reason string
		change func(*policy.Input)
		grows  string
	}{
		"nothing": {"the same", func(*policy.Input) {}, ""},
		"a grant": {"another resource is reached", func(in *policy.Input) {
			in.Policies = append(in.Policies, granted("trnv1:rsc:trip-com:redis:clusters:other"))
		}, "clusters:other"},
		"a wildcard": {"all of a class are reached", func(in *policy.Input) {
			in.Policies = append(in.Policies, granted("trnv1:rsc:trip-com:redis:clusters:*"))
		}, "clusters:*"},
		"a grant for all applications": {"which covers this one", func(in *policy.Input) {
			p := granted("trnv1:rsc:trip-com:redis:clusters:other")
			p.Spec.Statements[0].Subjects = []v1alpha1.Subject{"trnv1:rsc:trip-com:iam:sa:app/*"}
			in.Policies = append(in.Policies, p)
		}, "clusters:other"},
		"a grant for anyone": {"the addresses had it before", func(in *policy.Input) {
			p := granted("trnv1:rsc:trip-com:redis:clusters:other")
			p.Spec.Statements[0].Subjects = []v1alpha1.Subject{"*"}
			in.Policies = append(in.Policies, p)
		}, ""},
		"another's grant": {"nothing of this application", func(in *policy.Input) {
			p := granted("trnv1:rsc:trip-com:redis:clusters:other")
			p.Spec.Statements[0].Subjects = []v1alpha1.Subject{portaltest.App889}
			in.Policies = append(in.Policies, p)
		}, ""},
		"a port": {
			"the action means more",
			func(in *policy.Input) { in.ResourceClasses[0].Spec.Actions[0].Ports[0].EndPort = new(int32(6400)) }, "6379-6400/TCP",
		},
		"a member": {"one more", func(in *policy.Input) {
			*in.ResourceClasses[0].Spec.Placement.Clusters = []v1alpha1.ClusterName{"m1", "m2"}
		}, "in member m2"},
		"closing": {"a resource that is closed lets no more in", func(in *policy.Input) {
			in.Resources = []*v1alpha1.ProtectedResource{
				{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.ProtectedResourceSpec{Resource: portaltest.BobsCluster, Mode: v1alpha1.ModeEnforce}},
			}
		}, ""},
		"another address": {
			"is another request's",
			func(in *policy.Input) { in.Workloads = []*v1alpha1.ExternalWorkload{workload("vm", portaltest.App888)} }, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := in()
			tc.change(&now)
			grown := strings.Join(before.Grown(lines(now, it)), "\n")
			if (grown == "") != (tc.grows == "") || !strings.Contains(grown, tc.grows) {
				t.Errorf("%s: it grew by %q, want %q", tc.reason, grown, tc.grows)
			}
		})
	}
	if len(before.Grown(lines(in(), registering(t, "192.0.2.0/24", "198.51.100.0/24")))) == 0 {
		t.Error("another address is more")
	}
}

// TestRegistrationByTicket walks a registration beyond what owners may do alone through a real API server: the owner of the
// resource that it reaches approves, the object is written as one of the portal's, and the ticket is effective when the
// adapter has accepted it.
func TestRegistrationByTicket(t *testing.T) {
	running := newRegistration(t)
	h, c, ctx := running.h, running.c, t.Context()
	until := func(t *testing.T, what string, ok func() bool) {
		t.Helper()
		eventually.True(t, what, ok)
	}
	in := classes()
	in.ResourceClasses[0].Spec.Enforcers = []v1alpha1.EnforcerName{v1alpha1.EnforcerCilium}
	for _, o := range []client.Object{in.ResourceClasses[0], &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: "by-hand"},
		Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{statement("x", portaltest.BobsCluster)}}}} {
		if err := c.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "the grant is seen", func() bool {
		r, err := h.Reached(portaltest.App888)
		return err == nil && len(r.Resources) == 1
	})
	people := catalog.Build([]catalog.Record{{Kind: catalog.KindPerson, ID: "alice"}, {Kind: catalog.KindPerson, ID: "bob"},
		{Kind: catalog.KindApplication, ID: "app-888", Name: portaltest.App888, Owners: []catalog.Owner{{Kind: catalog.OwnerPerson, ID: "alice"}}},
		{Kind: catalog.KindResource, ID: "bobs-cluster", Name: portaltest.BobsCluster, Owners: []catalog.Owner{{Kind: catalog.OwnerPerson, ID: "bob"}}}})
	known := func() *catalog.Catalog { return people }
	registrar := workloads.New(
		workloads.Config{Cluster: h.Workloads(), State: h.Workloads().State, Catalog: known, Covered: h.SubjectCovered, Granted: h.Granted, Now: time.Now,
			Record: func(context.Context, ...ledger.Entry) error { return nil }},
	)
	alice := workloads.Actor{ID: "alice"}
	var results []workloads.Result
	until(t, "the workloads are known", func() bool {
		var err error
		results, err = registrar.Put(ctx, alice, "", []workloads.Workload{{ID: "vm", Subject: portaltest.App888, Addresses: []string{"192.0.2.0/24"}}})
		return err == nil
	})
	if !results[0].NeedsApproval || results[0].Outcome != workloads.Refused {
		t.Fatalf("alice alone may not: %+v", results)
	}
	memory := &approvaltest.Memory{}
	svc, err := approval.NewService(approval.Config{Store: memory, Delegations: memory, Catalog: known, Host: h, Workloads: registrar, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	worker := approval.NewWorker(
		approval.WorkerConfig{
			Name:       "w",
			Service:    svc,
			Outbox:     memory,
			Writer:     h.Writer(),
			Objects:    h.Writer(),
			PolicyName: policy.PolicyNameFor,
			Log:        log,
			Lease:      time.Minute,
			Poll:       time.Second,
		},
	)
	follower := approval.NewFollower(svc, h, h.PolicyChanges(), time.Minute, log)
	ask := func(id string, addresses ...string) *approval.Ticket {
		t.Helper()
		x, err := svc.Submit(
			ctx,
			approval.Actor{ID: "alice"},
			approval.Request{Kind: approval.KindWorkload, Reason: "the new rack", Items: []approval.RequestItem{{Application: "app-888",
				Workload: &approval.Registration{ID: id, Addresses: addresses, Description: "rack 7"}}}},
		)
		if err != nil {
			t.Fatal(err)
		}
		if x, err = svc.Decide(ctx, approval.Actor{ID: "bob"}, x.Number, 0, x.Version, true, "ours"); err != nil {
			t.Fatal(err)
		}
		return x
	}
	settle := func(x *approval.Ticket, want approval.State) *approval.Ticket {
		t.Helper()
		if err := worker.Drain(ctx); err != nil {
			t.Fatal(err)
		}
		if err := follower.Sync(ctx); err != nil {
			t.Fatal(err)
		}
		x, err := svc.Store.Get(ctx, x.Number)
		if err != nil || x.State() != want {
			t.Fatalf("it is %s (%s), want %s, %v", x.State(), x.Items[0].Message, want, err)
		}
		return x
	}
	x := ask("vm", "192.0.2.0/24")
	settle(x, approval.StateApplying)
	var o v1alpha1.ExternalWorkload
	if err := c.Get(ctx, client.ObjectKey{Name: "portal.vm"}, &o); err != nil {
		t.Fatal(err)
	}
	if o.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedByPortal || o.Labels["acp.io/source"] != workloads.Portal ||
		o.Annotations["acp.io/description"] != "rack 7" {
		t.Errorf("it is a registration as any other: %+v", o.ObjectMeta)
	}
	o.Status = v1alpha1.ExternalWorkloadStatus{
		ObservedGeneration: o.Generation,
		Conditions: []metav1.Condition{
			{
				Type:               v1alpha1.ConditionAccepted,
				Status:             metav1.ConditionTrue,
				Reason:             "Accepted",
				ObservedGeneration: o.Generation,
				LastTransitionTime: metav1.Now(),
			},
		},
	}
	if err := c.Status().Update(ctx, &o); err != nil {
		t.Fatal(err)
	}
	settle(x, approval.StateEffective)
	until(t, "alice sees it", func() bool {
		list, _, err := registrar.List(alice, workloads.Query{Limit: 10})
		return err == nil && len(list) == 1 && list[0].Managed && list[0].ID == "vm"
	})
	if results, err := registrar.Remove(ctx, alice, "", []string{"vm"}); err != nil || results[0].Outcome != workloads.Removed {
		t.Errorf("and removes it without asking: %+v, %v", results, err)
	}

	// A registration never overwrites a workload of others, even if that was created after the approval.
	x = ask("rack", "198.51.100.0/24")
	if err := c.Create(
		ctx,
		&v1alpha1.ExternalWorkload{
			ObjectMeta: metav1.ObjectMeta{Name: "portal.rack"},
			Spec:       v1alpha1.ExternalWorkloadSpec{Subject: portaltest.App889, Addresses: []string{"203.0.113.1"}},
		},
	); err != nil {
		t.Fatal(err)
	}
	until(t, "it is seen", func() bool {
		_, ok, err := h.Object(approval.ObjectExternalWorkload, "portal.rack")
		return ok && err == nil
	})
	if got := settle(x, approval.StateFailed).Items[0].Message.Text; !strings.Contains(got, "was not registered") {
		t.Errorf("the ticket says why: %s", got)
	}
	var refused *approval.RefusedError
	if _, err := h.Writer().Apply(ctx, *registering(t, "198.51.100.0/24").Change, yes); err != nil {
		t.Fatal(err)
	}
	foreign := *registering(t, "198.51.100.0/24").Change
	foreign.Name = "portal.rack"
	if _, err := h.Writer().Apply(ctx, foreign, yes); !errors.As(err, &refused) || !refused.Final {
		t.Errorf("nor does the writer: %v", err)
	}
}

package accessrequest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
)

const (
	shop  = "trnv1:rsc:trip-com:iam:sa:app/shop"
	bank  = "trnv1:rsc:trip-com:iam:sa:app/bank"
	redis = "trnv1:rsc:trip-com:redis:clusters:carts"
	queue = "trnv1:rsc:trip-com:redis:clusters:queue"
)

// TestRequestBecomesAccess: an object becomes a ticket with the chain of a program, and after the approvals a statement; deleting the
// object removes it.
func TestRequestBecomesAccess(t *testing.T) {
	w := newWorld(t, "shop")
	w.create("carts", func(o *v1alpha1.AccessRequest) { o.Spec.RequestedBy = "bob" })
	o := w.must("carts")
	expect(t, o, "Accepted=True/Submitted", "Approved=False/Pending", "Realized=False/Pending")
	if o.Status.Ticket != "T-1" || o.Status.URL != "https://acp.example/tickets/T-1" || o.Status.Application != "shop" || o.Status.State != "pending" {
		t.Errorf("status %+v", o.Status)
	}
	x := w.tickets()[0]
	it := x.Items[0]
	if x.Requester != approval.AccessRequester(w.namespace, "carts") || it.Application != "shop" || it.Resource != "carts" || it.Duration != time.Hour ||
		it.Author != "bob" || len(it.Steps) != 2 || fmt.Sprint(it.Steps[0].Approvers, it.Steps[1].Approvers) != "[alice] [dan]" {
		t.Errorf("ticket %+v", x)
	}
	before := o.ResourceVersion
	if o = w.must("carts"); o.ResourceVersion != before {
		t.Error("a status that is right is written again")
	}
	w.decide(1, true, "alice", "dan")
	expect(t, w.must("carts"), "Approved=True/Approved", "Realized=False/NotRealized")
	w.writePolicies()
	if got := w.statements(); len(got) != 1 || got[0] != "["+shop+"] [redis:connect]" {
		t.Errorf("statements %v", got)
	}
	if err := w.admin.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	w.crash = func(verb string) error { // between the revocation and the finalizer
		if verb == "patch" {
			return errors.New("ended")
		}
		return nil
	}
	if w.reconcile("carts") == nil {
		t.Fatal("the finalizer was removed")
	}
	w.crash = func(string) error { return nil }
	if err := w.reconcile("carts"); err != nil {
		t.Fatal(err)
	}
	if err := w.admin.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
		t.Errorf("the object is still there: %v", err)
	}
	w.writePolicies()
	if got := w.statements(); len(got) != 0 || w.states() != "revoking" {
		t.Errorf("after the deletion: %v, %s", got, w.states())
	}
}

// TestNothingIsSubmittedTwice: whatever step an interruption follows, there is one ticket for a generation.
func TestNothingIsSubmittedTwice(t *testing.T) {
	for _, at := range []string{"patch", "status"} {
		t.Run(at, func(t *testing.T) {
			w := newWorld(t, "shop")
			w.create("carts", nil)
			w.crash = func(verb string) error {
				if verb == at {
					return errors.New("ended")
				}
				return nil
			}
			for range 3 {
				if w.reconcile("carts") == nil {
					t.Fatal("nothing failed")
				}
			}
			w.crash = func(string) error { return nil }
			o := w.must("carts")
			expect(t, o, "Accepted=True/Submitted")
			if w.states() != "pending" || o.Finalizers[0] != v1alpha1.FinalizerAccessRequest {
				t.Errorf("tickets %s, finalizers %v", w.states(), o.Finalizers)
			}
		})
	}
}

// TestRefusals: an object that may not ask has no ticket, and says why.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		application string
		change      func(*v1alpha1.AccessRequest)
		want, says  string
	}{
		"no label":                     {"", nil, "Accepted=False/NamespaceWithoutApplication", "acp.io/app-id"},
		"unknown application":          {"nobody", nil, "Accepted=False/UnknownApplication", "nobody"},
		"a resource is no application": {"carts", nil, "Accepted=False/UnknownApplication", "carts"},
		"unknown resource": {"shop", func(o *v1alpha1.AccessRequest) { o.Spec.Access[0].Resource = redis + "x" },
			"Accepted=False/NotSubmitted", "cartsx"},
		"an application is no resource": {"shop", func(o *v1alpha1.AccessRequest) { o.Spec.Access[0].Resource = bank },
			"Accepted=False/NotSubmitted", "app/bank"},
		"unknown action": {"shop", func(o *v1alpha1.AccessRequest) { o.Spec.Access[0].Actions = []v1alpha1.Action{"redis:fly"} },
			"Accepted=False/NotSubmitted", "redis:fly"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.application)
			w.create("carts", c.change)
			o := w.must("carts")
			expect(t, o, c.want)
			if m := meta.FindStatusCondition(o.Status.Conditions, "Accepted").Message; !strings.Contains(m, c.says) {
				t.Errorf("%q does not name %s", m, c.says)
			}
			// The finalizer precedes the submission, so an object whose submission is refused has it, too.
			if len(w.tickets()) != 0 || o.Status.Ticket != "" || len(o.Finalizers) != 0 && name != "unknown action" {
				t.Errorf("tickets %s, status %+v, finalizers %v", w.states(), o.Status, o.Finalizers)
			}
		})
	}
}

// TestForgedStatus: nothing follows from a status that somebody else wrote, and it is corrected.
func TestForgedStatus(t *testing.T) {
	w := newWorld(t, "")
	w.create("carts", nil)
	o := w.get("carts")
	o.Status = v1alpha1.AccessRequestStatus{
		ObservedGeneration: o.Generation,
		Application:        "bank",
		Ticket:             "T-1",
		State:              "effective",
		Conditions: []metav1.Condition{
			{Type: "Approved", Status: metav1.ConditionTrue, Reason: "Approved", Message: "forged", LastTransitionTime: metav1.Now()}},
	}
	if err := w.admin.Status().Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	o = w.must("carts")
	expect(t, o, "Accepted=False/NamespaceWithoutApplication", "Approved=False/NamespaceWithoutApplication")
	if o.Status.Application != "" || o.Status.Ticket != "" || len(w.tickets()) != 0 {
		t.Errorf("status %+v, tickets %s", o.Status, w.states())
	}
}

// TestNamespaceChangesItsApplication: a pending request ends when the namespace no longer stands for its application; the object then asks
// for the other one.
func TestNamespaceChangesItsApplication(t *testing.T) {
	w := newWorld(t, "shop")
	w.create("carts", nil)
	w.must("carts")
	w.label("null")
	expect(t, w.must("carts"), "Accepted=False/NamespaceWithoutApplication")
	if w.states() != "withdrawn" {
		t.Errorf("tickets %s", w.states())
	}
	w.label(`"bank"`)
	w.update("carts", func(o *v1alpha1.AccessRequest) { o.Spec.Reason = "for the bank" })
	o := w.must("carts")
	expect(t, o, "Accepted=True/Submitted")
	if all := w.tickets(); w.states() != "withdrawn pending" || all[1].Items[0].Application != "bank" {
		t.Errorf("tickets %s", w.states())
	}
}

// TestChangeOfTheSpec: a change withdraws the open ticket and submits another one, except for fields that are not part of the request.
func TestChangeOfTheSpec(t *testing.T) {
	w := newWorld(t, "shop")
	w.create("carts", nil)
	w.must("carts")
	w.update("carts", func(o *v1alpha1.AccessRequest) { o.Spec.OnDelete = v1alpha1.OnDeleteKeep })
	if o := w.must("carts"); o.Status.Ticket != "T-1" || w.states() != "pending" {
		t.Errorf("onDelete made %s, %s", o.Status.Ticket, w.states())
	}
	w.update("carts", func(o *v1alpha1.AccessRequest) { o.Spec.Access[0].Resource = queue })
	w.crash = func(verb string) error { // between the withdrawal, the submission and the status
		if verb == "status" {
			return errors.New("ended")
		}
		return nil
	}
	if w.reconcile("carts") == nil {
		t.Fatal("the status was written")
	}
	w.crash = func(string) error { return nil }
	if o := w.must("carts"); o.Status.Ticket != "T-2" || w.states() != "withdrawn pending" {
		t.Errorf("the change made %s, %s", o.Status.Ticket, w.states())
	}
	w.decide(2, false, "alice")
	expect(t, w.must("carts"), "Accepted=True/Submitted", "Approved=False/Rejected", "Realized=False/Rejected")
	w.update("carts", func(o *v1alpha1.AccessRequest) { o.Spec.Access[0].Resource = redis })
	if o := w.must("carts"); o.Status.Ticket != "T-3" || w.states() != "withdrawn rejected pending" {
		t.Errorf("back to the first spec: %s, %s", o.Status.Ticket, w.states())
	}
}

// TestDeletion: an open ticket is withdrawn, and what was granted stays only if the object says so.
func TestDeletion(t *testing.T) {
	for name, c := range map[string]struct {
		keep    v1alpha1.OnDelete
		approve bool
		want    string
	}{
		"open":                {v1alpha1.OnDeleteRevoke, false, "withdrawn"},
		"open, kept":          {v1alpha1.OnDeleteKeep, false, "withdrawn"},
		"granted":             {"", true, "revoking"},
		"granted, to be kept": {v1alpha1.OnDeleteKeep, true, "approved"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "shop")
			w.create("carts", func(o *v1alpha1.AccessRequest) { o.Spec.OnDelete = c.keep })
			o := w.must("carts")
			if c.approve {
				w.decide(1, true, "alice", "bob")
			}
			if err := w.admin.Delete(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			if err := w.reconcile("carts"); err != nil {
				t.Fatal(err)
			}
			if err := w.admin.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
				t.Errorf("the object is still there: %v", err)
			}
			if w.states() != c.want {
				t.Errorf("tickets %s; want %s", w.states(), c.want)
			}
			w.create("carts", func(o *v1alpha1.AccessRequest) { o.Spec.Access[0].Resource = queue })
			if o := w.must("carts"); o.Status.Ticket != "T-2" {
				t.Errorf("an object of the same name has %s", o.Status.Ticket)
			}
		})
	}
}

// TestDeletionEndsGrantsOfEarlyVersions checks that a grant ends with its object although more tickets of its name followed than are read.
func TestDeletionEndsGrantsOfEarlyVersions(t *testing.T) {
	w := newWorld(t, "shop")
	w.create("carts", nil)
	o := w.must("carts")
	w.decide(1, true, "alice", "bob")
	granted := w.tickets()[0]
	for i := range maxTickets {
		later := granted.Clone()
		later.Number, later.IdempotencyKey = 0, fmt.Sprint("another/", i+1)
		later.Items[0].State = approval.StateWithdrawn
		if _, err := w.store.Create(t.Context(), later); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.admin.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if err := w.reconcile("carts"); err != nil {
		t.Fatal(err)
	}
	if got := w.tickets()[0].State(); got != approval.StateRevoking {
		t.Errorf("the grant of the deleted object is %s", got)
	}
}

// TestObjectThatEndsDuringTheSubmission checks that a ticket is withdrawn whose object another replica let go while it was submitted.
func TestObjectThatEndsDuringTheSubmission(t *testing.T) {
	w := newWorld(t, "shop")
	w.create("carts", nil)
	w.changed = func(*approval.Ticket) {
		w.changed = func(*approval.Ticket) {}
		o := w.get("carts")
		o.Finalizers = nil
		if err := errors.Join(w.admin.Update(t.Context(), o), w.admin.Delete(t.Context(), o)); err != nil {
			t.Error(err)
		}
	}
	_ = w.reconcile("carts") // the status cannot be written
	if got := w.states(); got != "pending" {
		t.Fatalf("the tickets are %s, want one that was submitted", got)
	}
	if err := w.reconcile("carts"); err != nil { // the change of the ticket leads to it
		t.Fatal(err)
	}
	if got := w.states(); got != "withdrawn" {
		t.Errorf("the tickets are %s, want one that is withdrawn", got)
	}
}

// TestCrashDuringTheDeletion checks that another replica withdraws the ticket of a portal that ended right after it submitted it, while the
// object was being deleted.
func TestCrashDuringTheDeletion(t *testing.T) {
	for name, c := range map[string]struct {
		reason  string
		release bool // another replica lets the object go
		again   bool // and somebody creates one of the same name, which asks for something else
		want    string
	}{
		"being deleted": {"the object is still there", false, false, "withdrawn"},
		"deleted":       {"nothing leads to the ticket", true, false, "withdrawn"},
		"created again": {"the object of the same name is another one", true, true, "withdrawn pending"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "shop")
			w.create("carts", nil)
			w.changed = func(*approval.Ticket) {
				w.changed = func(*approval.Ticket) {}
				w.crash = func(string) error { return errors.New("ended") }
				o := w.get("carts")
				if c.release {
					o.Finalizers = nil
					if err := w.admin.Update(t.Context(), o); err != nil {
						t.Error(err)
					}
				}
				if err := w.admin.Delete(t.Context(), o); err != nil {
					t.Error(err)
				}
			}
			if err := w.reconcile("carts"); err == nil {
				t.Fatal("the portal did not end")
			}
			if got := w.states(); got != "pending" {
				t.Fatalf("the tickets are %s, want one that was submitted", got)
			}
			w.crash = func(string) error { return nil }
			if c.again {
				w.create("carts", func(o *v1alpha1.AccessRequest) { o.Spec.Access[0].Resource = queue })
			}
			// The next replica knows the objects that exist, and then looks for orphans.
			if !c.release || c.again {
				if err := w.reconcile("carts"); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				if err := w.r.withdrawOrphans(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if got := w.states(); got != c.want {
				t.Errorf("%s: the tickets are %s, want %s", c.reason, got, c.want)
			}
		})
	}
}

// TestOrphansAreOnlyOfAccessRequests checks that the search leaves everything that has an object, or whose object cannot be read, and that
// it finds the ticket of an earlier object beside that of an object of the same name.
func TestOrphansAreOnlyOfAccessRequests(t *testing.T) {
	w := newWorld(t, "shop")
	w.create("carts", nil)
	w.must("carts")
	submit := func(who approval.Actor, resource, key string) {
		t.Helper()
		r := approval.Request{Reason: "r", IdempotencyKey: key, Items: []approval.RequestItem{{Application: "bank", Resource: resource,
			Actions: []string{"redis:connect"}}}}
		if _, err := w.svc.Submit(t.Context(), who, r); err != nil {
			t.Fatal(err)
		}
	}
	w.host.Policies = []*v1alpha1.ApprovalPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "owners"},
		Spec: v1alpha1.ApprovalPolicySpec{Steps: []v1alpha1.ApprovalStep{{Name: "owner", Approvers: []v1alpha1.Approver{approval.FromResourceOwner}}}}}}
	submit(approval.Actor{ID: "alice"}, "carts", "")
	submit(approval.Program(approval.AccessRequester(w.namespace, "carts"), "bank", ""), "queue", "uid-of-before/3")
	live := w.r.Live
	w.r.Live = unreadable{live}
	if err := w.r.withdrawOrphans(t.Context()); err == nil || w.states() != "pending pending pending" {
		t.Errorf("the host cluster cannot be read: %v, %s", err, w.states())
	}
	w.r.Live = live
	if err := w.r.withdrawOrphans(t.Context()); err != nil || w.states() != "pending pending withdrawn" {
		t.Errorf("%v, %s", err, w.states())
	}
	x := w.tickets()[2]
	if e := x.Events[len(x.Events)-1]; e.Comment != "The AccessRequest "+w.namespace+"/carts was deleted." {
		t.Errorf("the reason is %q", e.Comment)
	}
}

// unreadable is a host cluster that does not answer.
type unreadable struct{ client.Reader }

func (unreadable) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("connection refused")
}

// TestOpenRequestsAreBounded: an application has a limited number of open requests, and an object does not get around it by changing.
func TestOpenRequestsAreBounded(t *testing.T) {
	w := newWorld(t, "shop")
	for i := range MaxOpen {
		r := approval.Request{Reason: "r", Items: []approval.RequestItem{{Application: "shop", Resource: "carts", Actions: []string{fmt.Sprint("redis:a", i)}}}}
		w.host.Actions = append(w.host.Actions, fmt.Sprint("redis:a", i))
		if _, err := w.svc.Submit(t.Context(), approval.Program(approval.AccessRequester("x", fmt.Sprint("y", i)), "shop", ""), r); err != nil {
			t.Fatal(err)
		}
	}
	w.create("carts", nil)
	expect(t, w.must("carts"), "Accepted=False/TooManyOpenRequests", "Approved=False/TooManyOpenRequests")
	if n := len(w.tickets()); n != MaxOpen {
		t.Errorf("%d tickets", n)
	}
	if _, err := w.svc.Withdraw(t.Context(), approval.Program(approval.AccessRequester("x", "y0"), "shop", ""), 1, "done"); err != nil {
		t.Fatal(err)
	}
	expect(t, w.must("carts"), "Accepted=True/Submitted")
}

// TestConditions: a request is approved and realized only if all of it is.
func TestConditions(t *testing.T) {
	for _, c := range []struct{ states, approved, realized string }{
		{"pending", "False/Pending", "False/Pending"},
		{"approved", "True/Approved", "False/NotRealized"},
		{"applying", "True/Approved", "False/NotRealized"},
		{"effective", "True/Approved", "True/Realized"},
		{"failed", "True/Approved", "False/Failed"},
		{"effective failed", "True/Approved", "False/Failed"},
		{"effective applying", "True/Approved", "False/NotRealized"},
		{"effective pending", "False/Pending", "False/Pending"},
		{"effective rejected", "False/Rejected", "False/Rejected"},
		{"effective timed-out", "False/TimedOut", "False/TimedOut"},
		{"withdrawn", "False/Withdrawn", "False/Withdrawn"},
		{"revoking", "False/Revoked", "False/Revoked"},
		{"effective revoked", "False/Revoked", "False/Revoked"},
		{"expired", "False/Expired", "False/Expired"},
	} {
		x := &approval.Ticket{Number: 1}
		for s := range strings.FieldsSeq(c.states) {
			x.Items = append(x.Items, approval.Item{State: approval.State(s)})
		}
		o := &v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
		o.Status = statusOf(o, "a", x, "u", time.Unix(1700000000, 0), conditionsOf(x))
		expect(t, o, "Accepted=True/Submitted", "Approved="+c.approved, "Realized="+c.realized)
	}
}

func FuzzGenerationOf(f *testing.F) {
	f.Add("uid/1")
	f.Add("uid/-1")
	f.Add("/1")
	o := &v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{UID: "uid", Generation: 3}}
	f.Fuzz(func(t *testing.T, key string) {
		g, ok := generationOf(&approval.Ticket{IdempotencyKey: key}, o)
		if ok && (g < 1 || !strings.HasPrefix(key, "uid/")) {
			t.Errorf("%q is generation %d", key, g)
		}
	})
}

// TestFloodOfANamespaceDelaysNoOther: whoever creates very many objects in a namespace delays these, and not the objects of others.
func TestFloodOfANamespaceDelaysNoOther(t *testing.T) {
	w := newWorld(t, "shop")
	w.r.namespaces = newNamespaceRates()
	w.create("carts", nil)
	delayed := func() int {
		n := 0
		for i := range 200 {
			req := reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "flood", Name: fmt.Sprint("x", i)}}
			if got, err := w.r.Reconcile(t.Context(), req); err != nil {
				t.Fatal(err)
			} else if got.RequeueAfter >= leastDelay {
				n++
			}
		}
		return n
	}
	if n := delayed(); n != 200-namespaceBurst {
		t.Errorf("%d of 200 objects are delayed, want all but %d", n, namespaceBurst)
	}
	expect(t, w.must("carts"), "Accepted=True/Submitted")
	w.now = w.now.Add(2 * time.Second)
	if n := delayed(); n != 200-2*namespacePerSecond {
		t.Errorf("%d of 200 objects are delayed after two seconds, want all but %d", n, 2*namespacePerSecond)
	}
}

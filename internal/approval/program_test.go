package approval_test

import (
	"context"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
)

const program = "system:accessrequest:shop/cache"

func programRequest(resource string) approval.Request {
	return approval.Request{Reason: "the shop caches", IdempotencyKey: "uid/1",
		Items: []approval.RequestItem{{Application: "a", Resource: resource, Actions: []string{"act"}, Duration: time.Hour}}}
}

func stepsOf(it approval.Item) (out [][]string) {
	for _, s := range it.Steps {
		out = append(out, append([]string{s.Name}, s.Approvers...))
	}
	return out
}

// TestProgramsAskForTheirApplicationOnly: a program requests nothing but a grant of the application that it acts for, and no person has
// its rights by using its name.
func TestProgramsAskForTheirApplicationOnly(t *testing.T) {
	for name, c := range map[string]struct {
		actor  approval.Actor
		change func(*approval.Request)
		want   approval.Code
	}{
		"its application":               {approval.Program(program, "a", ""), func(*approval.Request) {}, ""},
		"another application":           {approval.Program(program, "b", ""), func(*approval.Request) {}, approval.CodeForbidden},
		"no application":                {approval.Program(program, "", ""), func(*approval.Request) {}, approval.CodeForbidden},
		"a person of its name":          {approval.Actor{ID: program}, func(*approval.Request) {}, approval.CodeForbidden},
		"a security person of its name": {approval.Actor{ID: program, Security: true}, func(*approval.Request) {}, approval.CodeForbidden},
		"break-glass":                   {approval.Program(program, "a", ""), func(r *approval.Request) { r.BreakGlass = true }, approval.CodeForbidden},
		"adopt":                         {approval.Program(program, "a", ""), func(r *approval.Request) { r.Adopt = true }, approval.CodeForbidden},
		"another kind": {
			approval.Program(program, "a", ""), func(r *approval.Request) { r.Kind = approval.KindOnboard }, approval.CodeForbidden,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.host.Actions = []string{"act"}
			r := programRequest("r")
			c.change(&r)
			_, err := w.svc.Submit(context.Background(), c.actor, r)
			if got := approval.CodeOf(err); got != c.want || err != nil && c.want == "" {
				t.Errorf("%v; want the code %q", err, c.want)
			}
		})
	}
}

// TestChainsOfPrograms: an owner of the application decides first, whatever an approval policy says, and not by a condition; the author
// of the request decides nowhere.
func TestChainsOfPrograms(t *testing.T) {
	policy := func(steps ...v1alpha1.ApprovalStep) *v1alpha1.ApprovalPolicy {
		return &v1alpha1.ApprovalPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.ApprovalPolicySpec{SamePersonManySteps: true, Steps: steps}}
	}
	step := func(name string, from v1alpha1.Approver) v1alpha1.ApprovalStep {
		return v1alpha1.ApprovalStep{Name: name, Approvers: []v1alpha1.Approver{from}, AutoApprove: "true"}
	}
	for name, c := range map[string]struct {
		policy *v1alpha1.ApprovalPolicy
		author string
		want   [][]string
		auto   []bool
	}{
		"built-in": {want: [][]string{{"application", "alice"}, {"owner", "bob", "dan"}}, auto: []bool{false, false}},
		"the author is an owner of the resource": {author: "bob",
			want: [][]string{{"application", "alice"}, {"owner", "dan"}}, auto: []bool{false, false}},
		"a policy about the leader": {policy: policy(step("lead", approval.FromLeader)), want: [][]string{{"lead", "alice"}}, auto: []bool{false}},
		"a policy that approves automatically": {policy: policy(step("own", approval.FromResourceOwner)),
			want: [][]string{{"application", "alice"}, {"own", "bob", "dan"}}, auto: []bool{false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.host.Actions = []string{"act"}
			if c.policy != nil {
				w.host.Policies = []*v1alpha1.ApprovalPolicy{c.policy}
			}
			x, err := w.svc.Submit(context.Background(), approval.Program(program, "a", c.author), programRequest("r"))
			if err != nil {
				t.Fatal(err)
			}
			if got := stepsOf(x.Items[0]); !slices.EqualFunc(got, c.want, slices.Equal) {
				t.Errorf("steps %v; want %v", got, c.want)
			}
			for i, s := range x.Items[0].Steps {
				if s.Auto != c.auto[i] {
					t.Errorf("step %s is automatic: %v", s.Name, s.Auto)
				}
			}
			if x.Requester != program || x.Items[0].ManySteps {
				t.Errorf("requester %s, one person for several steps: %v", x.Requester, x.Items[0].ManySteps)
			}
			if x.State() != approval.StatePending {
				t.Errorf("the ticket is %s before anybody decided", x.State())
			}
		})
	}
}

// TestAuthorsDoNotDecide: the author of a program's request cannot decide it, also not through or as a delegate, nor after they became
// an approver by an escalation.
func TestAuthorsDoNotDecide(t *testing.T) {
	w := newWorld(t)
	w.host.Actions = []string{"act"}
	w.records[0].Leader = "" // alice
	w.records = append(w.records, catalog.Record{Kind: catalog.KindApplication, ID: "c", Name: "name:c", Owners: ownedBy("alice", "bob")})
	r := programRequest("r")
	r.Items[0].Application = "c"
	x, err := w.svc.Submit(context.Background(), approval.Program(program, "c", "bob"), r)
	if err != nil {
		t.Fatal(err)
	}
	for _, as := range []approval.Actor{{ID: "bob"}, {ID: "eve", StandsFor: []string{"bob"}}, approval.Program(program, "c", "")} {
		if _, err := w.svc.Decide(context.Background(), as, x.Number, 0, x.Version, true, ""); err == nil {
			t.Errorf("%s approved", as.ID)
		}
		if got := approval.MayDoItem(catalog.Build(w.records), as, x, 0); got.Approve || got.Reject {
			t.Errorf("%s is shown buttons: %+v", as.ID, got)
		}
	}
	for _, p := range []string{"alice", "dan"} {
		if x, err = w.svc.Decide(context.Background(), approval.Actor{ID: p}, x.Number, 0, x.Version, true, ""); err != nil {
			t.Fatal(err)
		}
	}
	if x.State() != approval.StateApproved {
		t.Errorf("the ticket is %s", x.State())
	}
	w.drain(w.worker("w"))
	if got := w.state(x.Number); got != approval.StateApplying {
		t.Errorf("after the write the ticket is %s", got)
	}
	grants, err := w.svc.StandingGrants(t.Context())
	if err != nil || len(grants) != 1 || !slices.Equal(grants[0].Requesters, []string{"bob", program}) {
		t.Errorf("the author counts as a requester, so that they do not review the access: %+v, %v", grants, err)
	}
}

// TestProgramsEndWhatTheyRequested: a program withdraws and revokes its own tickets and no others.
func TestProgramsEndWhatTheyRequested(t *testing.T) {
	w := newWorld(t)
	w.host.Actions = []string{"act"}
	x, err := w.svc.Submit(context.Background(), approval.Program(program, "a", ""), programRequest("r"))
	if err != nil {
		t.Fatal(err)
	}
	other := approval.Program(approval.AccessRequester("shop", "other"), "a", "")
	if _, err := w.svc.Withdraw(context.Background(), other, x.Number, "no"); approval.CodeOf(err) != approval.CodeNotFound {
		t.Errorf("another program withdraws: %v", err)
	}
	for _, p := range []string{"alice", "bob"} {
		if x, err = w.svc.Decide(context.Background(), approval.Actor{ID: p}, x.Number, 0, x.Version, true, ""); err != nil {
			t.Fatal(err)
		}
	}
	for _, as := range []approval.Actor{other, {ID: program}} {
		if _, err := w.svc.Revoke(context.Background(), as, x.Number, approval.EveryItem, "no"); err == nil {
			t.Errorf("%+v revoked", as)
		}
	}
	if x, err = w.svc.Revoke(context.Background(), approval.Program(program, "a", ""), x.Number, approval.EveryItem, "deleted"); err != nil {
		t.Fatal(err)
	}
	if x.State() != approval.StateRevoking {
		t.Errorf("the ticket is %s", x.State())
	}
}

package ticketapi

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/portaltest"
	"github.com/acp-io/acp/internal/portal/views"
)

// objectsHost is a host cluster with one policy and one protected resource.
type objectsHost struct {
	views.Host
	policy   *v1alpha1.AccessControlPolicy
	resource *v1alpha1.ProtectedResource
}

func (h objectsHost) Cached(name string) (*v1alpha1.AccessControlPolicy, bool) {
	return h.policy, h.policy.Name == name
}

func (h objectsHost) Protection(string) *v1alpha1.ProtectedResource { return h.resource }

// TestManyMembersOfATicket checks that a ticket shows every member, wherever the host cluster has room to list them, and counts those
// that are not listed.
func TestManyMembersOfATicket(t *testing.T) {
	var all []v1alpha1.ClusterState
	for i := range 500 {
		all = append(all, v1alpha1.ClusterState{Name: v1alpha1.ClusterName(fmt.Sprintf("m%03d", i)), State: v1alpha1.MemberRealized, DesiredRevision: "r1"})
	}
	all[400].State = v1alpha1.MemberPending
	counts := v1alpha1.CountMembers(all)
	rest := v1alpha1.GroupMembers(slices.Concat(all[:400], all[401:]))
	for name, tc := range map[string]struct {
		reason   string
		groups   []v1alpha1.MemberGroup // of the policy
		revision string                 // of the resource
		listed   int
	}{
		"Groups":   {"the policy lists all", rest, "", 500},
		"Resource": {"the resource lists all", nil, "r1", 500},
		"Older":    {"the resource is about another revision", nil, "r0", 1},
	} {
		t.Run(name, func(t *testing.T) {
			ticket := &approval.Ticket{Number: 7, Version: 3, Kind: approval.KindGrant, Requester: "alice",
				Items: []approval.Item{{State: approval.StateApplying, ApplicationName: portaltest.App888, ResourceName: portaltest.BobsCluster, SID: "t-7-1"}}}
			h := objectsHost{policy: &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: policy.PolicyNameFor(portaltest.BobsCluster)}},
				resource: &v1alpha1.ProtectedResource{Spec: v1alpha1.ProtectedResourceSpec{Resource: portaltest.BobsCluster, Mode: v1alpha1.ModeEnforce}}}
			h.policy.Status.Units = []v1alpha1.PolicyUnit{
				{Resource: portaltest.BobsCluster, Revision: "r1", Members: &counts, Clusters: slices.Clone(all[400:401]), Groups: tc.groups},
			}
			s := &h.resource.Status
			s.Revision, s.Members, s.Clusters, s.Groups = tc.revision, &counts, all[400:401], rest
			a := &API{Data: &views.Data{Host: h, Now: time.Now}}
			it := a.itemView(catalog.Build(nil), approval.Actor{ID: "alice"}, ticket, 0)
			if it.Members == nil || it.Members.Total != 500 || it.Members.Waiting != 1 || it.Members.Listed != tc.listed ||
				(*it.Members.States)["Realized"] != 499 ||
				len(it.Clusters) != tc.listed {
				t.Errorf("%s: %+v, %d members", tc.reason, it.Members, len(it.Clusters))
			}
			if it.WaitingFor == nil || !slices.Equal(*it.WaitingFor, []string{"m400"}) {
				t.Errorf("%s: it waits for %v", tc.reason, it.WaitingFor)
			}
		})
	}
}

// TestEventsHaveLines checks that the lines of an event are messages, that they name clients only to those who may see them, and that the
// words of a person stay a comment.
func TestEventsHaveLines(t *testing.T) {
	client, members := "allow pods with app=1 to pods with redis=bobs on 22/TCP", "in member m2"
	ticket := &approval.Ticket{Number: 7, Kind: approval.KindMode, Items: []approval.Item{{}}, Events: []approval.Event{
		{Kind: approval.EventVoided, Item: 0, Comment: client + "\n" + members},
		{Kind: approval.EventReduced, Item: 0, Comment: client},
		{Kind: approval.EventComment, Item: approval.WholeTicket, Actor: "bob", Comment: members},
	}}
	for _, tc := range []struct {
		reason string
		sees   bool
		want   []*[]message.Message
	}{
		{"everything", true, []*[]message.Message{
			{approval.LineMessage(client), message.LineInMember("m2")}, {approval.LineMessage(client)}, nil}},
		{"without clients", false, []*[]message.Message{{message.LineInMember("m2")}, nil, nil}},
	} {
		var got []*[]message.Message
		events := eventsOf(&catalog.Catalog{}, ticket, func(int) bool { return tc.sees })
		for _, e := range events {
			got = append(got, e.Lines)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s", tc.reason, diff)
		}
		if events[0].Comment != nil || events[1].Comment != nil || events[2].Comment == nil || *events[2].Comment != members {
			t.Errorf("%s: comments in %+v", tc.reason, events)
		}
	}
}

// TestStepsSayWhatIsToCome checks that the steps name who decides and what happens at the timeout, also before they are current, and that
// a step names no more people than it may.
func TestStepsSayWhatIsToCome(t *testing.T) {
	var many []string
	for i := range 250 {
		many = append(many, fmt.Sprintf("p%03d", i))
	}
	it := approval.Item{State: approval.StatePending, Steps: []approval.Step{
		{
			Name:       "leader",
			State:      approval.StepCurrent,
			Approvers:  []string{"carol"},
			From:       []v1alpha1.Approver{approval.FromLeader, "group:oncall"},
			Timeout:    72 * time.Hour,
			OnTimeout:  v1alpha1.TimeoutEscalate,
			EscalateTo: []string{"zoe"},
			Remind:     24 * time.Hour,
		},
		{Name: "owner", State: approval.StepWaiting, Approvers: many, Timeout: time.Hour, OnTimeout: v1alpha1.TimeoutDeny,
			OnCall: approval.OnCallLimit{Schedule: "shop", Tier: 1}},
		{Name: "security", State: approval.StepWaiting, Approvers: []string{"erin"}, OnCall: approval.OnCallLimit{Schedule: "gone", Tier: 1, Approvers: true}},
		{Name: "waits", State: approval.StepWaiting, Approvers: []string{"erin"}, OnCall: approval.OnCallLimit{Schedule: "gone", Tier: 1},
			MissingSince: time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)},
		{Name: "auto", State: approval.StepWaiting, Approvers: []string{"erin"}, Auto: true, Timeout: time.Hour, OnTimeout: v1alpha1.TimeoutDeny},
	}}
	who := approval.Actor{ID: "p200", OnCall: func(schedule string, _ int) approval.Duty {
		if schedule == "shop" {
			return approval.Duty{Known: true, People: []string{"p007", "stranger"}}
		}
		return approval.Duty{Reason: message.OnCallNotConfigured(schedule)}
	}}
	steps := stepsOf(catalog.Build(nil), who, it, it.Steps)
	if s := steps[0]; *s.TimeoutSeconds != 72*3600 || *s.RemindSeconds != 24*3600 || *s.OnTimeout != openapi.StepOnTimeoutEscalate || len(*s.EscalateTo) != 1 ||
		(*s.EscalateTo)[0].Id != "zoe" || *s.EscalateTotal != 1 || s.OnCall != nil ||
		!slices.Equal(*s.From, []string{"requester.leader", "group:oncall"}) {
		t.Errorf("the current step: %+v", s)
	}
	if s := steps[1]; len(s.Approvers) != mostPeople || *s.ApproversTotal != 250 || s.Approvers[mostPeople-1].Id != "p200" || *s.TimeoutSeconds != 3600 ||
		*s.OnTimeout != openapi.StepOnTimeoutDeny || s.OnCall == nil || len(s.OnCall.People) != 1 || s.OnCall.People[0].Id != "p007" ||
		s.OnCall.Fallback || s.OnCall.Message != nil {
		t.Errorf("the step of many people: %+v", s)
	}
	if s := steps[2]; s.OnCall == nil || !s.OnCall.Fallback || s.OnCall.Message == nil || len(s.OnCall.People) != 1 || s.OnCall.DeniedAt != nil {
		t.Errorf("the step whose schedule is not known: %+v", s.OnCall)
	}
	if s := steps[3]; s.OnCall == nil || s.OnCall.Message == nil || len(s.OnCall.People) != 0 || s.OnCall.DeniedAt == nil ||
		!s.OnCall.DeniedAt.Equal(time.Date(2026, 3, 9, 10, 0, 0, 0, time.UTC)) {
		t.Errorf("the step that waits for a schedule that does not exist: %+v", s.OnCall)
	}
	if s := steps[4]; s.TimeoutSeconds != nil || s.OnCall != nil {
		t.Errorf("the automatic step: %+v", s)
	}
	if many[mostPeople-1] != "p099" {
		t.Error("the view changes the ticket")
	}
}

package rollout_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/rollout"
	"github.com/acp-io/acp/internal/waves"
)

// host of many resources in memory, whose writes can fail or wait.
type host struct {
	mu      sync.Mutex
	objects map[string]*v1alpha1.ProtectedResource
	fails   map[string]error
	writes  int
	gate    chan struct{} // nil if nothing waits
}

func (h *host) SetTemporaryAudit(
	ctx context.Context,
	name, _ string,
	audit *v1alpha1.TemporaryAudit,
	check func(context.Context, v1alpha1.ProtectedResourceSpec) error,
) (*v1alpha1.ProtectedResource, error) {
	if h.gate != nil {
		<-h.gate
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.objects[name]
	if o == nil {
		return nil, rollout.ErrGone
	}
	if err := check(ctx, o.Spec); err != nil {
		return nil, err
	}
	if err := h.fails[name]; err != nil {
		return nil, err
	}
	changed := o.DeepCopy()
	changed.Spec.TemporaryAudit = audit
	h.objects[name] = changed
	h.writes++
	return changed, nil
}

func (h *host) ResourceClasses() ([]*v1alpha1.ResourceClass, bool) { return nil, true }

func (h *host) InstructClass(context.Context, string, waves.Instruction) error {
	return rollout.ErrGone
}

func (h *host) Instruct(context.Context, string, waves.Instruction) error {
	return errors.New("a downgrade gives no instruction")
}

func (h *host) list() ([]*v1alpha1.ProtectedResource, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []*v1alpha1.ProtectedResource
	for _, o := range h.objects {
		out = append(out, o)
	}
	return out, true
}

// read implements Objects of rollout.FleetDowngrader.
func (h *host) read(context.Context) ([]*v1alpha1.ProtectedResource, error) {
	all, _ := h.list()
	return all, nil
}

// open are the names of those that a temporary audit opens, sorted.
func (h *host) open(now time.Time) []string {
	all, _ := h.list()
	out := []string{}
	for _, o := range all {
		if rollout.InTemporaryAudit(o.Spec, now) {
			out = append(out, o.Name)
		}
	}
	slices.Sort(out)
	return out
}

func classOf(resource string) string {
	if resource == orders || len(resource) > 2 && resource[:2] == "r:" {
		return "redis"
	}
	return "kafka"
}

// downgrades over orders and some others: two redis in Enforce, one in Audit, one kafka that one member enforces.
func downgrades(t *testing.T) (*world, *host, *rollout.FleetDowngrader) {
	w := newWorld(t, v1alpha1.ModeEnforce)
	h := &host{objects: map[string]*v1alpha1.ProtectedResource{}, fails: map[string]error{}}
	add := func(name, resource string, mode v1alpha1.Mode, modes ...v1alpha1.ClusterMode) {
		h.objects[name] = &v1alpha1.ProtectedResource{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       v1alpha1.ProtectedResourceSpec{Resource: v1alpha1.ResourceName(resource), Mode: mode, ClusterModes: modes},
		}
	}
	add("orders", orders, v1alpha1.ModeEnforce)
	add("carts", "r:carts", v1alpha1.ModeEnforce)
	add("watched", "r:watched", v1alpha1.ModeAudit)
	add("events", "k:events", v1alpha1.ModeAudit, v1alpha1.ClusterMode{Cluster: "m1", Mode: v1alpha1.ModeEnforce})
	service := *w.Service
	service.Writer = h
	return w, h, &rollout.FleetDowngrader{Service: &service, Objects: h.read, ClassOf: classOf, MaxWait: time.Minute, Running: t.Context()}
}

func TestDowngradeOpensAndCloses(t *testing.T) {
	w, h, d := downgrades(t)
	hour := rollout.TemporaryAuditRequest{Until: w.now.Add(time.Hour), Reason: "an outage"}
	begin := func(scope rollout.FleetDowngradeScope, want rollout.TemporaryAuditRequest) rollout.FleetDowngradeRun {
		t.Helper()
		r, err := d.Begin(t.Context(), sam, scope, want)
		if err != nil || r.FinishedAt.IsZero() {
			t.Fatalf("%+v %v", r, err)
		}
		return r
	}
	if r := begin(rollout.FleetDowngradeScope{Class: "redis"}, hour); r.Total != 2 || r.Done != 2 || r.FailedTotal != 0 {
		t.Errorf("%+v", r)
	}
	if diff := cmp.Diff([]string{"carts", "orders"}, h.open(w.now)); diff != "" {
		t.Errorf("only what enforces, and only of the class: %s", diff)
	}
	if r := begin(rollout.FleetDowngradeScope{}, hour); r.Total != 1 || h.writes != 3 {
		t.Errorf("what is open for as long stays as it is: %+v, %d writes", r, h.writes)
	}
	if diff := cmp.Diff([]string{"carts", "events", "orders"}, h.open(w.now)); diff != "" {
		t.Error(diff)
	}
	if r := begin(rollout.FleetDowngradeScope{}, hour); r.Total != 0 || h.writes != 3 {
		t.Errorf("again: nothing is done twice: %+v", r)
	}
	// An owner's own stays open when the downgrade ends.
	h.objects["carts"].Spec.TemporaryAudit = &v1alpha1.TemporaryAudit{Until: metav1.NewTime(w.now.Add(2 * time.Hour)), Reason: "mine", By: "bob"}
	if r, err := d.Resume(t.Context(), sam, rollout.FleetDowngradeScope{Class: "redis"}, "it is back"); err != nil || r.Done != 1 {
		t.Fatalf("%+v %v", r, err)
	}
	if diff := cmp.Diff([]string{"carts", "events"}, h.open(w.now)); diff != "" {
		t.Error(diff)
	}
	if r, err := d.Resume(t.Context(), sam, rollout.FleetDowngradeScope{}, "it is back"); err != nil || r.Done != 1 {
		t.Fatalf("%+v %v", r, err)
	}
	if diff := cmp.Diff([]string{"carts"}, h.open(w.now)); diff != "" {
		t.Error(diff)
	}
	if r, err := d.Resume(t.Context(), sam, rollout.FleetDowngradeScope{}, "again"); err != nil || !r.Resume {
		t.Errorf("again: it was done already: %v", err)
	}
	want := []string{
		"downgrade.begun",
		"resource.temporary-audit",
		"resource.temporary-audit",
		"downgrade.begun",
		"resource.temporary-audit",
		"downgrade.begun",
		"downgrade.ended",
		"resource.temporary-audit-ended",
		"downgrade.ended",
		"resource.temporary-audit-ended",
	}
	if diff := cmp.Diff(want, w.actions()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string][]string{"downgrade": {"bob"}, "downgrade-ended": {"bob"}}, w.told()); diff != "" {
		t.Errorf("the owners are notified, and not the actor: %s", diff)
	}
}

func TestWhoMayDowngrade(t *testing.T) {
	w, h, d := downgrades(t)
	hour := rollout.TemporaryAuditRequest{Until: w.now.Add(time.Hour), Reason: "an outage"}
	for name, tc := range map[string]struct {
		reason string
		who    approval.Actor
		scope  rollout.FleetDowngradeScope
		want   rollout.TemporaryAuditRequest
		code   approval.Code
	}{
		"owner":    {"of one resource is not of all", bob, rollout.FleetDowngradeScope{}, hour, approval.CodeForbidden},
		"stranger": {"no", erin, rollout.FleetDowngradeScope{}, hour, approval.CodeForbidden},
		"auditor":  {"an auditor may not, whatever other roles they have", otto, rollout.FleetDowngradeScope{}, hour, approval.CodeForbidden},
		"reasonless": {
			"everybody concerned reads it", sam, rollout.FleetDowngradeScope{},
			rollout.TemporaryAuditRequest{Until: hour.Until, Reason: " "}, approval.CodeInvalid,
		},
		"past": {"would be no end", sam, rollout.FleetDowngradeScope{}, rollout.TemporaryAuditRequest{Until: w.now, Reason: "x"}, approval.CodeInvalid},
		"long": {
			"step by step", sam, rollout.FleetDowngradeScope{},
			rollout.TemporaryAuditRequest{Until: w.now.Add(rollout.MaxTemporaryAudit + time.Minute), Reason: "x"}, approval.CodeInvalid,
		},
		"unknown class": {"a typing error opens nothing", sam, rollout.FleetDowngradeScope{Class: "kafak"}, hour, approval.CodeInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := d.Begin(t.Context(), tc.who, tc.scope, tc.want); approval.CodeOf(err) != tc.code {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
	if _, err := d.Resume(t.Context(), bob, rollout.FleetDowngradeScope{}, "no"); approval.CodeOf(err) != approval.CodeForbidden {
		t.Errorf("an owner ends none: %v", err)
	}
	if _, err := d.Resume(t.Context(), sam, rollout.FleetDowngradeScope{}, "over"); approval.CodeOf(err) != approval.CodeConflict {
		t.Errorf("there is none: %v", err)
	}
	h.objects = map[string]*v1alpha1.ProtectedResource{"watched": h.objects["watched"]}
	if _, err := d.Begin(t.Context(), sam, rollout.FleetDowngradeScope{}, hour); approval.CodeOf(err) != approval.CodeConflict {
		t.Errorf("nothing is enforced: %v", err)
	}
	if h.writes != 0 || len(w.actions()) != 0 {
		t.Errorf("nothing was written by all that: %d, %v", h.writes, w.actions())
	}
}

// TestDowngradeContinuesAfterAFailure checks that a resource that fails does not delay the others, and is retried by the same call.
func TestDowngradeContinuesAfterAFailure(t *testing.T) {
	w, h, d := downgrades(t)
	hour := rollout.TemporaryAuditRequest{Until: w.now.Add(time.Hour), Reason: "an outage"}
	h.fails["carts"] = errors.New("dial tcp 10.0.0.1: refused")
	h.fails["events"] = &approval.RefusedError{Message: message.Verbatim("no")}
	r, err := d.Begin(t.Context(), sam, rollout.FleetDowngradeScope{}, hour)
	if err != nil || r.Done != 1 || r.FailedTotal != 2 {
		t.Fatalf("%+v %v", r, err)
	}
	failed := map[string]string{}
	for _, f := range r.Failed {
		failed[f.Resource] = f.Message.Text
	}
	want := map[string]string{"r:carts": "The host cluster cannot be reached; try again in a moment.", "k:events": "The host cluster refuses this: no"}
	if diff := cmp.Diff(want, failed); diff != "" {
		t.Errorf("each says why, and nothing of the inside: %s", diff)
	}
	h.fails = map[string]error{}
	if r, err := d.Begin(t.Context(), sam, rollout.FleetDowngradeScope{}, hour); err != nil || r.Total != 2 || r.Done != 2 {
		t.Errorf("%+v %v", r, err)
	}
	if diff := cmp.Diff([]string{"carts", "events", "orders"}, h.open(w.now)); diff != "" {
		t.Error(diff)
	}
}

// TestDowngradesDoNotCross checks that a call during a downgrade joins it if it requests the same, and waits otherwise.
func TestDowngradesDoNotCross(t *testing.T) {
	w, h, d := downgrades(t)
	hour := rollout.TemporaryAuditRequest{Until: w.now.Add(time.Hour), Reason: "an outage"}
	h.gate = make(chan struct{})
	d.MaxWait = time.Millisecond
	if r, err := d.Begin(t.Context(), sam, rollout.FleetDowngradeScope{}, hour); err != nil || !r.FinishedAt.IsZero() || r.Total != 3 {
		t.Fatalf("a concurrent call gets the progress: %+v %v", r, err)
	}
	if _, err := d.Resume(t.Context(), sam, rollout.FleetDowngradeScope{Class: "redis"}, "no, wait"); approval.CodeOf(err) != approval.CodeConflict {
		t.Errorf("the opposite waits: %v", err)
	}
	if _, err := d.Begin(t.Context(), sam, rollout.FleetDowngradeScope{Class: "redis"}, hour); approval.CodeOf(err) != approval.CodeConflict {
		t.Errorf("another waits: %v", err)
	}
	close(h.gate)
	d.MaxWait = time.Minute
	if r, err := d.Begin(t.Context(), sam, rollout.FleetDowngradeScope{}, hour); err != nil || r.FinishedAt.IsZero() {
		t.Errorf("the same joins: %+v %v", r, err)
	}
	if h.writes != 3 {
		t.Errorf("%d writes", h.writes)
	}
}

func TestExtent(t *testing.T) {
	now := time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)
	var all []*v1alpha1.ProtectedResource
	for i := range 150 {
		o := &v1alpha1.ProtectedResource{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i)},
			Spec:       v1alpha1.ProtectedResourceSpec{Resource: v1alpha1.ResourceName(fmt.Sprint("r:", i)), Mode: v1alpha1.ModeEnforce},
		}
		o.Status.Clusters = []v1alpha1.ClusterState{{Name: "m1", Mode: v1alpha1.ModeEnforce, State: v1alpha1.MemberRealized}}
		if i%2 == 0 {
			o.Status.Clusters = append(o.Status.Clusters, v1alpha1.ClusterState{Name: "m2", Mode: v1alpha1.ModeAudit})
		}
		if i < 10 {
			o.Spec.TemporaryAudit = &v1alpha1.TemporaryAudit{Until: metav1.NewTime(now.Add(time.Hour)), Reason: "an outage", By: "sam", Scope: "class/redis"}
			o.Status.Clusters[0].Mode = v1alpha1.ModeAudit
		}
		if i == 10 {
			o.Spec.TemporaryAudit = &v1alpha1.TemporaryAudit{Until: metav1.NewTime(now), Reason: "it was", By: "sam", Scope: "all"}
		}
		if i == 0 {
			o.Status.Clusters[0].DesiredRevision = "not there yet"
		}
		all = append(all, o)
	}
	all = append(all, &v1alpha1.ProtectedResource{Spec: v1alpha1.ProtectedResourceSpec{Resource: "k:events", Mode: v1alpha1.ModeAudit}})
	got := rollout.FleetDowngradeExtentOf(all, classOf, rollout.FleetDowngradeScope{}, now)
	want := rollout.FleetDowngradeExtent{
		Resources: 151,
		Enforced:  150,
		Open:      10,
		Members:   []string{"m1"},
		Seconds:   7,
		Classes:   []rollout.FleetDowngradeClass{{Name: "kafka"}, {Name: "redis", Enforced: 150, Open: 10}},
		Active: []rollout.ActiveFleetDowngrade{
			{Scope: rollout.FleetDowngradeScope{Class: "redis"}, Until: now.Add(time.Hour), Reason: "an outage", By: "sam", Resources: 10, Effective: 9},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, o := range all {
		o.Status.Clusters, o.Status.Groups = nil, v1alpha1.GroupMembers(o.Status.Clusters)
	}
	if diff := cmp.Diff(want, rollout.FleetDowngradeExtentOf(all, classOf, rollout.FleetDowngradeScope{}, now)); diff != "" {
		t.Error("members in groups count differently:", diff)
	}
	all[1].Status.Members = &v1alpha1.MemberCounts{Total: 2}
	if e := rollout.FleetDowngradeExtentOf(all, classOf, rollout.FleetDowngradeScope{}, now); e.Active[0].Effective != want.Active[0].Effective-1 {
		t.Error("a downgrade is called effective though a member is missing from the list:", e.Active)
	}
	one := rollout.FleetDowngradeExtentOf(all, classOf, rollout.FleetDowngradeScope{Class: "kafka"}, now)
	if one.Resources != 1 || one.Enforced != 0 || len(one.Active) != 1 {
		t.Errorf("%+v", one)
	}
	for text, scope := range map[string]rollout.FleetDowngradeScope{"all": {}, "class/redis": {Class: "redis"}} {
		if got, ok := rollout.ParseFleetDowngradeScope(text); !ok || got != scope || got.String() != text {
			t.Errorf("%s: %+v %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "class/", "half"} {
		if _, ok := rollout.ParseFleetDowngradeScope(text); ok {
			t.Errorf("%q is no scope", text)
		}
	}
}

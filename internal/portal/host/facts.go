package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/wallclock"
)

var _ approval.Host = (*Host)(nil)

// Facts implements approval.Host.
func (h *Host) Facts(resource string) (approval.Facts, error) {
	if resource == "" {
		return approval.Facts{}, nil
	}
	s, ok := h.Snapshot()
	if !ok {
		return approval.Facts{}, approval.HostUnknown()
	}
	f := approval.Facts{Protection: h.Protection(resource), Clients: clients(s.WhoCanReach(resource, wallclock.Now()))}
	if c, ok := s.ResourceClassOf(resource); ok {
		f.Class = c.Name
		for _, e := range c.Spec.Enforcers {
			f.Enforcers = append(f.Enforcers, string(e))
		}
	}
	return f, nil
}

// clients counts the subjects that an allow in force names.
func clients(grants []policy.Grant) int {
	seen := map[string]bool{}
	for _, g := range grants {
		if g.Effect == policy.Allow && g.Counting {
			seen[g.Subject] = true
		}
	}
	return len(seen)
}

// ApprovalPolicies implements approval.Host.
func (h *Host) ApprovalPolicies() ([]*v1alpha1.ApprovalPolicy, error) {
	if !h.Ready() {
		return nil, approval.HostUnknown()
	}
	var list v1alpha1.ApprovalPolicyList
	if err := h.cache.List(context.Background(), &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the approval policies of the cache: %w", err)
	}
	return pointers(list.Items), nil
}

// indexSubject finds ExternalWorkloads by the subject that they are.
const indexSubject = "spec.subject"

func subjectOf(o client.Object) []string {
	w, ok := o.(*v1alpha1.ExternalWorkload)
	if !ok {
		return nil
	}
	return []string{string(w.Spec.Subject)}
}

// Compiled implements approval.Host. It is asked in the middle of decisions, so it reads no more than it needs.
func (h *Host) Compiled(it approval.Item) ([]string, error) {
	if !h.Ready() {
		return nil, approval.HostUnknown()
	}
	var resources v1alpha1.ResourceClassList
	var subjects v1alpha1.SubjectClassList
	var workloads v1alpha1.ExternalWorkloadList
	ctx := context.Background() // lists of a synced cache wait for nothing
	if err := errors.Join(h.cache.List(ctx, &resources, client.UnsafeDisableDeepCopy), h.cache.List(ctx, &subjects, client.UnsafeDisableDeepCopy),
		h.cache.List(ctx, &workloads, client.UnsafeDisableDeepCopy, client.MatchingFields{indexSubject: it.ApplicationName})); err != nil {
		return nil, fmt.Errorf("list the classes and workloads of the cache: %w", err)
	}
	return CompiledLines(policy.Input{ResourceClasses: pointers(resources.Items), SubjectClasses: pointers(subjects.Items), Workloads: pointers(workloads.Items)}, it), nil
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}

// CompiledLines are what one item's statement brings, as if its resource were in Enforce and had no other statement:
// other people's changes do not alter it, but a class, or the addresses of the subject, do.
func CompiledLines(in policy.Input, it approval.Item) []string {
	it.SID, it.ExpiresAt = "shown", time.Time{}
	alone := policy.Input{ResourceClasses: in.ResourceClasses, SubjectClasses: in.SubjectClasses, Lacks: in.Lacks,
		Resources: []*v1alpha1.ProtectedResource{{ObjectMeta: metav1.ObjectMeta{Name: "shown"},
			Spec: v1alpha1.ProtectedResourceSpec{Resource: v1alpha1.ResourceName(it.ResourceName), Mode: v1alpha1.ModeEnforce}}},
		Policies: []*v1alpha1.AccessControlPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "shown"},
			Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{approval.Statement(it)}}}},
	}
	for _, w := range in.Workloads {
		if string(w.Spec.Subject) == it.ApplicationName {
			alone.Workloads = append(alone.Workloads, w)
		}
	}
	s := policy.NewSnapshot(alone)
	u, ok := s.CompileResource(it.ResourceName, wallclock.Now())
	if !ok {
		return []string{"nothing: the resource cannot be compiled"}
	}
	var lines []string
	for _, r := range u.Refused {
		lines = append(lines, "refused: "+r.Message)
	}
	for _, peer := range groups(s) {
		lines = append(lines, "workloads outside the fleet: "+peer)
	}
	for i := range u.Rules {
		lines = append(lines, ruleLines(u, &u.Rules[i])...)
	}
	return append(lines, placementLines(u)...)
}

// groups are the addresses of the subject's workloads outside the fleet.
func groups(s *policy.Snapshot) []string {
	var out []string
	for _, g := range s.ExternalGroups() {
		for _, p := range g.Prefixes {
			out = append(out, g.ID+" "+p.String())
		}
	}
	return out
}

// ruleLines has one line for each peer, port and request of a rule, so that each that is added is a line that is added.
func ruleLines(u policy.Unit, r *policy.Rule) []string {
	var peers []string
	if r.Anyone {
		peers = append(peers, "anyone")
	}
	for _, s := range r.Subjects {
		if s.Any {
			peers = append(peers, "pods with "+s.LabelKey)
		}
		for _, v := range s.Values {
			peers = append(peers, "pods with "+s.LabelKey+"="+v)
		}
	}
	for _, p := range r.Prefixes {
		peers = append(peers, "addresses "+p.String())
	}
	for _, g := range append(slices.Clone(r.External), r.ExternalClasses...) {
		peers = append(peers, "workloads outside the fleet of "+g)
	}
	requests := []string{""}
	if len(r.HTTP) > 0 {
		requests = nil
		for _, m := range r.HTTP {
			requests = append(requests, strings.TrimRight(" "+m.Method+" "+m.Path, " "))
		}
	}
	var lines []string
	for _, peer := range peers {
		for _, p := range r.Ports {
			ports := fmt.Sprint(p.Port)
			if p.EndPort != nil {
				ports += fmt.Sprintf("-%d", *p.EndPort)
			}
			for _, request := range requests {
				lines = append(lines, fmt.Sprintf("%s %s to pods with %s=%s on %s/%s%s", strings.ToLower(string(r.Effect)), peer, u.LabelKey, u.LabelValue, ports, p.Protocol, request))
			}
		}
	}
	return lines
}

// placementLines has one line for each member, or for the selector of members.
func placementLines(u policy.Unit) []string {
	var lines []string
	if u.Placement.Clusters != nil {
		for _, c := range *u.Placement.Clusters {
			lines = append(lines, "in member "+string(c))
		}
	}
	if sel := u.Placement.ClusterSelector; sel != nil {
		if len(sel.MatchLabels)+len(sel.MatchExpressions) == 0 {
			lines = append(lines, "in every member")
		} else {
			lines = append(lines, "in members with "+metav1.FormatLabelSelector(sel))
		}
	}
	for _, e := range u.Enforcers {
		lines = append(lines, "enforced by "+string(e))
	}
	return lines
}

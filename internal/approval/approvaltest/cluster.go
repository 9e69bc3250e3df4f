package approvaltest

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
)

// Put implements approval.PolicyWriter.
func (h *Host) Put(ctx context.Context, policy, resource string, statements []v1alpha1.Statement, check approval.Check) (approval.Written, error) {
	return h.edit(ctx, policy, check, func(p *v1alpha1.AccessControlPolicy) {
		for _, s := range statements {
			p.Spec.Statements = append(without(p.Spec.Statements, s.SID), s)
		}
	})
}

// Replace implements approval.PolicyWriter.
func (h *Host) Replace(ctx context.Context, policy, resource string, statement v1alpha1.Statement, current func(v1alpha1.Statement) bool,
	check approval.Check) (approval.Written, error) {
	gone := false
	written, err := h.edit(ctx, policy, func(ctx context.Context, present bool) error {
		if err := check(ctx, present); err != nil || !gone {
			return err
		}
		return errNothingToReplace
	}, func(p *v1alpha1.AccessControlPolicy) {
		i := slices.IndexFunc(p.Spec.Statements, func(s v1alpha1.Statement) bool { return s.SID == statement.SID && current(s) })
		if gone = i < 0; !gone {
			p.Spec.Statements[i] = statement
		}
	})
	if errors.Is(err, errNothingToReplace) {
		return approval.Written{}, nil
	}
	return written, err
}

var errNothingToReplace = errors.New("the policy no longer has the statement")

// Drop implements approval.PolicyWriter.
func (h *Host) Drop(ctx context.Context, policy, resource string, sids []string, check approval.Check) (approval.Written, error) {
	return h.edit(ctx, policy, check, func(p *v1alpha1.AccessControlPolicy) {
		for _, sid := range sids {
			p.Spec.Statements = without(p.Spec.Statements, sid)
		}
	})
}

func without(in []v1alpha1.Statement, sid string) []v1alpha1.Statement {
	return slices.DeleteFunc(slices.Clone(in), func(s v1alpha1.Statement) bool { return s.SID == sid })
}

// edit reads, checks, and writes if there was no write in between, like the real one. Every write is a new version.
func (h *Host) edit(ctx context.Context, name string, check approval.Check, change func(*v1alpha1.AccessControlPolicy)) (approval.Written, error) {
	for {
		if h.Down != nil {
			if err := h.Down(); err != nil {
				return approval.Written{}, err
			}
		}
		before, _ := h.Cached(name)
		if before == nil {
			before = &v1alpha1.AccessControlPolicy{}
			before.Name, before.UID = name, types.UID("uid-"+name)
		}
		now := before.DeepCopy()
		change(now)
		if err := check(ctx, equality.Semantic.DeepEqual(before, now)); err != nil {
			return approval.Written{}, err
		}
		if h.swap(before, now) {
			return approval.Written{Generation: now.Generation, UID: string(now.UID)}, nil
		}
	}
}

// swap stores a policy if the one that was read is still there.
func (h *Host) swap(before, now *v1alpha1.AccessControlPolicy) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if has := h.policies[now.Name]; has != nil && has.ResourceVersion != before.ResourceVersion || has == nil && before.ResourceVersion != "" {
		return false
	}
	if h.policies == nil {
		h.policies = map[string]*v1alpha1.AccessControlPolicy{}
	}
	h.made++
	now.Generation, now.ResourceVersion = before.Generation+1, strconv.FormatInt(h.made, 10)
	h.policies[now.Name] = now
	return true
}

// Edit changes a policy as a user outside the portal would.
func (h *Host) Edit(name string, change func(*v1alpha1.AccessControlPolicy)) {
	if before, ok := h.Cached(name); ok {
		now := before.DeepCopy()
		change(now)
		h.swap(before, now)
	}
}

// Ready implements approval.Policies.
func (h *Host) Ready() bool { return true }

// Cached implements approval.Policies.
func (h *Host) Cached(name string) (*v1alpha1.AccessControlPolicy, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p, ok := h.policies[name]
	return p, ok
}

// Live implements approval.Policies.
func (h *Host) Live(_ context.Context, name string) (*v1alpha1.AccessControlPolicy, error) {
	p, _ := h.Cached(name)
	return p, nil
}

// Names of the policies, sorted.
func (h *Host) Names() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	for name := range h.policies {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Report is the adapter's word about every policy: one member has what it should have, or not yet.
func (h *Host) Report(realized bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	state := v1alpha1.MemberPending
	if realized {
		state = v1alpha1.MemberRealized
	}
	for name, p := range h.policies {
		now := p.DeepCopy()
		u := v1alpha1.PolicyUnit{Resource: v1alpha1.ResourceName(strings.TrimPrefix(name, "p-")), Revision: "r" + p.ResourceVersion,
			Clusters: []v1alpha1.ClusterState{{Name: "m1", DesiredRevision: "r" + p.ResourceVersion, State: state}}}
		for _, s := range p.Spec.Statements {
			u.SIDs = append(u.SIDs, s.SID)
		}
		now.Status = v1alpha1.AccessControlPolicyStatus{ObservedGeneration: p.Generation, Units: []v1alpha1.PolicyUnit{u}}
		h.policies[name] = now
	}
}

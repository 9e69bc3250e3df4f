package host

import (
	"slices"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/wallclock"
)

// Granted reports whether any allow in force names an application, or covers it.
func (h *Host) Granted(application string) (bool, error) {
	s, ok := h.Snapshot()
	if !ok {
		return false, approval.HostUnknown()
	}
	return slices.ContainsFunc(s.WhatCanReach(application, wallclock.Now()), func(g policy.Grant) bool { return g.Effect == policy.Allow }), nil
}

// Reached implements approval.Host.
func (h *Host) Reached(application string) (approval.Reached, error) {
	s, ok := h.Snapshot()
	if !ok {
		return approval.Reached{}, approval.HostUnknown()
	}
	return ReachedIn(s, application, wallclock.Now()), nil
}

// ReachedIn returns the resources that an application can access by a snapshot. Allows that have not begun yet are included.
func ReachedIn(s *policy.Snapshot, application string, at time.Time) approval.Reached {
	var r approval.Reached
	for _, g := range s.WhatCanReach(application, at) {
		switch {
		case g.Effect != policy.Allow || g.Subject == anyone:
		case g.Wildcard:
			r.Wildcards = append(r.Wildcards, g.Resource)
		default:
			r.Resources = append(r.Resources, g.Resource)
		}
	}
	slices.Sort(r.Resources)
	slices.Sort(r.Wildcards)
	r.Resources, r.Wildcards = slices.Compact(r.Resources), slices.Compact(r.Wildcards)
	return r
}

// GrantsOf returns the grants that name an application or a resource, for people who decide whether to remove it from the catalog. It
// returns none before the host cluster has been read.
func (h *Host) GrantsOf(name string) []catalog.Grant {
	s, ok := h.Snapshot()
	if !ok {
		return nil
	}
	var out []catalog.Grant
	now := wallclock.Now()
	for _, g := range append(s.WhatCanReach(name, now), s.WhoCanReach(name, now)...) {
		if g.Effect == policy.Allow && (g.Subject == name || g.Resource == name) {
			out = append(out, catalog.Grant{Subject: g.Subject, Resource: g.Resource, Policy: g.Ref.Policy, SID: g.Ref.SID})
		}
	}
	return out
}

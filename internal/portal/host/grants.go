package host

import (
	"slices"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/wallclock"
)

// Granted tells whether any allow in force names an application, or covers it.
func (h *Host) Granted(application string) (bool, error) {
	s, ok := h.Snapshot()
	if !ok {
		return false, approval.HostUnknown()
	}
	return slices.ContainsFunc(s.WhatCanReach(application, wallclock.Now()), func(g policy.Grant) bool { return g.Effect == policy.Allow }), nil
}

// GrantsOf are the grants that name an application or a resource, for who decides whether it may leave the catalog;
// none before the host cluster was seen.
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

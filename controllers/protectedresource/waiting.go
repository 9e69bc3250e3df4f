package protectedresource

import (
	"maps"
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/memberhealth"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// enforcementDelay contains the members in which Enforce is delayed, and the members that cause it. Its zero value
// delays nothing.
type enforcementDelay struct {
	// members contains the members that are in Audit because Enforce is delayed.
	members map[string]bool
	// lacks are the members whose identities lack labels, by name.
	lacks []memberhealth.Lack
}

// reason returns the reason why a member is not closed yet, or zero if Enforce is not delayed there.
func (d *enforcementDelay) reason(cluster string) message.Message {
	if !d.members[cluster] {
		return message.Message{}
	}
	return message.StateEnforceWaits(membersOf(d.lacks))
}

// delayEnforcement computes in which members Enforce must wait for labels in identities. If some member's identities lack a label,
// a closed workload would refuse the clients of that member, and a workload without its own label would not be closed
// at all. So no member is closed before every placed one has the labels.
//
// A member where the resource is already closed never waits, and no other member waits for it. So a member that joins
// later, or one that lost its labels, delays only what is still open. A name without a registration is not a member,
// and a member that is set to Observe has nothing to close.
func (f *facts) delayEnforcement() enforcementDelay {
	if f.wildcard() || !f.enforcedBy(v1alpha1.EnforcerCilium) {
		return enforcementDelay{}
	}
	w := enforcementDelay{members: map[string]bool{}}
	for _, c := range f.openMembers() {
		if f.mode(c) == v1alpha1.ModeEnforce {
			w.members[c] = true
		}
		why, read := f.MissingLabels[c]
		if !read {
			why = message.MemberDataplaneUnread()
		}
		if !why.IsZero() {
			w.lacks = append(w.lacks, memberhealth.Lack{Member: c, Reason: why})
		}
	}
	if len(w.members) == 0 || len(w.lacks) == 0 {
		return enforcementDelay{}
	}
	return w
}

// openMembers returns the registered members in which the resource is in Audit or Enforce, and that its policy of Cilium
// does not close yet.
func (f *facts) openMembers() []string {
	closed := f.membersClosedBy(federation.CiliumPolicy)
	return slices.DeleteFunc(slices.Clone(f.targets()), func(c string) bool { return closed[c] || f.cluster(c) == nil })
}

// membersClosedBy returns the members in which an object of a kind closes the resource, as it is written now. An object that cannot be
// read in full may do so wherever it is placed.
func (f *facts) membersClosedBy(kind federation.Kind) map[string]bool {
	out := map[string]bool{}
	for _, e := range f.Existing {
		if e.Kind != kind {
			continue
		}
		template := e.ForeignFields || closes(e.Kind, e.TemplateSpec)
		for _, c := range e.Placement {
			own := e.Overrides[c].Spec
			if own == nil && template || own != nil && (e.ForeignFields || closes(e.Kind, own)) {
				out[c] = true
			}
		}
	}
	return out
}

// closes reports whether the spec makes the workload refuse what it does not allow; an unknown kind counts as closing.
func closes(kind federation.Kind, spec map[string]any) bool {
	effect := effectOf(kind)
	return effect == nil || effect(spec, nil) == enforcer.Opens
}

// withAudit returns the unit with Audit as the mode of the members in which Enforce waits.
func (d *enforcementDelay) withAudit(u policy.Unit, targets []string) policy.Unit {
	if len(d.members) == 0 {
		return u
	}
	own := u.ClusterModes
	u.ClusterModes = maps.Clone(own)
	if u.ClusterModes == nil {
		u.ClusterModes = map[string]v1alpha1.Mode{}
	}
	// A mode of their own makes the object larger by a spec for each, so where all with the base mode wait the base waits.
	base := u.Mode == v1alpha1.ModeEnforce && !slices.ContainsFunc(targets, func(c string) bool {
		_, has := own[c]
		return !has && !d.members[c]
	})
	if base {
		u.Mode = v1alpha1.ModeAudit
	}
	for c := range d.members {
		delete(u.ClusterModes, c)
		if u.Mode != v1alpha1.ModeAudit {
			u.ClusterModes[c] = v1alpha1.ModeAudit
		}
	}
	return u
}

package cilium

import (
	"fmt"
	"net/netip"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/policy"
)

const (
	groupKind = "CiliumCIDRGroup"
	// contestedSuffix is the suffix of the name of the group of addresses that several subjects claim.
	contestedSuffix = "-contested"
	// labelContested marks groups that only denies may use.
	labelContested = "acp.io/contested"
)

// LabelClass returns the label key that every group of a subject class has. The class is in the key because an address
// in several groups has the labels of all of them, and an agent may keep only one of several values of a key.
func LabelClass(classID string) string { return "class.acp.io/" + classID }

// RenderGroup translates the addresses of one external subject into an object for the addresses that only it has, and
// another object for those that it shares.
func RenderGroup(g policy.ExternalGroup) (enforcer.Rendering, error) {
	if g.ID == "" || g.ClassID == "" {
		return enforcer.Rendering{}, fmt.Errorf("%w for %q: a group without id or class", ErrUnusableUnit, g.Subject)
	}
	var out enforcer.Rendering
	add := func(suffix string, spec map[string]any) error {
		o := enforcer.Object{GroupVersion: groupVersion, Kind: groupKind, Name: v1alpha1.ObjectPrefix + g.ID + suffix, Spec: spec}
		r, err := enforcer.Render(o, g.ID, nil)
		if err != nil {
			return err
		}
		// The labels are part of the identity that an agent allocates to the addresses. If the revision were among
		// them, adding or removing one address would change the identity of all others.
		delete(r.Object.Labels, v1alpha1.LabelRevision)
		r.Object.Labels[LabelClass(g.ClassID)] = "true"
		if suffix != "" {
			r.Object.Labels[labelContested] = "true"
		}
		out.Objects = append(out.Objects, r)
		return nil
	}
	if err := add("", addresses(g.Prefixes)); err != nil {
		return enforcer.Rendering{}, err
	}
	if len(g.Contested) == 0 {
		return out, nil
	}
	if err := add(contestedSuffix, addresses(g.Contested)); err != nil {
		return enforcer.Rendering{}, err
	}
	return out, nil
}

func addresses(prefixes []netip.Prefix) map[string]any {
	list := make([]any, len(prefixes))
	for i, p := range prefixes {
		list[i] = p.String()
	}
	return map[string]any{"externalCIDRs": list}
}

package backup

import (
	"context"
	"fmt"
	"io"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
)

// withhold removes from a policy the allows of which it is not known that they are still approved: allows of the portal whose ticket does
// not grant them any more, and others depending on the Mode. Denies stay. It returns a policy with the removed statements that did not
// come from the portal, or nil if there are none. Removed allows of the portal can be requested again.
func (t Target) withhold(
	ctx context.Context,
	tickets approval.TicketStore,
	l *ledgerExport,
	p *v1alpha1.AccessControlPolicy,
) (*v1alpha1.AccessControlPolicy, error) {
	changed := t.Mode == ModeHoldGrants || l.objects["AccessControlPolicy/"+p.Name]
	var stay, held []v1alpha1.Statement
	for _, s := range p.Spec.Statements {
		number, portals := approval.TicketOfSID(s.SID)
		portals = portals && p.Labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByPortal
		switch {
		case s.Effect != v1alpha1.EffectAllow:
			stay = append(stay, s)
		case portals:
			grants, err := granted(ctx, tickets, number, s.SID)
			if err != nil {
				return nil, err
			}
			if grants {
				stay = append(stay, s)
			}
		case changed:
			held = append(held, s)
		default:
			stay = append(stay, s)
		}
	}
	p.Spec.Statements = stay
	if len(held) == 0 {
		return nil, nil
	}
	out := p.DeepCopy()
	out.Spec.Statements = held
	return out, nil
}

// granted reports whether the ticket of a statement grants it.
func granted(ctx context.Context, tickets approval.TicketStore, number int64, sid string) (bool, error) {
	x, err := tickets.Get(ctx, number)
	if approval.CodeOf(err) == approval.CodeNotFound {
		return false, nil // the database was read after the host cluster, so it was not requested in the portal
	}
	if err != nil {
		return false, err
	}
	return x.Kind.Access() && slices.ContainsFunc(x.Items, func(it approval.Item) bool { return it.SID == sid && it.State.MayBeOnHost() }), nil
}

func writeHeld(w io.Writer, p *v1alpha1.AccessControlPolicy) error {
	p.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("AccessControlPolicy"))
	text, err := yaml.Marshal(p)
	if err == nil {
		_, err = fmt.Fprintf(w, "---\n%s", text)
	}
	if err != nil {
		return fmt.Errorf("write the statements that are held: %w", err)
	}
	return nil
}

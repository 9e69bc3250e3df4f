package approval

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
)

// chain returns an item with the steps, or the review, that a request for it needs now. Durations count from the
// submission.
func (s *Service) chain(c *catalog.Catalog, kind Kind, requester string, breakGlass bool, it Item, requestedAt time.Time) (Item, error) {
	facts, err := s.Host.Facts(it.ResourceName)
	if err != nil {
		return it, err
	}
	policies, err := s.Host.ApprovalPolicies()
	if err != nil {
		return it, err
	}
	organizations, err := s.Organizations()
	if err != nil {
		return it, err
	}
	to := about{c: c, requester: requester, author: it.Author, holderUpdate: it.isHolderUpdate(), timeouts: s.Builtin, organizations: organizations,
		delegates: delegates(c, organizations, requester, it.Change)}
	to.application, _ = c.ByName(it.ApplicationName)
	to.resource, _ = c.ByName(it.ResourceName)
	if kind == KindWorkload {
		reached, err := s.Host.Reached(it.ApplicationName)
		if err != nil {
			return it, err
		}
		to.reached = &reached
	}
	if it.Scope != nil {
		to.reached, to.scope = it.Scope.concerned(c, requester), it.Scope
	}
	if kind == KindPackage {
		spec, ok := it.Change.packageOf()
		if !ok {
			return it, fmt.Errorf("a version of an access package cannot be read")
		}
		to.reached = &Reached{Resources: spec.ResourceNames()}
		to.application.Title = spec.Title // which errors name
	}
	if kind == KindClass && it.Change != nil {
		affected, err := s.Host.Affected(*it.Change)
		if err != nil {
			return it, err
		}
		to.setAffected(affected)
	}
	return to.resolve(kind, breakGlass, it, s.compiled(policies), rulesRequest(c, kind, requester, breakGlass, it, facts, requestedAt), requestedAt)
}

// restartIfStricter compares an item's chain with the one that the same request needs now, because a resource may have become more
// sensitive, or a policy stricter. If approvals are missing it restarts the chain and returns true.
func (s *Service) restartIfStricter(t *Ticket, i int) (bool, error) {
	c, it := s.Catalog(), t.Items[i]
	if t.BreakGlass || it.State != StatePending {
		return false, nil
	}
	if _, known := c.ByName(it.ResourceName); !known && it.ResourceName != "" {
		return false, nil // it cannot be approved any more; the vote is refused for that reason
	}
	now, err := s.chain(c, t.itemKind(i), t.Requester, false, it, t.CreatedAt)
	if err != nil {
		return false, err
	}
	missing := unmet(it.Steps, now.Steps)
	if len(missing) == 0 && (!it.ManySteps || now.ManySteps) {
		t.Items[i].Latest = now.Latest
		return false, nil
	}
	t.rechain(i, now, missing, s.Now())
	return true, nil
}

// unmet returns the wanted steps for which the chain has no step with the same approvers, at least as many approvals and the
// same limit, or one where none is wanted. A
// step that needed all of them is not sufficient, because it may select more people now.
func unmet(chain, wanted []Step) []Step {
	free := slices.Clone(chain)
	var out []Step
	for _, w := range wanted {
		k := slices.IndexFunc(free, func(s Step) bool {
			return sameApprovers(s.From, w.From) && s.Quorum >= w.Quorum && (!s.Auto || w.Auto) && s.OnCall.covers(w.OnCall)
		})
		if k < 0 {
			out = append(out, w)
			continue
		}
		free = slices.Delete(free, k, k+1)
	}
	return out
}

// sameApprovers reports whether a step has the approvers of another one. A step of the owners of several resources also
// counts for a step of the owners of some of them, because its approvers own all of them.
func sameApprovers(has, wanted []v1alpha1.Approver) bool {
	if slices.Equal(has, wanted) {
		return true
	}
	for _, list := range [][]v1alpha1.Approver{has, wanted} {
		if slices.ContainsFunc(list, func(a v1alpha1.Approver) bool { kind, _ := splitApprover(a); return kind != FromOwnerOf }) {
			return false
		}
	}
	return !slices.ContainsFunc(wanted, func(a v1alpha1.Approver) bool { return !slices.Contains(has, a) })
}

// rechain restarts the decision with the chain that the request needs now.
func (t *Ticket) rechain(i int, now Item, missing []Step, at time.Time) {
	it := &t.Items[i]
	lines := make([]string, 0, len(missing))
	for _, m := range missing {
		lines = append(lines, fmt.Sprintf(LineAdded+"%s: %d of %s", m.Name, max(m.Quorum, 1), join(m.From)))
	}
	if it.ManySteps && !now.ManySteps {
		lines = append(lines, LineAdded+eachStep)
	}
	t.event(at, Event{Kind: EventVoided, Item: i, Revision: it.Shown.Digest, Comment: strings.Join(lines, "\n")})
	it.State, it.ExpiresAt, it.WarnAt, it.ShortenTo = StatePending, time.Time{}, time.Time{}, time.Time{}
	it.Steps, it.Approval, it.ManySteps, it.Latest = now.Steps, now.Approval, now.ManySteps, now.Latest
	for k := range it.Steps {
		it.Steps[k].restart()
	}
	t.setMessage(i, at, message.TicketVoidedMoreApprovers())
	t.advance(i, at)
}

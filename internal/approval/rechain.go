package approval

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/catalog"
)

// chain is an item with the steps, or the review, that a request for it needs now. Durations count from when it was asked.
func (s *Service) chain(c *catalog.Catalog, kind Kind, requester string, breakGlass bool, it Item, asked time.Time) (Item, error) {
	facts, err := s.Host.Facts(it.ResourceName)
	if err != nil {
		return it, err
	}
	policies, err := s.Host.ApprovalPolicies()
	if err != nil {
		return it, err
	}
	to := about{c: c, requester: requester}
	to.application, _ = c.ByName(it.ApplicationName)
	to.resource, _ = c.ByName(it.ResourceName)
	return to.resolve(kind, breakGlass, it, s.compiled(policies), rulesRequest(c, kind, requester, breakGlass, it, facts, asked), asked)
}

// demands compares an item's chain with what the same request would need now: a resource may have become more sensitive,
// or a policy stricter, since it was asked for. True: people are missing, and everybody is asked again.
func (s *Service) demands(t *Ticket, i int) (bool, error) {
	c, it := s.Catalog(), t.Items[i]
	if t.BreakGlass || it.State != StatePending {
		return false, nil
	}
	if _, known := c.ByName(it.ResourceName); !known && it.ResourceName != "" {
		return false, nil // nobody speaks for it any more, which the vote is refused for
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

// unmet are the steps that are wanted now and that no step of the chain stands for: one of the same approvers, with as
// many approvals. That a step needed everybody whom it named is not enough, because more people may be named now.
func unmet(chain, wanted []Step) []Step {
	free := slices.Clone(chain)
	var out []Step
	for _, w := range wanted {
		k := slices.IndexFunc(free, func(s Step) bool {
			return slices.Equal(s.From, w.From) && s.Quorum >= w.Quorum && (!s.Auto || w.Auto)
		})
		if k < 0 {
			out = append(out, w)
			continue
		}
		free = slices.Delete(free, k, k+1)
	}
	return out
}

// rechain asks everybody again, by the chain that a request needs now.
func (t *Ticket) rechain(i int, now Item, missing []Step, at time.Time) {
	it := &t.Items[i]
	lines := make([]string, 0, len(missing))
	for _, m := range missing {
		lines = append(lines, fmt.Sprintf("+ %s: %d of %s", m.Name, max(m.Quorum, 1), join(m.From)))
	}
	if it.ManySteps && !now.ManySteps {
		lines = append(lines, "+ each step by somebody else")
	}
	t.event(at, Event{Kind: EventVoided, Item: i, Revision: it.Shown.Digest, Comment: strings.Join(lines, "\n")})
	it.State, it.ExpiresAt, it.WarnAt = StatePending, time.Time{}, time.Time{}
	it.Steps, it.Approval, it.ManySteps, it.Latest = now.Steps, now.Approval, now.ManySteps, now.Latest
	for k := range it.Steps {
		s := &it.Steps[k]
		// What approves by itself did so once already, for less.
		s.State, s.Votes, s.Deadline, s.Auto = StepWaiting, nil, time.Time{}, false
	}
	t.say(i, at, "More people have to agree than when it was asked for, so the approvals are void and everybody is asked again.")
	t.advance(i, at)
}

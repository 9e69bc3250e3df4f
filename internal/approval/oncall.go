package approval

import (
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

// OnCallLimit limits a step to those of its approvers who are on call when they decide. It never adds anybody. The zero value
// is no limit.
type OnCallLimit struct {
	Schedule string
	Tier     int
	// Approvers permits every approver of the step to decide while nobody can by the limit. Otherwise the step waits.
	Approvers bool `json:",omitzero"`
}

// Duty is the answer to who is on call.
type Duty struct {
	Known    bool
	People   []string        // ids of the catalog, sorted
	Unlisted int             // those who are on call and whom the catalog does not have
	At       time.Time       // when the source of the schedule answered
	Reason   message.Message // why it is not known
	Missing  bool            // it is not known because the configuration has no such schedule or tier, so that waiting does not help
}

// OnCall returns who is on call now in a tier of a schedule. It must not wait for the source of the schedule.
type OnCall func(schedule string, tier int) Duty

// duty returns who is on call for a limit. Without a source, nobody is known, and the schedule is missing.
func (f OnCall) duty(limit OnCallLimit) Duty {
	if f == nil {
		return Duty{Missing: true, Reason: message.OnCallNotConfigured(limit.Schedule)}
	}
	d := f(limit.Schedule, limit.Tier)
	if !d.Known {
		d.People = nil
	}
	return d
}

var onCallForm = regexp.MustCompile(`^onCall\("([^"]+)", ?([1-9][0-9]?)\)$`)

// limitOf returns the limit of a step of an approval policy. A limit that cannot be read selects nobody.
func limitOf(s v1alpha1.ApprovalStep) OnCallLimit {
	if s.LimitTo == "" {
		return OnCallLimit{}
	}
	out := OnCallLimit{Schedule: string(s.LimitTo), Approvers: s.LimitFallback == v1alpha1.LimitApprovers}
	if m := onCallForm.FindStringSubmatch(string(s.LimitTo)); m != nil {
		out.Schedule = m[1]
		out.Tier, _ = strconv.Atoi(m[2])
	}
	return out
}

// IsZero reports whether there is no limit.
func (l OnCallLimit) IsZero() bool { return l == OnCallLimit{} }

// covers reports whether a decision under the limit is also one under another limit.
func (l OnCallLimit) covers(other OnCallLimit) bool {
	if other.IsZero() {
		return true
	}
	return l.Schedule == other.Schedule && l.Tier == other.Tier && (!l.Approvers || other.Approvers)
}

// EligibleApprovers contains the people who may decide a step. If the step is limited to people on call, others are
// left out unless Fallback is set.
type EligibleApprovers struct {
	People   []string        // may decide now, sorted; always approvers of the step who have not filled another one
	Fallback bool            // every approver may, because nobody can by the limit
	Reason   message.Message // why nobody can by the limit; zero if somebody can
	Duty     Duty
}

// Eligible returns who may decide a step now. Without a limit these are all approvers who have not filled another step. People
// to whom the step was escalated are not limited.
func (it *Item) Eligible(s *Step, on OnCall) EligibleApprovers {
	able := it.RemainingApprovers(s)
	slices.Sort(able)
	if s.OnCall.IsZero() {
		return EligibleApprovers{People: able}
	}
	out := EligibleApprovers{Duty: on.duty(s.OnCall)}
	for _, p := range able {
		if slices.Contains(out.Duty.People, p) {
			out.People = append(out.People, p)
		}
	}
	if len(out.People) == 0 {
		switch {
		case !out.Duty.Known:
			out.Reason = out.Duty.Reason
		case out.Duty.Unlisted > 0 && len(out.Duty.People) == 0:
			out.Reason = message.OnCallUnlisted(s.OnCall.Schedule)
		default:
			out.Reason = message.OnCallNoApprover(s.OnCall.Schedule)
		}
		if s.OnCall.Approvers {
			out.People, out.Fallback = able, true
			return out
		}
	}
	if s.Escalated {
		for _, p := range able {
			if slices.Contains(s.EscalateTo, p) && !slices.Contains(out.People, p) {
				out.People = append(out.People, p)
			}
		}
		slices.Sort(out.People)
	}
	return out
}

// checkOnCall returns an error if the waiting step of an item is limited to people who are on call and a person is none of
// them. If a delegate decides, the person is the one whom they represent.
func (a Actor) checkOnCall(t *Ticket, i int, person string) error {
	it := &t.Items[i]
	s := it.waiting()
	if s == nil || s.OnCall.IsZero() {
		return nil
	}
	l := it.Eligible(s, a.OnCall)
	switch {
	case slices.Contains(l.People, person):
		return nil
	case l.Reason.IsZero():
		return fail(CodeForbidden, message.DecideNotOnCall(StepName(s.Name), s.OnCall.Schedule))
	}
	return fail(CodeForbidden, message.DecideOnCallWaits(StepName(s.Name), l.Reason))
}

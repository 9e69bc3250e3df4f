package memberhealth

import (
	"slices"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/preflight"
	"github.com/acp-io/acp/internal/message"
)

// confirmations is the number of consecutive checks with the same result that are necessary before it has consequences.
const confirmations = 2

// history contains the results of earlier checks of a member.
type history struct {
	// Bad and Good are the numbers of consecutive checks that found a reason for quarantine, or found none.
	Bad, Good int
}

// action is what has to be done about a member.
type action string

const (
	actionNone       action = ""
	actionQuarantine action = "quarantine"
	actionResume     action = "resume"
	// actionSuspendDowngraded suspends propagation to a member that an operator downgraded.
	actionSuspendDowngraded action = "suspend downgraded"
)

// applyMark considers the mark of a downgrade. A member that stops KubeFed is quarantined in any case; one that is suspended
// because of a mark is resumed only after the mark was seen to be gone. It is pure.
func applyMark(c federation.Cluster, f *preflight.Facts, do action) action {
	switch {
	case f.Unreachable != "" || do == actionQuarantine:
		return do
	case f.Mark != nil:
		return actionSuspendDowngraded
	case c.DowngradeMark != nil && !f.MarkUnread.IsZero():
		return actionNone
	case c.DowngradeMark != nil:
		return actionResume
	}
	return do
}

// decide computes what one check leads to, and why. It is pure.
func decide(h history, quarantined bool, findings []preflight.Finding) (next history, do action, why message.Message) {
	if slices.ContainsFunc(findings, func(f preflight.Finding) bool { return f.Code == preflight.NotReadByHost }) {
		return history{}, actionNone, message.Message{} // nothing is known
	}
	i := slices.IndexFunc(findings, func(f preflight.Finding) bool { return f.Severity == preflight.Stops })
	if i >= 0 && findings[i].Code == preflight.Unreachable {
		// KubeFed's own health check detects an unreachable member, so that it does not stop the others. The kinds in the member are unknown.
		return history{}, actionNone, message.Message{}
	}
	if i < 0 {
		next = history{Good: h.Good + 1}
		if quarantined && next.Good >= confirmations {
			return next, actionResume, message.Message{}
		}
		return next, actionNone, message.Message{}
	}
	next = history{Bad: h.Bad + 1}
	if findings[i].Code != preflight.KindFails || next.Bad >= confirmations || quarantined {
		return next, actionQuarantine, findings[i].Message
	}
	return next, actionNone, message.Message{}
}

package memberhealth

import (
	"slices"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/preflight"
)

// patience is how many times in a row something has to be found before it counts, where one time may be chance.
const patience = 2

// history is what earlier looks at a member led to.
type history struct {
	// Bad and Good are the looks in a row that found what stops KubeFed, or did not.
	Bad, Good int
}

// action is what has to be done about a member.
type action string

const (
	keep    action = ""
	hold    action = "hold"
	release action = "release"
	// spare holds a member that is downgraded.
	spare action = "spare"
)

// heed takes the mark of a downgrade into account. A member that stops KubeFed is quarantined whatever else holds; one that
// was held because of a mark is let back only by who saw that the mark is gone. It is pure.
func heed(c federation.Cluster, f *preflight.Facts, do action) action {
	switch {
	case f.Silent != "" || do == hold:
		return do
	case f.Mark != nil:
		return spare
	case c.Downgrade != nil && f.MarkUnread != "":
		return keep
	case c.Downgrade != nil:
		return release
	}
	return do
}

// judge decides about one look at a member, and why. It is pure.
func judge(h history, held bool, findings []preflight.Finding) (next history, do action, why string) {
	i := slices.IndexFunc(findings, func(f preflight.Finding) bool { return f.Severity == preflight.Stops })
	if i >= 0 && findings[i].Code == preflight.Unreachable {
		// KubeFed's own health check finds that, so it stops nobody; and nothing is known of the kinds.
		return history{}, keep, ""
	}
	if i < 0 {
		next = history{Good: h.Good + 1}
		if held && next.Good >= patience {
			return next, release, ""
		}
		return next, keep, ""
	}
	next = history{Bad: h.Bad + 1}
	if findings[i].Code != preflight.KindFails || next.Bad >= patience || held {
		return next, hold, findings[i].Message
	}
	return next, keep, ""
}

package approval

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
)

// Values of Actor.Through.
const (
	// ThroughSlack is a decision by a button in a message of Slack.
	ThroughSlack = "slack"
	// ThroughWebhook is the beginning of a decision that a receiver of webhooks sent; the name of the receiver follows.
	ThroughWebhook = "webhook:"
)

const (
	// maxAnswerLines and maxAnswerText bound the lines of an Answerable. A message shows all of them.
	maxAnswerLines = 20
	maxAnswerText  = 2000 // characters
)

// Answerable is the part of a ticket that a message outside of the portal shows if the ticket can be decided there. A decision is bound to its version and
// its digest.
type Answerable struct {
	Version int64    `json:"version"`
	Digest  string   `json:"digest"`
	Lines   []string `json:"lines,omitempty"` // all lines that the digest is about
}

// AnswerableOf returns what a message shows of a ticket that waits, and false if the ticket can only be decided in the portal. That is the
// case for what DecideOutside refuses, and for tickets with more lines than a message shows, because nobody approves what they were not
// shown.
func AnswerableOf(c *catalog.Catalog, t *Ticket) (Answerable, bool) {
	if needsPortal(c, t) || t.State() != StatePending {
		return Answerable{}, false
	}
	shown := t.Items[0].Shown
	if n := len(shown.Lines); n == 0 || n > maxAnswerLines || utf8.RuneCountInString(strings.Join(shown.Lines, "\n")) > maxAnswerText {
		return Answerable{}, false
	}
	return Answerable{Version: t.Version, Digest: shown.Digest, Lines: shown.Lines}, true
}

// needsPortal reports whether a ticket is too sensitive to be decided without a login: tickets with several items, changes of objects
// (classes, modes, protections, approval policies, workloads), break-glass and what continues it, overrides, access that the resource's
// side requests, and resources whose sensitivity is high or not known.
func needsPortal(c *catalog.Catalog, t *Ticket) bool {
	if len(t.Items) != 1 || t.BreakGlass || !t.Kind.Access() && t.Kind != KindRevoke {
		return true
	}
	it := &t.Items[0]
	if it.Change != nil || it.Scope != nil || it.Override != nil || it.Adopt || it.Review != nil || !it.Earlier.GlassSince.IsZero() {
		return true
	}
	resource, ok := c.ByName(it.ResourceName)
	return !ok || resource.Sensitivity != catalog.SensitivityLow && resource.Sensitivity != catalog.SensitivityMedium
}

// DecideOutside is Decide for an actor whom another service has identified, and who has no session. The decision is bound to the version
// and the digest that the actor was shown, and what needsPortal reports is refused.
func (s *Service) DecideOutside(ctx context.Context, a Actor, number, version int64, digest string, approve bool, comment string) (*Ticket, error) {
	permit := func(t *Ticket) error {
		if needsPortal(s.Catalog(), t) {
			return fail(CodeForbidden, message.AnswerInPortal())
		}
		if t.Version != version || t.Items[0].Shown.Digest != digest {
			return fail(CodeStale, message.DecideTicketChanged(string(t.State())))
		}
		return nil
	}
	// decide reads flows before its transaction, so a decision that permit refuses is refused here, before that work.
	t, err := s.Get(ctx, a, number)
	if err != nil {
		return nil, err
	}
	if err := permit(t); err != nil {
		return nil, err
	}
	// The check in the transaction counts: a resource may have become more sensitive since the one above.
	return s.decide(ctx, a, number, 0, version, approve, comment, permit)
}

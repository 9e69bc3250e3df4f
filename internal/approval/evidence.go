package approval

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/catalog"
)

// Evidence answers what the flows say about a resource, by its name. An error is as good as no evidence.
type Evidence interface {
	// Score says how well the resource is known.
	Score(ctx context.Context, resource string) (Score, error)
	// Seen tells whether the application was lately seen to connect to the resource.
	Seen(ctx context.Context, application, resource string) (bool, error)
	// Stopped says why the resource must not be closed any further now; empty: nothing speaks against it.
	Stopped(ctx context.Context, resource string) (string, error)
}

// Score of a resource; Missing are sentences for people.
type Score struct {
	Value, Threshold int
	Enough           bool
	Missing          []string
}

// Override is a security administrator's decision to close a resource without evidence enough.
type Override struct {
	Reason   string
	Evidence string // what there was, for the ledger: "41 of 70", "81 of 70, a part without any point", or that nothing is known
}

func (o *Override) because() string {
	if o == nil {
		return ""
	}
	return o.Reason
}

// mayClose checks a change that makes any member enforce: the guard must not have stopped the rollout, and there must be
// evidence enough, or a security administrator's override.
func (x *asking) mayClose(res catalog.Entity, c *Change) (*Override, error) {
	reason := strings.TrimSpace(x.request.Override)
	if utf8.RuneCountInString(reason) > MaxText {
		return nil, invalid("override.reason", "Say why in 1 to %d characters: the ledger keeps it.", MaxText)
	}
	if x.Evidence == nil || !Closes(c) {
		return nil, nil
	}
	stopped, err := x.Evidence.Stopped(x.ctx, res.Name)
	if err != nil {
		return nil, err
	}
	if stopped != "" {
		return nil, failf(CodeGuard, "The rollout of %s was stopped: %s Look at who was refused, then arm the guard again.", res.Title, stopped)
	}
	score, err := x.Evidence.Score(x.ctx, res.Name)
	if err == nil && score.Enough {
		return nil, nil
	}
	if reason == "" || !x.actor.Security {
		return nil, lacking(res, score, err)
	}
	o := &Override{Reason: reason, Evidence: "unknown"}
	if err == nil {
		o.Evidence = fmt.Sprintf("%d of %d", score.Value, score.Threshold)
		if score.Value >= score.Threshold {
			o.Evidence += ", a part without any point"
		}
	}
	return o, nil
}

// lacking says what is missing, and who may decide all the same.
func lacking(res catalog.Entity, s Score, err error) error {
	if err != nil {
		return &Error{Code: CodeEvidence, Err: err,
			Detail: fmt.Sprintf("The flows of %s cannot be read now, so nobody knows whom Enforce would cut off; try again, or let a security administrator override it with a reason.", res.Title)}
	}
	detail := fmt.Sprintf("The evidence for %s is %d, and Enforce needs %d; wait, or let a security administrator override it with a reason.", res.Title, s.Value, s.Threshold)
	if s.Value >= s.Threshold {
		detail = fmt.Sprintf("The evidence for %s has a part without any point; wait, or let a security administrator override it with a reason.", res.Title)
	}
	e := &Error{Code: CodeEvidence, Detail: detail}
	for _, m := range s.Missing {
		e.Fields = append(e.Fields, Field{Path: "evidence", Code: "missing", Message: m})
	}
	return e
}

// Closes tells whether a change makes any member enforce that does not; what cannot be read might.
func Closes(c *Change) bool {
	if c == nil || c.Kind != ObjectProtectedResource || c.Verb == VerbDelete {
		return false
	}
	var before, after v1alpha1.ProtectedResourceSpec
	if json.Unmarshal(c.After, &after) != nil || len(c.Before) > 0 && json.Unmarshal(c.Before, &before) != nil {
		return true
	}
	if after.Mode == v1alpha1.ModeEnforce && before.Mode != v1alpha1.ModeEnforce {
		return true
	}
	for _, m := range append(slices.Clone(before.ClusterModes), after.ClusterModes...) {
		if modeIn(after, m.Cluster) == v1alpha1.ModeEnforce && modeIn(before, m.Cluster) != v1alpha1.ModeEnforce {
			return true
		}
	}
	return false
}

// modeIn is the mode that a spec has in a member.
func modeIn(s v1alpha1.ProtectedResourceSpec, cluster v1alpha1.ClusterName) v1alpha1.Mode {
	for _, m := range s.ClusterModes {
		if m.Cluster == cluster {
			return m.Mode
		}
	}
	return s.Mode
}

// adopts checks who asks that a client that was seen may stay, and that it was seen: the resource's side cannot invite
// applications whose owners never asked.
func (x *asking) adopts(app, res catalog.Entity) error {
	if !x.request.Adopt {
		return nil
	}
	if !x.c.Owns(x.actor.ID, res) && !x.actor.Security {
		return failf(CodeForbidden, "Only an owner of %s or the security team can ask for this: ask %s.", res.Title, ownerNames(x.c, res))
	}
	if x.Evidence == nil {
		return failf(CodeUnavailable, "The flow store cannot be read now; try again in a moment.")
	}
	seen, err := x.Evidence.Seen(x.ctx, app.Name, res.Name)
	if err != nil {
		return &Error{Code: CodeUnavailable, Detail: "The flow store cannot be read now; try again in a moment.", Err: err}
	}
	if !seen {
		return failf(CodeConflict, "%s was not seen at %s lately: its owner has to ask for access.", app.Title, res.Title)
	}
	return nil
}

// Halt ends a change that closes a resource and is not written yet, because its rollout was stopped; it tells whether
// there was something to end. What is written already stays.
func (s *Service) Halt(ctx context.Context, number int64, reason string) (bool, error) {
	halted := false
	_, err := s.Apply(ctx, number, func(t *Ticket) error {
		now := s.Now()
		for i := range t.Items {
			it := &t.Items[i]
			if it.State != StatePending && it.State != StateApproved || !Closes(it.Change) {
				continue
			}
			halted = true
			t.end(i, StateWithdrawn)
			t.event(now, Event{Kind: EventWithdrawn, Item: i, Comment: reason})
			t.say(i, now, reason)
		}
		return nil
	})
	return halted, err
}

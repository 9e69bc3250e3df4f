package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/equality"

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
	// OfClass looks at the resources that the class would cover and that some member enforces, in the members where they are
	// placed and where the class would place them, and returns the one that speaks most against closing them further.
	OfClass(ctx context.Context, class v1alpha1.ResourceClassSpec) (ClassEvidence, error)
}

// ClassEvidence is the evidence of the worst known resource of a class.
type ClassEvidence struct {
	// Resource is its name; empty: no member enforces a resource of the class.
	Resource string
	Score    Score
	// Stopped is as Evidence returns it.
	Stopped string
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

// mayClose checks a change that closes: the guard must not have stopped the rollout, and there must be evidence enough, or a
// security administrator's override.
func (x *asking) mayClose(c *Change) (*Override, error) {
	reason := strings.TrimSpace(x.request.Override)
	if utf8.RuneCountInString(reason) > MaxText {
		return nil, invalid("override.reason", "Say why in 1 to %d characters: the ledger keeps it.", MaxText)
	}
	e := x.evidenceOf(x.ctx, c)
	switch {
	case e.refused != nil:
		return nil, e.refused
	case e.lacks == nil:
		return nil, nil
	case reason == "" || !x.actor.Security:
		return nil, e.lacks
	}
	return &Override{Reason: reason, Evidence: e.known}, nil
}

// changeEvidence is what the flows say about a change that closes.
type changeEvidence struct {
	// refused is why nobody may close now, lacks what an override has to justify; nil: nothing speaks against it.
	refused, lacks error
	// known is what there is, for the ledger.
	known string
}

// evidenceOf a change; a change that does not close needs none.
func (s *Service) evidenceOf(ctx context.Context, c *Change) changeEvidence {
	if s.Evidence == nil || !Closes(c) {
		return changeEvidence{}
	}
	e, err := s.worst(ctx, c)
	if err == nil && e.Resource == "" {
		return changeEvidence{}
	}
	title := c.Name
	if res, ok := s.Catalog().ByName(e.Resource); ok {
		title = res.Title
	} else if e.Resource != "" {
		title = e.Resource
	}
	switch {
	case err != nil:
		return changeEvidence{lacks: lacking(title, e.Score, err), known: "unknown"}
	case e.Stopped != "":
		return changeEvidence{refused: failf(CodeGuard, "The rollout of %s was stopped: %s Look at who was refused, then arm the guard again.", title, e.Stopped)}
	case e.Score.Enough:
		return changeEvidence{}
	}
	known := fmt.Sprintf("%d of %d", e.Score.Value, e.Score.Threshold)
	if e.Score.Value >= e.Score.Threshold {
		known += ", a part without any point"
	}
	return changeEvidence{lacks: lacking(title, e.Score, nil), known: known}
}

// worst is the evidence of the resource that speaks most against a change.
func (s *Service) worst(ctx context.Context, c *Change) (ClassEvidence, error) {
	if c.Kind == ObjectResourceClass {
		var class v1alpha1.ResourceClassSpec
		if err := json.Unmarshal(c.After, &class); err != nil {
			return ClassEvidence{}, fmt.Errorf("read the class: %w", err)
		}
		return s.Evidence.OfClass(ctx, class)
	}
	var after v1alpha1.ProtectedResourceSpec
	if err := json.Unmarshal(c.After, &after); err != nil {
		return ClassEvidence{}, fmt.Errorf("read the protection: %w", err)
	}
	e := ClassEvidence{Resource: string(after.Resource)}
	var err error
	if e.Stopped, err = s.Evidence.Stopped(ctx, e.Resource); err == nil && e.Stopped == "" {
		e.Score, err = s.Evidence.Score(ctx, e.Resource)
	}
	return e, err
}

// evidenceNow reads the evidence of the items that close and wait, before their ticket is locked. An item with an override
// needs no evidence, but its rollout may have been stopped.
func (s *Service) evidenceNow(ctx context.Context, number int64) (map[int]error, error) {
	if s.Evidence == nil {
		return nil, nil
	}
	t, err := s.Store.Get(ctx, number)
	if err != nil {
		return nil, err
	}
	out := map[int]error{}
	for i := range t.Items {
		it := &t.Items[i]
		if it.State != StatePending || !Closes(it.Change) {
			continue
		}
		switch e := s.evidenceOf(ctx, it.Change); {
		case e.refused != nil:
			out[i] = e.refused
		case it.Override == nil && e.lacks != nil:
			out[i] = notAnyMore(e.lacks)
		default:
			out[i] = nil
		}
	}
	return out, nil
}

// notAnyMore is why a request that had evidence enough cannot be approved.
func notAnyMore(why error) error {
	var e *Error
	if !errors.As(why, &e) {
		return why
	}
	now := *e
	now.Detail = "Not enough is known any more to approve this: " + e.Detail
	return &now
}

// stillKnown refuses a ticket of which an item that closes was just approved without evidence; what was not looked at is not
// known.
func stillKnown(t *Ticket, waited []int, evidence map[int]error) error {
	if evidence == nil {
		return nil // nothing is asked of the flows
	}
	for _, i := range waited {
		it := &t.Items[i]
		if it.State != StateApproved || !Closes(it.Change) {
			continue
		}
		why, looked := evidence[i]
		if !looked {
			return failf(CodeStale, "The ticket changed while it was decided: look again, then decide.")
		}
		if why != nil {
			return why
		}
	}
	return nil
}

// lacking says what is missing, and who may decide all the same.
func lacking(title string, s Score, err error) error {
	if err != nil {
		return &Error{Code: CodeEvidence, Err: err,
			Detail: fmt.Sprintf("The flows of %s cannot be read now, so nobody knows whom Enforce would cut off; try again, or let a security administrator override it with a reason.", title)}
	}
	detail := fmt.Sprintf("The evidence for %s is %d, and Enforce needs %d; wait, or let a security administrator override it with a reason.", title, s.Value, s.Threshold)
	if s.Value >= s.Threshold {
		detail = fmt.Sprintf("The evidence for %s has a part without any point; wait, or let a security administrator override it with a reason.", title)
	}
	e := &Error{Code: CodeEvidence, Detail: detail}
	for _, m := range s.Missing {
		e.Fields = append(e.Fields, Field{Path: "evidence", Code: "missing", Message: m})
	}
	return e
}

// Closes tells whether a change closes something: it makes a member enforce that does not, or it is of a class by which what is
// enforced would refuse more, or in more members. What cannot be read might.
func Closes(c *Change) bool {
	switch {
	case c == nil || c.Verb == VerbDelete:
		return false
	case c.Kind == ObjectResourceClass:
		return classCloses(c)
	case c.Kind != ObjectProtectedResource:
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

// classCloses tells whether a change of a class makes its enforced resources refuse more: ports that no action names are no
// longer open, an action that allows refer to is gone or changed, or members are added.
func classCloses(c *Change) bool {
	var before, after v1alpha1.ResourceClassSpec
	if json.Unmarshal(c.After, &after) != nil || len(c.Before) == 0 || json.Unmarshal(c.Before, &before) != nil {
		return true
	}
	open := func(s v1alpha1.ResourceClassSpec) bool { return s.OtherPorts == v1alpha1.OtherPortsAllow }
	has := func(list []v1alpha1.ClassAction, a v1alpha1.ClassAction) bool {
		return slices.ContainsFunc(list, func(x v1alpha1.ClassAction) bool { return equality.Semantic.DeepEqual(x, a) })
	}
	without := func(list, all []v1alpha1.ClassAction) bool {
		return slices.ContainsFunc(list, func(a v1alpha1.ClassAction) bool { return !has(all, a) })
	}
	return open(before) && !open(after) || without(before.Actions, after.Actions) || open(after) && without(after.Actions, before.Actions) ||
		addsMembers(before.Placement, after.Placement) || !slices.Equal(before.Enforcers, after.Enforcers)
}

// addsMembers tells whether a placement may name members that the one before did not.
func addsMembers(before, after v1alpha1.Placement) bool {
	if before.Clusters == nil || after.Clusters == nil {
		return !equality.Semantic.DeepEqual(before, after)
	}
	return slices.ContainsFunc(*after.Clusters, func(name v1alpha1.ClusterName) bool { return !slices.Contains(*before.Clusters, name) })
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

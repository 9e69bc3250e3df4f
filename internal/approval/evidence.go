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
	"github.com/acp-io/acp/internal/message"
)

// Evidence evaluates the observed flows of a resource, which is given by its name. An error counts as missing evidence.
type Evidence interface {
	// Score returns how completely the clients of the resource are known.
	Score(ctx context.Context, resource string) (Score, error)
	// Seen reports whether the application connected to the resource recently.
	Seen(ctx context.Context, application, resource string) (bool, error)
	// Stopped returns why the resource must not be closed further now; the zero Message if it may be.
	Stopped(ctx context.Context, resource string) (message.Message, error)
	// OfClass evaluates the resources that the class would cover and that some member enforces, in the members where they are
	// placed and where the class would place them. It returns the evidence of the resource with the least.
	OfClass(ctx context.Context, class v1alpha1.ResourceClassSpec) (ClassEvidence, error)
}

// ClassEvidence is the evidence of the resource of a class that has the least evidence.
type ClassEvidence struct {
	// Resource is the resource's name; empty if no member enforces a resource of the class.
	Resource string
	Score    Score
	// Stopped is the result of Evidence.Stopped.
	Stopped message.Message
}

// Score is how completely the clients of a resource are known. Missing explains what is missing.
type Score struct {
	Value, Threshold int
	Enough           bool
	Missing          []message.Message
}

// Override is a security administrator's decision to close a resource without enough evidence.
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

// mayClose checks a change that closes a resource: the guard must not have stopped the rollout, and there must be enough
// evidence or a security administrator's override.
func (x *planner) mayClose(c *Change) (*Override, error) {
	reason := strings.TrimSpace(x.request.Override)
	if utf8.RuneCountInString(reason) > MaxText {
		return nil, invalid("override.reason", message.OverrideReasonLength(MaxText))
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

// changeEvidence is the evidence for a change that closes a resource.
type changeEvidence struct {
	// refused is the reason why no one may close the resource now. lacks describes the missing evidence, which can be overridden.
	refused, lacks error
	// known describes the existing evidence, for the ledger.
	known string
}

// evidenceOf returns the evidence for a change; the zero value if the change does not close anything.
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
	case !e.Stopped.IsZero():
		return changeEvidence{refused: fail(CodeGuard, message.EnforceRolloutStopped(title, e.Stopped))}
	case e.Score.Enough:
		return changeEvidence{}
	}
	known := fmt.Sprintf("%d of %d", e.Score.Value, e.Score.Threshold)
	if e.Score.Value >= e.Score.Threshold {
		known += ", a part without any point"
	}
	return changeEvidence{lacks: lacking(title, e.Score, nil), known: known}
}

// worst returns the evidence of the resource with the least evidence among those that a change closes.
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
	if e.Stopped, err = s.Evidence.Stopped(ctx, e.Resource); err == nil && e.Stopped.IsZero() {
		e.Score, err = s.Evidence.Score(ctx, e.Resource)
	}
	return e, err
}

// evidenceNow reads the current evidence of the waiting items that close resources, before their ticket is locked. An item
// with an override needs no evidence, but its rollout may have been stopped.
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
			out[i] = evidenceLost(e.lacks)
		default:
			out[i] = nil
		}
	}
	return out, nil
}

// evidenceLost returns the error for a request whose evidence was sufficient at submission and no longer is.
func evidenceLost(why error) error {
	var e *Error
	if !errors.As(why, &e) {
		return why
	}
	now := *e
	now.Message = message.DecideEvidenceGone(e.Message)
	return &now
}

// requireEvidence returns an error if an item that closes a resource was just approved without sufficient evidence, or without
// evidence that was read.
func requireEvidence(t *Ticket, waited []int, evidence map[int]error) error {
	if evidence == nil {
		return nil // no evidence is required here
	}
	for _, i := range waited {
		it := &t.Items[i]
		if it.State != StateApproved || !Closes(it.Change) {
			continue
		}
		why, looked := evidence[i]
		if !looked {
			return fail(CodeStale, message.DecideChangedMeanwhile())
		}
		if why != nil {
			return why
		}
	}
	return nil
}

// lacking returns the error that says which evidence is missing, and who may close the resource without it.
func lacking(title string, s Score, err error) error {
	if err != nil {
		return &Error{Code: CodeEvidence, Err: err,
			Message: message.EnforceFlowsUnreadable(title)}
	}
	detail := message.EnforceEvidenceTooLow(title, s.Value, s.Threshold)
	if s.Value >= s.Threshold {
		detail = message.EnforceEvidencePartZero(title)
	}
	e := &Error{Code: CodeEvidence, Message: detail}
	for _, m := range s.Missing {
		e.Fields = append(e.Fields, Field{Path: "evidence", Code: "missing", Message: m})
	}
	return e
}

// Closes reports whether a change closes something: it makes a member enforce that does not do so now, or it changes a
// class so that enforced resources refuse more, or in more members. It returns true if the change cannot be read.
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

// classCloses reports whether a change of a class makes its enforced resources refuse more: ports of no action are no
// longer open, an action is removed or changed, or members are added.
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

// addsMembers reports whether a placement may select members that the previous one did not.
func addsMembers(before, after v1alpha1.Placement) bool {
	if before.Clusters == nil || after.Clusters == nil {
		return !equality.Semantic.DeepEqual(before, after)
	}
	return slices.ContainsFunc(*after.Clusters, func(name v1alpha1.ClusterName) bool { return !slices.Contains(*before.Clusters, name) })
}

// modeIn returns the mode of a spec in a member.
func modeIn(s v1alpha1.ProtectedResourceSpec, cluster v1alpha1.ClusterName) v1alpha1.Mode {
	for _, m := range s.ClusterModes {
		if m.Cluster == cluster {
			return m.Mode
		}
	}
	return s.Mode
}

// adopts checks a request to adopt a client: the requester must own the resource or be in the security team, and the
// client must have been seen, so that they cannot give access to applications that never used the resource.
func (x *planner) adopts(app, res catalog.Entity) error {
	if !x.request.Adopt {
		return nil
	}
	if !x.c.Owns(x.actor.ID, res) && !x.actor.Security {
		return fail(CodeForbidden, message.RequestResourceNotOwner(res.Title, ownerNames(x.c, res)))
	}
	if x.Evidence == nil {
		return fail(CodeUnavailable, message.FlowsUnavailable())
	}
	seen, err := x.Evidence.Seen(x.ctx, app.Name, res.Name)
	if err != nil {
		return &Error{Code: CodeUnavailable, Message: message.FlowsUnavailable(), Err: err}
	}
	if !seen {
		return fail(CodeConflict, message.AdoptNotSeen(app.Title, res.Title))
	}
	return nil
}

// Halt ends a change that closes a resource and is not written yet, because its rollout was stopped. It reports whether
// there was such a change. A change that is written already stays.
func (s *Service) Halt(ctx context.Context, number int64, reason message.Message) (bool, error) {
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
			t.event(now, Event{Kind: EventWithdrawn, Item: i, Message: reason})
			t.setMessage(i, now, reason)
		}
		return nil
	})
	return halted, err
}

package rollout

import (
	"context"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/externalchanges"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/notify"
	"github.com/acp-io/acp/internal/waves"
)

// Progress returns the rollout of a resource in waves, or nil if none is in progress.
func Progress(p *v1alpha1.ProtectedResource) *v1alpha1.RolloutProgress {
	if p == nil || p.Status.Rollout == nil {
		return nil
	}
	return p.Status.Rollout.Progress
}

// Waiting returns how far Enforce has come in the waves of a resource's class, or zero if no member waits for its wave.
func Waiting(o *v1alpha1.ProtectedResource) message.Message {
	p := Progress(o)
	switch {
	case p == nil || o.Enforced().Equal(o.Spec.Enforces()):
		return message.Message{}
	case p.Halt != nil:
		return message.WavesHalted(message.Restore(p.Halt.Message, p.Halt.MessageCode, p.Halt.MessageParams))
	}
	return message.WavesInProgress(int(p.Wave), int(p.Waves), int(p.Waiting))
}

// WaitingClass returns how far a change of a class has come in its waves, or zero if it counts in every member.
func WaitingClass(c *v1alpha1.ResourceClass) message.Message {
	switch {
	case !c.RollsOut():
		return message.Message{}
	case c.Status.Rollout.Progress == nil:
		return message.WavesClassNotBegun()
	}
	p := c.Status.Rollout.Progress
	if p.Halt != nil {
		return message.WavesHalted(message.Restore(p.Halt.Message, p.Halt.MessageCode, p.Halt.MessageParams))
	}
	return message.WavesClassInProgress(int(p.Wave), int(p.Waves), int(p.Waiting))
}

// MayInstruct reports whether an actor may give an instruction about the waves of a resource. Its owners and the security team may
// pause, resume and roll back. Only the security team may shorten the waves.
func MayInstruct(c *catalog.Catalog, a approval.Actor, e catalog.Entity, action waves.Action) bool {
	return MayChange(c, a, e) && (a.Security || action != waves.Skip && action != waves.Finish)
}

// Instruct gives the adapter an instruction about the rollout of a resource in waves. The ledger has the line before the host cluster has
// the instruction. To resume arms the guard again if it has stopped the rollout.
func (s *Service) Instruct(ctx context.Context, a approval.Actor, e catalog.Entity, action waves.Action, reason string) error {
	if err := s.allowed(a, e); err != nil {
		return err
	}
	if !MayInstruct(s.Catalog(), a, e, action) {
		return fail(approval.CodeForbidden, message.WavesSecurityOnly())
	}
	reason, err := reasonOf(reason, message.WavesReasonNeeded())
	if err != nil {
		return err
	}
	p, err := s.protection(e)
	if err != nil {
		return err
	}
	progress := Progress(p)
	if progress == nil {
		return fail(approval.CodeConflict, message.WavesNone(e.Title))
	}
	if action == waves.Resume && progress.Halt == nil {
		return fail(approval.CodeConflict, message.WavesNotHalted(e.Title))
	}
	now := s.Now().UTC()
	details := map[string]string{"do": string(action), "reason": reason, "wave": strconv.Itoa(int(progress.Wave))}
	_, err = s.Store.Change(ctx, e.Name, func(st *State) (News, error) {
		if st.Guard.Stop != nil && action != waves.Pause && action != waves.RollBack {
			st.Guard.Stop, st.Guard.ArmedAt = nil, now
			details["armed"] = "true"
		}
		return News{Entries: []ledger.Entry{line(now, a.ID, "resource.waves", e, details)}}, nil
	})
	if err != nil {
		return err
	}
	return hostError(e.Title, s.Writer.Instruct(ctx, p.Name, waves.New(action, a.ID, reason, now)))
}

// armAfterInstruction arms the guard again if it has stopped the rollout of a resource, and somebody gave an instruction outside of the portal
// after that which continues the waves, as Instruct does for one that is given in the portal. Otherwise they would continue without a guard.
func (w *Watcher) armAfterInstruction(ctx context.Context, e catalog.Entity, p *v1alpha1.ProtectedResource, st State) (State, error) {
	stop, at := st.Guard.Stop, w.instructedAt(p)
	if stop == nil || !at.After(stop.At) {
		return st, nil
	}
	i, err := waves.InstructionOf(p)
	if err != nil || i == nil || i.Action == waves.Pause || i.Action == waves.RollBack {
		return st, err
	}
	return w.Store.Change(ctx, e.Name, func(s *State) (News, error) {
		if s.Guard.Stop == nil || !at.After(s.Guard.Stop.At) {
			return News{}, nil
		}
		s.Guard.Stop, s.Guard.ArmedAt = nil, at
		details := map[string]string{"reason": i.Reason, "instruction": i.ID, "statedBy": i.By, "armed": "true"}
		return News{Entries: []ledger.Entry{line(w.Now(), externalchanges.Unknown, "resource.rollout-guard", e, details)}}, nil
	})
}

// haltWaves halts the waves of a resource whose rollout the guard has stopped. It does nothing if somebody gave an instruction after the
// stop.
func (w *Watcher) haltWaves(ctx context.Context, p *v1alpha1.ProtectedResource, stop *Stop) error {
	progress := Progress(p)
	if stop == nil || progress == nil || progress.Halt != nil || stop.At.Before(progress.StartedAt.Time) {
		return nil
	}
	if at := w.instructedAt(p); !at.IsZero() && !at.Before(stop.At) {
		return nil
	}
	return w.pause(ctx, p, v1alpha1.HaltClientsRefused, stop.Cluster, stop.At, stop.Reason.Message)
}

// compareVerdicts halts the waves of a resource if the dataplane of a member in which a wave has begun contradicts the policies more often
// than the guard tolerates denials.
func (w *Watcher) compareVerdicts(ctx context.Context, p *v1alpha1.ProtectedResource, cluster string, since, now time.Time, g Guard) error {
	progress := Progress(p)
	if progress == nil || progress.Halt != nil {
		return nil
	}
	if at := w.instructedAt(p); at.After(since) {
		since = at // what was seen before was examined by the person who continued
	}
	n, err := w.Denials.Contradicted(ctx, string(p.Spec.Resource), cluster, since, now)
	if err != nil || n <= g.DenialLimit() {
		return err
	}
	return w.pause(ctx, p, v1alpha1.HaltVerdictsDisagree, cluster, now, message.WavesVerdictsDisagree(int(n), cluster, g.DenialWindow().String()))
}

// clockSkew is how far the clock of a person who gives an instruction may be ahead.
const clockSkew = time.Minute

// instructedAt returns when the last instruction was given; zero if there is none. Anybody who may write the annotation chooses that time.
// One in the future must not keep the guard from acting until then, so it counts as none.
func (w *Watcher) instructedAt(o metav1.Object) time.Time {
	last, err := waves.InstructionOf(o)
	if err != nil || last == nil || last.At.After(w.Now().Add(clockSkew)) {
		return time.Time{}
	}
	return last.At
}

// recordHalt records an automatic halt of the waves once, in the ledger and with a notification. A stop of the guard and what people do
// are recorded already.
func (w *Watcher) recordHalt(ctx context.Context, e catalog.Entity, progress *v1alpha1.RolloutProgress, recorded time.Time) error {
	if progress == nil || progress.Halt == nil || progress.Halt.At.Time.Equal(recorded) {
		return nil
	}
	h := progress.Halt
	switch h.Reason {
	case v1alpha1.HaltPaused, v1alpha1.HaltRolledBack, v1alpha1.HaltClientsRefused:
		return nil
	}
	reason := message.Restore(h.Message, h.MessageCode, h.MessageParams)
	details := map[string]string{"cluster": h.Cluster}
	ledger.SetMessage(details, "reason", reason)
	_, err := w.Store.Change(ctx, e.Name, func(s *State) (News, error) {
		s.WavesHalted = h.At.UTC()
		return News{
			Entries: []ledger.Entry{line(h.At.UTC(), "", "resource.waves-halted", e, details)},
			ResourceEvents: []notify.ResourceEvent{resourceEvent(h.At.UTC(), notify.EventWavesHalted, e,
				notify.Facts{Message: reason, Cluster: h.Cluster}, ownersAndSecurity(w.Catalog(), e))},
		}, nil
	})
	return err
}

func (w *Watcher) pause(ctx context.Context, p *v1alpha1.ProtectedResource, halt v1alpha1.HaltReason, cluster string, at time.Time, m message.Message) error {
	w.Log.Warn("the waves of a resource are halted", "resource", p.Spec.Resource, "because", halt, "cluster", cluster)
	return w.Writer.Instruct(ctx, p.Name, guardPause(halt, cluster, at, m))
}

// guardPause returns the instruction by which the guard halts a rollout.
func guardPause(halt v1alpha1.HaltReason, cluster string, at time.Time, m message.Message) waves.Instruction {
	i := waves.New(waves.Pause, waves.Guard, m.Text, at)
	i.Halt, i.Cluster = halt, cluster
	i.Code, i.Params = m.Compact()
	return i
}

package rollout

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/notify"
	"github.com/acp-io/acp/internal/organization"
	"github.com/acp-io/acp/internal/waves"
)

// classPrefix precedes the name of a class in the ledger and in the key of its stored State. The name of a resource never begins with it.
const classPrefix = "ResourceClass/"

// ClassProgress returns how far a change of a class has come in its waves, or nil if no rollout of it is in progress.
func ClassProgress(c *v1alpha1.ResourceClass) *v1alpha1.RolloutProgress {
	if c == nil || !c.RollsOut() {
		return nil
	}
	return c.Status.Rollout.Progress
}

// MayInstructClass reports whether an actor may give an instruction about the waves of a change of a class. The security team may give
// any, and the administrators of the organization of the class those that begin no wave early.
func MayInstructClass(c *catalog.Catalog, all *organization.Index, a approval.Actor, class *v1alpha1.ResourceClass, action waves.Action) bool {
	switch {
	case a.Auditor:
		return false
	case a.Security:
		return true
	case action == waves.Skip || action == waves.Finish:
		return false
	}
	return approval.Administers(c, a.ID, all.Get(class.Spec.Organization))
}

// InstructClass gives the adapter an instruction about the waves of a change of a class. The ledger has the line before the host cluster has
// the instruction.
func (s *Service) InstructClass(ctx context.Context, a approval.Actor, name string, action waves.Action, reason string) error {
	class, err := s.resourceClass(name)
	if err != nil {
		return err
	}
	all, err := s.Organizations()
	if err != nil {
		return err
	}
	switch {
	case a.Auditor:
		return approval.AuditorsOnlyRead()
	case MayInstructClass(s.Catalog(), all, a, class, action):
	case MayInstructClass(s.Catalog(), all, a, class, waves.Pause):
		return fail(approval.CodeForbidden, message.WavesSecurityOnly())
	default:
		return fail(approval.CodeForbidden, message.WavesClassForbidden())
	}
	if reason, err = reasonOf(reason, message.WavesReasonNeeded()); err != nil {
		return err
	}
	progress := ClassProgress(class)
	switch {
	case progress == nil:
		return fail(approval.CodeConflict, message.WavesNone(name))
	case action == waves.Resume && progress.Halt == nil:
		return fail(approval.CodeConflict, message.WavesNotHalted(name))
	}
	now := s.Now().UTC()
	details := map[string]string{"do": string(action), "reason": reason, "wave": strconv.Itoa(int(progress.Wave))}
	err = s.Store.Record(ctx, News{Entries: []ledger.Entry{{At: now, Actor: a.ID, Action: "class.waves", Object: classPrefix + name, Details: details}}})
	if err != nil {
		return err
	}
	return hostError(name, s.Writer.InstructClass(ctx, name, waves.New(action, a.ID, reason, now)))
}

func (s *Service) resourceClass(name string) (*v1alpha1.ResourceClass, error) {
	all, known := s.Host.ResourceClasses()
	if !known {
		return nil, &approval.Error{Code: approval.CodeUnavailable, Message: message.HostUnreachable()}
	}
	for _, c := range all {
		if c.Name == name {
			return c, nil
		}
	}
	return nil, fail(approval.CodeNotFound, message.WavesNoClass(message.Quoted(name)))
}

// checkClasses checks every class with a rollout in progress: it pauses the waves of a change that refuses clients which were not refused
// before, or that the dataplane contradicts, and records automatic halts. states are the stored states of resources and classes by key.
func (w *Watcher) checkClasses(ctx context.Context, states map[string]State) error {
	classes, known := w.Host.ResourceClasses()
	if !known {
		return nil
	}
	var failed error
	for _, c := range classes {
		progress := ClassProgress(c)
		if progress == nil {
			continue
		}
		err := w.recordClassHalt(ctx, c, progress, states[classPrefix+c.Name].WavesHalted)
		if err == nil && progress.Halt == nil {
			err = w.checkClass(ctx, c, progress, states)
		}
		if err != nil {
			failed = fmt.Errorf("watch the class %s: %w", c.Name, err)
		}
	}
	return failed
}

// checkClass counts the refused and the contradicted connections to the resources of a class in the members in which a change of the class is in
// effect, and pauses its waves if there are too many.
func (w *Watcher) checkClass(ctx context.Context, c *v1alpha1.ResourceClass, progress *v1alpha1.RolloutProgress, states map[string]State) error {
	if last, err := waves.InstructionOf(c); err == nil && last != nil && last.By == waves.Guard && last.ID != c.Status.Rollout.Instruction {
		return nil // the adapter has not carried out the last halt yet
	}
	now := w.Now()
	before := progress.StartedAt.UTC()
	if at := w.instructedAt(c); at.After(before) {
		before = at // what was seen before was examined by the person who gave the instruction
	}
	stem, wild := strings.CutSuffix(string(c.Spec.Pattern), "*")
	counts := func(resource, cluster string) bool {
		ofClass := resource == stem || wild && strings.HasPrefix(resource, stem)
		return ofClass && progress.Begun.Has(cluster) && !states[resource].Guard.Off
	}
	since := now.Add(-DefaultGuardWindow)
	if since.Before(before) {
		since = before
	}
	refused, err := w.Denials.RefusedIn(ctx, counts, before, since, now)
	if err != nil {
		return err
	}
	if halt := largestExcess(refused, states); halt != nil {
		m := message.WavesClassRefused(int(halt.count), halt.cluster, DefaultGuardWindow.String(), halt.resources, halt.worst)
		return w.pauseClass(ctx, c, v1alpha1.HaltClientsRefused, halt.cluster, now, m)
	}
	contradicted, err := w.Denials.ContradictedIn(ctx, counts, since, now)
	if err != nil {
		return err
	}
	if halt := largestExcess(contradicted, states); halt != nil {
		m := message.WavesVerdictsDisagree(int(halt.count), halt.cluster, DefaultGuardWindow.String())
		return w.pauseClass(ctx, c, v1alpha1.HaltVerdictsDisagree, halt.cluster, now, m)
	}
	return nil
}

// memberExcess is a member in which more connections of clients are refused or contradicted after a change of a class than the guards tolerate.
type memberExcess struct {
	cluster   string
	count     int64
	resources int
	worst     string // the resource with the most
}

// largestExcess returns the member with the most connections among those in which a limit is exceeded: that of one resource, or the default
// limit by all resources without a limit of their own together. It returns nil if there is none.
func largestExcess(counts map[MemberResource]int64, states map[string]State) *memberExcess {
	type sum struct {
		memberExcess
		most   int64
		shared int64 // of the resources with the default limit
		over   bool
	}
	members := map[string]*sum{}
	for key, n := range counts {
		s := members[key.Cluster]
		if s == nil {
			s = &sum{memberExcess: memberExcess{cluster: key.Cluster}}
			members[key.Cluster] = s
		}
		s.count += n
		s.resources++
		if n > s.most || n == s.most && key.Resource < s.worst {
			s.most, s.worst = n, key.Resource
		}
		guard := states[key.Resource].Guard
		if guard.Limit == nil {
			s.shared += n
		}
		s.over = s.over || n > guard.DenialLimit() || s.shared > DefaultLimit
	}
	var out *memberExcess
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if s := members[name]; s.over && (out == nil || s.count > out.count) {
			out = &s.memberExcess
		}
	}
	return out
}

// recordClassHalt records an automatic halt once, in the ledger and with a notification. Instructions of people are recorded elsewhere.
func (w *Watcher) recordClassHalt(ctx context.Context, c *v1alpha1.ResourceClass, progress *v1alpha1.RolloutProgress, recorded time.Time) error {
	h := progress.Halt
	if h == nil || h.At.Time.Equal(recorded) || h.Reason == v1alpha1.HaltPaused || h.Reason == v1alpha1.HaltRolledBack {
		return nil
	}
	all, err := w.Organizations()
	if err != nil {
		return err
	}
	reason, at := message.Restore(h.Message, h.MessageCode, h.MessageParams), h.At.UTC()
	details := map[string]string{"cluster": h.Cluster}
	ledger.SetMessage(details, "reason", reason)
	people := map[string][]notify.About{}
	for _, p := range w.Catalog().Members(catalog.GroupSecurity) {
		people[p] = nil
	}
	for _, p := range approval.AdministratorsOf(w.Catalog(), all.Get(c.Spec.Organization)) {
		people[p] = nil
	}
	object := classPrefix + c.Name
	event := notify.ResourceEvent{
		Event:  fmt.Sprintf("%s/%s/%d", object, notify.EventClassWavesHalted, at.UnixNano()),
		At:     at,
		People: people,
		Facts: notify.Facts{
			Event:   notify.EventClassWavesHalted,
			Page:    "classes",
			Items:   []notify.About{{Object: object}},
			Message: reason,
			Cluster: h.Cluster,
		},
	}
	_, err = w.Store.Change(ctx, object, func(s *State) (News, error) {
		s.WavesHalted = at
		return News{
			Entries:        []ledger.Entry{{At: at, Action: "class.waves-halted", Object: object, Details: details}},
			ResourceEvents: []notify.ResourceEvent{event},
		}, nil
	})
	return err
}

// pauseClass gives the adapter the guard's instruction to pause the waves of a class.
func (w *Watcher) pauseClass(
	ctx context.Context,
	c *v1alpha1.ResourceClass,
	halt v1alpha1.HaltReason,
	cluster string,
	at time.Time,
	m message.Message,
) error {
	w.Log.Warn("the waves of a class are halted", "class", c.Name, "because", halt, "cluster", cluster)
	return w.Writer.InstructClass(ctx, c.Name, guardPause(halt, cluster, at, m))
}

package class

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/metrics"
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/controllers/statusfields"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/waves"
)

const (
	// rolloutCheckInterval is how often a rollout in progress is evaluated. It bounds how late an unhealthy member halts it.
	rolloutCheckInterval = time.Minute
	// realizedCheckInterval is how often it is evaluated while the members of the current wave do not all have the rules of the spec.
	realizedCheckInterval = 2 * time.Second
)

// Rollouts decides in which members the present rules of resource classes count.
type Rollouts struct {
	Cache   *policycache.Cache
	Reports *statuscache.Cache
	// Fleet lists the members, and reports whether they are known.
	Fleet interface {
		Clusters() []federation.Cluster
		Registry() (bool, error)
	}
	Metrics *metrics.UnitMetrics
	Events  events.EventRecorder
}

// rolloutStep is the result of one evaluation of the rollout of a class.
type rolloutStep struct {
	// differs reports whether the status of the class was changed.
	differs bool
	changes []waves.Change
	// delay is the time until the rollout has to be evaluated again; 0 if none is in progress.
	delay time.Duration
}

// advance writes the next state of the rollout of a resource class into its status. It does nothing for other kinds.
func (r *Reconciler) advance(o client.Object) rolloutStep {
	c, ok := o.(*v1alpha1.ResourceClass)
	if !ok || r.Rollouts == nil || c.DeletionTimestamp != nil {
		return rolloutStep{}
	}
	now := r.Clock.Now()
	var members []waves.Member
	if c.RollsOut() {
		listed, err := r.Rollouts.Fleet.Registry()
		if err != nil || !listed {
			return rolloutStep{delay: realizedCheckInterval}
		}
		if members, ok = r.Rollouts.members(c); !ok {
			return rolloutStep{} // the placement is not valid, so the class is not accepted
		}
	}
	next, changes := nextRollout(c, members, now)
	step := rolloutStep{differs: !equality.Semantic.DeepEqual(next, c.Status.Rollout), changes: changes}
	c.Status.Rollout = next
	step.delay = delayOf(c, now)
	r.Rollouts.Metrics.RecordRollout("ResourceClass/"+c.Name, stateOf(c))
	return step
}

// stateOf returns the state of the rollout of a class for metrics: "halted", "progressing", or "" if none is in progress.
func stateOf(c *v1alpha1.ResourceClass) string {
	switch {
	case !c.RollsOut():
		return ""
	case c.Status.Rollout.Progress != nil && c.Status.Rollout.Progress.Halt != nil:
		return "halted"
	}
	return "progressing"
}

// nextRollout returns the status of the rollout of a class that follows from the present one, and what changed. It is pure. A
// member gets the rules of the spec only after the status that permits this was stored.
func nextRollout(c *v1alpha1.ResourceClass, members []waves.Member, now time.Time) (*v1alpha1.ClassRolloutStatus, []waves.Change) {
	rules := c.Spec.Rules()
	instruction, _ := waves.InstructionOf(c) // an instruction that cannot be read is none
	var all []v1alpha1.Wave
	if c.Spec.Rollout != nil {
		all = c.Spec.Rollout.Waves
	}
	was := c.Status.Rollout
	settled := func() *v1alpha1.ClassRolloutStatus {
		if len(all) == 0 {
			return nil
		}
		out := &v1alpha1.ClassRolloutStatus{Settled: *rules.DeepCopy(), Generation: c.Generation}
		if was != nil {
			out.InstructionAt = was.InstructionAt
		}
		if instruction != nil {
			if was == nil || was.Instruction != instruction.ID {
				out.InstructionAt = waves.LastAt(out.InstructionAt, instruction, now)
			}
			out.Instruction = instruction.ID // it is about a rollout of the past
		}
		return out
	}
	if !c.RollsOut() {
		if was != nil && was.Progress != nil { // the spec was set back to the rules of before
			return settled(), []waves.Change{waves.Completed}
		}
		return settled(), nil
	}
	if len(all) == 0 && was.Progress == nil || len(members) == 0 && was.Progress == nil {
		return settled(), nil // the waves were removed with the change, or no member has units of the class
	}
	out := was.DeepCopy()
	if out.Generation != c.Generation {
		if out.Generation = c.Generation; out.Progress != nil {
			out.Progress.EnforcedSince = nil // the members in which it has begun get other rules
		}
	}
	next, changes := waves.Next(waves.Input{
		Now: now, Waves: all, Wanted: v1alpha1.MemberSet{AllExcept: true}, Members: members, Instruction: instruction,
		Status: &v1alpha1.RolloutStatus{Instruction: out.Instruction, InstructionAt: out.InstructionAt, Progress: out.Progress},
	})
	if next == nil || next.Progress == nil && next.Settled.AllExcept {
		return settled(), changes
	}
	out.Instruction, out.InstructionAt, out.Progress = next.Instruction, next.InstructionAt, next.Progress
	return out, changes
}

// delayOf returns when the rollout of a class has to be evaluated again, or 0 if none is in progress.
func delayOf(c *v1alpha1.ResourceClass, now time.Time) time.Duration {
	if !c.RollsOut() {
		return 0
	}
	p := c.Status.Rollout.Progress
	switch {
	case p == nil || p.Halt == nil && p.EnforcedSince == nil:
		return realizedCheckInterval
	case c.Spec.Rollout == nil || p.Halt != nil:
		return rolloutCheckInterval
	}
	due := waves.Due(&v1alpha1.RolloutStatus{Progress: p}, c.Spec.Rollout.Waves, now)
	if due <= 0 {
		return realizedCheckInterval
	}
	return min(due, rolloutCheckInterval)
}

// members returns the members in which the class is placed, each with the worst state of the units of the class there. The state is empty
// while a unit was not decided since the rules of the class changed. It returns false if the placement is not valid.
func (r *Rollouts) members(c *v1alpha1.ResourceClass) ([]waves.Member, bool) {
	clusters := r.Fleet.Clusters()
	placed, err := federation.Resolve(c.Spec.Placement, clusters)
	if err != nil {
		return nil, false
	}
	labels := map[string]map[string]string{}
	for i := range clusters {
		labels[clusters[i].Name] = clusters[i].Labels
	}
	worst := map[string]v1alpha1.ClusterState{}
	known := r.worstStates(c, worst)
	out := make([]waves.Member, 0, len(placed))
	for _, name := range placed {
		m := waves.Member{Name: name, Labels: labels[name]}
		if known {
			m.Last = v1alpha1.ClusterState{Name: v1alpha1.ClusterName(name), State: v1alpha1.MemberRealized}
			if s, has := worst[name]; has {
				m.Last = s
			}
		}
		m.Last.Mode = v1alpha1.ModeEnforce // the rules count in every mode
		out = append(out, m)
	}
	return out, true
}

// worstStates collects the worst state of the units of a class in each member in which one is not Realized. It returns false if a unit was
// not decided since the rules of the class changed.
func (r *Rollouts) worstStates(c *v1alpha1.ResourceClass, worst map[string]v1alpha1.ClusterState) bool {
	class, err := policy.ParseName(string(c.Spec.Pattern))
	if err != nil {
		return false
	}
	since := r.Cache.ClassSince(c.Name)
	covered := func(name string) bool {
		n, err := policy.ParseName(name)
		return err == nil && class.Covers(n)
	}
	decided := map[string]bool{}
	known := true
	r.Reports.Each(func(report *statuscache.Report) {
		if !covered(report.Resource) {
			return
		}
		decided[report.Resource] = true
		if report.Version < since {
			known = false
			return
		}
		for _, s := range report.Clusters {
			if s.State == v1alpha1.MemberRealized {
				continue
			}
			if w, has := worst[string(s.Name)]; !has || worse(&s, &w) {
				worst[string(s.Name)] = s
			}
		}
	})
	if !known {
		return false
	}
	requires := func(o *v1alpha1.ProtectedResource) bool { return o.Spec.RequiresProtection() }
	for _, name := range r.Cache.Resources() {
		if !decided[name] && covered(name) && slices.ContainsFunc(r.Cache.Protecting(name), requires) {
			return false
		}
	}
	return true
}

// worse reports whether a halts a rollout before b does: a member that was downgraded or quarantined, then the one that has been in its state
// for longer.
func worse(a, b *v1alpha1.ClusterState) bool {
	halts := func(s *v1alpha1.ClusterState) bool {
		return s.State == v1alpha1.MemberDowngraded || s.State == v1alpha1.MemberQuarantined
	}
	if halts(a) != halts(b) {
		return halts(a)
	}
	return a.Since != nil && (b.Since == nil || a.Since.Before(b.Since))
}

// announce records what happened to the rollout of a class in the log, the metrics and Events.
func (r *Rollouts) announce(ctx context.Context, c *v1alpha1.ResourceClass, changes []waves.Change, now time.Time) {
	if r == nil {
		return
	}
	var p *v1alpha1.RolloutProgress
	if c.RollsOut() {
		p = c.Status.Rollout.Progress
	}
	note, eventType := cmp.Or(waves.Describe(p), "every member has the rules of the class"), corev1.EventTypeNormal
	if p != nil && p.Halt != nil {
		eventType = corev1.EventTypeWarning
	}
	of := func(change waves.Change) (string, string) {
		if change == waves.Ignored && c.Status.Rollout != nil {
			return waves.DescribeIgnored(c, c.Status.Rollout.InstructionAt, now), corev1.EventTypeWarning
		}
		return note, eventType
	}
	for _, change := range changes {
		note, eventType := of(change)
		r.Metrics.RecordRolloutChange(string(change))
		log.FromContext(ctx).Info("The rollout of a class changed", "change", string(change), "resourceclass", c.Name, "note", note)
		r.Events.Eventf(c, nil, eventType, waves.EventPrefix+string(change), "Reconcile", "%s", statusfields.Truncate(note))
	}
}

// forget removes the record of a class that was deleted.
func (r *Rollouts) forget(kind, name string) {
	if r != nil && kind == "ResourceClass" {
		r.Metrics.RecordRollout("ResourceClass/"+name, "")
	}
}

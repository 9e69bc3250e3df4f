package waves

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

// UnhealthyAfter is how long a member that has enforced may be in one state other than Realized, for example while it gets a new statement,
// until it counts as unhealthy.
const UnhealthyAfter = 2 * time.Minute

// MaxAhead is how far in the future the time of an instruction may be. It tolerates a wrong time zone. Every following instruction needs a
// later time, so the times of all of them would be far in the future after one that is.
const MaxAhead = 24 * time.Hour

// Member is a member in which the resource is placed.
type Member struct {
	Name   string
	Labels map[string]string
	// Closed reports whether what is written for the member closes the resource, or this is not known.
	Closed bool
	// Last is the last reported state of the resource there; its zero value means that there is none.
	Last v1alpha1.ClusterState
}

// Input contains everything that a decision depends on.
type Input struct {
	Now time.Time
	// Waves contains the waves of the class; empty if it has none.
	Waves []v1alpha1.Wave
	// Wanted contains the members for which the spec has Enforce.
	Wanted v1alpha1.MemberSet
	// TemporaryAudit reports whether a temporary audit lasts, so that the resource is enforced in no member now.
	TemporaryAudit bool
	// Members contains the members in which the resource is placed.
	Members []Member
	// ClosedElsewhere reports whether what is written for a member in which the resource is not placed closes the resource.
	ClosedElsewhere bool
	// Status is the present status, or nil.
	Status *v1alpha1.RolloutStatus
	// Instruction is the last instruction, or nil.
	Instruction *Instruction
}

// Change is something that happened to a rollout.
type Change string

const (
	// Started means that a wave has begun.
	Started Change = "WaveBegun"
	// Halted means that the rollout was halted.
	Halted Change = "Halted"
	// Resumed means that it continues.
	Resumed Change = "Resumed"
	// Completed means that every wave is through.
	Completed Change = "Completed"
	// Ignored means that an instruction was not carried out, because it was not given later than the last one, or its time is not valid.
	Ignored Change = "InstructionIgnored"
)

// Next returns the status that follows from the present one, and what changed. A wave begins only with the returned status, so the caller
// must store it before it acts on it. If nothing changes, the result equals the present status. The result is nil if the class has no
// waves and no rollout is in progress, and while there is no status and nothing is known of any member, since a nil status opens nothing.
func Next(in Input) (*v1alpha1.RolloutStatus, []Change) {
	d := decision{Input: in, now: metav1.NewTime(in.Now.UTC().Truncate(time.Second))}
	if len(in.Waves) == 0 && (in.Status == nil || in.Status.Progress == nil) {
		return nil, nil
	}
	if in.Status == nil && len(in.Members) == 0 && !in.ClosedElsewhere && !in.Wanted.Empty() {
		return nil, nil // members that enforce may join, for example after the host was restored
	}
	if in.Status == nil {
		d.adopt()
	} else {
		d.next = in.Status.DeepCopy()
	}
	d.narrow()
	d.begin()
	d.instruct()
	d.advance()
	d.date()
	return d.next, d.changes
}

// decision is the state of one call of Next.
type decision struct {
	Input
	now     metav1.Time
	next    *v1alpha1.RolloutStatus
	changes []Change
	// force reports whether the next wave begins whatever the current one waits for.
	force bool
	// partial reports whether the first status was made and the resource is closed in some of its members.
	partial bool
}

// adopt makes the first status. A resource that is enforced already stays enforced. If only some of its members are, the waves begin
// after those members have soaked, because the status may have been lost in the middle of a rollout.
func (d *decision) adopt() {
	d.next = &v1alpha1.RolloutStatus{}
	if i := d.Instruction; i != nil && i.Action != Pause && i.Action != RollBack {
		// It is about a rollout of the past; a halt counts, because the status may have been lost.
		d.next.Instruction, d.next.InstructionAt = i.ID, LastAt(nil, i, d.Now)
	}
	if d.TemporaryAudit {
		d.next.Settled = d.Wanted // it was enforced before
		return
	}
	var closed []v1alpha1.ClusterName
	open := false
	first := len(d.Waves)
	for i := range d.Members {
		m := &d.Members[i]
		switch {
		case !d.Wanted.Has(m.Name):
		case m.Closed:
			closed = append(closed, v1alpha1.ClusterName(m.Name))
		default:
			open = true
			first = min(first, d.waveOf(m))
		}
	}
	switch {
	case len(closed) == 0 && !d.ClosedElsewhere:
	case !open:
		d.next.Settled = d.Wanted
	default:
		d.partial = true
		slices.Sort(closed)
		d.next.Progress = &v1alpha1.RolloutProgress{StartedAt: d.now, BegunAt: &d.now, Begun: v1alpha1.MemberSet{Clusters: closed}, Wave: 1,
			Name: d.nameOf(max(first-1, 0))}
	}
}

// narrow removes the members in which Enforce is not wanted any more, which never waits.
func (d *decision) narrow() {
	d.next.Settled = d.next.Settled.Intersect(d.Wanted)
	if p := d.next.Progress; p != nil {
		p.Begun = p.Begun.Intersect(d.Wanted)
		if d.Wanted.Intersect(d.next.Settled).Equal(d.Wanted) {
			d.next.Progress = nil
		}
	}
}

// begin begins a rollout if Enforce is wanted in members in which it is not settled.
func (d *decision) begin() {
	if d.next.Progress == nil && !d.TemporaryAudit && len(d.pending()) > 0 {
		d.next.Progress = &v1alpha1.RolloutProgress{StartedAt: d.now}
	}
}

// pending returns the members of the rollout: those in which Enforce is wanted and not settled.
func (d *decision) pending() []*Member {
	var out []*Member
	for i := range d.Members {
		if m := &d.Members[i]; d.Wanted.Has(m.Name) && !d.next.Settled.Has(m.Name) {
			out = append(out, m)
		}
	}
	return out
}

// LastAt returns the time of the last instruction after another one was handled: the later one of both. A time that is not valid does not
// count.
func LastAt(last *metav1.MicroTime, i *Instruction, now time.Time) *metav1.MicroTime {
	if i == nil || ignoredBecause(i, last, now) != notIgnored {
		return last
	}
	at := timeOf(i)
	return &at
}

// instruct carries out an instruction that was not handled yet. An instruction that was not given later than the last one is ignored: it was
// applied again, and the ledger, which has each instruction once, would not show that it was carried out again.
func (d *decision) instruct() {
	i := d.Instruction
	if i == nil || i.ID == d.next.Instruction {
		return
	}
	d.next.Instruction = i.ID
	if ignoredBecause(i, d.next.InstructionAt, d.Now) != notIgnored {
		d.changes = append(d.changes, Ignored)
		return
	}
	d.next.InstructionAt = LastAt(d.next.InstructionAt, i, d.Now)
	p := d.next.Progress
	if p == nil {
		return
	}
	switch i.Action {
	case Pause:
		d.halt(&v1alpha1.RolloutHalt{Reason: cmp.Or(i.Halt, v1alpha1.HaltPaused), By: i.By, Cluster: i.Cluster, Message: i.Reason,
			MessageCode: i.Code, MessageParams: i.Params})
	case RollBack:
		if d.partial { // which of the closed members belong to the rollout is not known, so none is opened
			d.halt(&v1alpha1.RolloutHalt{Reason: v1alpha1.HaltPaused, By: i.By, Message: i.Reason})
			return
		}
		p.Begun, p.Wave, p.Name, p.BegunAt = v1alpha1.MemberSet{}, 0, "", nil
		d.halt(&v1alpha1.RolloutHalt{Reason: v1alpha1.HaltRolledBack, By: i.By, Message: i.Reason})
	case Finish:
		d.resume()
		if pending := d.pending(); slices.ContainsFunc(pending, d.waits) {
			p.Begun, p.Name = d.Wanted, d.nameOf(d.lastOf(pending))
			p.Wave, p.BegunAt = max(p.Wave, 1), &d.now
			d.changes = append(d.changes, Started)
		}
	case Skip:
		d.resume()
		d.force = true
	case Resume:
		d.resume()
		if len(d.Waves) == 0 { // nothing says in which order the others follow
			d.force = true
		}
	}
}

// date adds the time of an instruction that an adapter of an earlier version has carried out. It does so only if something else changes, too,
// because a host cluster whose CRDs are older than the adapter does not store it, and every decision would write the status again.
func (d *decision) date() {
	if i := d.Instruction; i != nil && len(d.changes) > 0 && i.ID == d.next.Instruction && d.next.InstructionAt == nil {
		d.next.InstructionAt = LastAt(nil, i, d.Now)
	}
}

func (d *decision) halt(h *v1alpha1.RolloutHalt) {
	h.At = d.now
	d.next.Progress.Halt, d.next.Progress.EnforcedSince = h, nil
	d.changes = append(d.changes, Halted)
}

func (d *decision) resume() {
	if d.next.Progress.Halt != nil {
		d.changes = append(d.changes, Resumed)
	}
	d.next.Progress.Halt, d.next.Progress.EnforcedSince = nil, nil
}

// advance begins the next wave if it is due, halts the rollout, or completes it.
func (d *decision) advance() {
	p := d.next.Progress
	if p == nil {
		return
	}
	pending := d.pending()
	defer d.count(pending)
	if d.TemporaryAudit {
		p.EnforcedSince = nil
		return
	}
	if p.Halt == nil && !d.force {
		if h := d.problem(pending); h != nil {
			d.halt(h)
		}
	}
	if p.Halt != nil {
		return
	}
	if len(pending) == 0 { // the members may return
		p.EnforcedSince = nil
		return
	}
	d.join(pending)
	if !d.force && !d.through(pending) {
		return
	}
	next, waits := d.nextWave(pending)
	switch {
	case !waits:
		d.next.Settled, d.next.Progress = d.Wanted, nil
		d.changes = append(d.changes, Completed)
	default:
		d.beginWave(pending, next)
		p.Name, p.BegunAt, p.EnforcedSince = d.nameOf(next), &d.now, nil
		p.Wave++
		d.changes = append(d.changes, Started)
	}
}

// problem returns the reason to halt the rollout, or nil.
func (d *decision) problem(pending []*Member) *v1alpha1.RolloutHalt {
	p := d.next.Progress
	if len(d.Waves) == 0 && slices.ContainsFunc(pending, d.waits) {
		return haltBecause(v1alpha1.HaltClassWithoutWaves, "", message.WavesClassWithoutWaves())
	}
	for _, m := range pending {
		if !d.begun(m) {
			continue
		}
		switch state := m.Last.State; {
		case state == v1alpha1.MemberDowngraded, state == v1alpha1.MemberQuarantined,
			p.EnforcedSince != nil && state != v1alpha1.MemberRealized && m.Last.Since != nil && d.Now.Sub(m.Last.Since.Time) >= UnhealthyAfter:
			return haltBecause(v1alpha1.HaltMemberUnhealthy, m.Name, message.WavesMemberUnhealthy(m.Name, string(state)))
		}
	}
	return nil
}

func haltBecause(reason v1alpha1.HaltReason, cluster string, m message.Message) *v1alpha1.RolloutHalt {
	h := &v1alpha1.RolloutHalt{Reason: reason, Cluster: cluster, Message: m.Text}
	h.MessageCode, h.MessageParams = m.Compact()
	return h
}

// join begins Enforce in members that joined the current wave, such as members that joined the fleet. The soak time begins again then.
// Members that joined an earlier wave are the next wave that begins.
func (d *decision) join(pending []*Member) {
	p := d.next.Progress
	if i := d.indexOf(p.Name); p.Wave > 0 && i >= 0 && slices.ContainsFunc(pending, d.waits) {
		before := p.Begun
		if d.beginWave(pending, i); !p.Begun.Equal(before) {
			p.EnforcedSince = nil
		}
	}
}

// beginWave begins Enforce, or a change of a class, in the members of one wave. If no other member is left, it begins in all members in which
// it is wanted, also those that join later.
func (d *decision) beginWave(pending []*Member, wave int) {
	p := d.next.Progress
	rest := false
	for _, m := range pending {
		switch {
		case d.begun(m):
		case d.waveOf(m) == wave:
			p.Begun = p.Begun.Union(v1alpha1.MemberSet{Clusters: []v1alpha1.ClusterName{v1alpha1.ClusterName(m.Name)}})
		default:
			rest = true
		}
	}
	if !rest {
		p.Begun = d.Wanted
	}
}

// through reports whether the current wave has soaked, and records since when all of its members enforce.
func (d *decision) through(pending []*Member) bool {
	p := d.next.Progress
	if p.Wave == 0 {
		return true
	}
	for _, m := range pending {
		if d.begun(m) && (m.Last.Mode != v1alpha1.ModeEnforce || m.Last.State != v1alpha1.MemberRealized) {
			return false
		}
	}
	if p.EnforcedSince == nil {
		p.EnforcedSince = &d.now
	}
	return !d.Now.Before(p.EnforcedSince.Add(d.soak()))
}

// soak returns the soak time of the current wave. Members that no wave selects have that of the last wave.
func (d *decision) soak() time.Duration { return Soak(d.Waves, d.next.Progress.Name) }

// Soak returns the soak time of a wave. The name "" stands for the members that no wave selects, which have that of the last wave.
func Soak(all []v1alpha1.Wave, name string) time.Duration {
	if i := slices.IndexFunc(all, func(w v1alpha1.Wave) bool { return w.Name == name }); i >= 0 {
		return all[i].Soak.Duration
	}
	if len(all) == 0 {
		return 0
	}
	return all[len(all)-1].Soak.Duration
}

// nextWave returns the index of the first wave with a member in which Enforce has not begun; false if there is none.
func (d *decision) nextWave(pending []*Member) (int, bool) {
	next, found := 0, false
	for _, m := range pending {
		if d.begun(m) {
			continue
		}
		if i := d.waveOf(m); !found || i < next {
			next, found = i, true
		}
	}
	return next, found
}

func (d *decision) lastOf(pending []*Member) int {
	last := 0
	for _, m := range pending {
		last = max(last, d.waveOf(m))
	}
	return last
}

func (d *decision) begun(m *Member) bool { return d.next.Progress.Begun.Has(m.Name) }

func (d *decision) waits(m *Member) bool { return !d.begun(m) }

// count records the numbers that people see.
func (d *decision) count(pending []*Member) {
	p := d.next.Progress
	if p == nil {
		return
	}
	p.Waiting = 0
	ahead := map[int]bool{}
	for _, m := range pending {
		if !d.begun(m) {
			p.Waiting++
			ahead[d.waveOf(m)] = true
		}
	}
	p.Waves = p.Wave + int32(min(len(ahead), len(d.Waves)+1))
}

// waveOf returns the index of the wave of a member; the number of waves if none selects it. A selector that is not valid selects none.
func (d *decision) waveOf(m *Member) int { return Index(d.Waves, m.Labels) }

// Index returns the index of the first wave that selects a member with some labels; the number of waves if none does.
func Index(all []v1alpha1.Wave, of map[string]string) int {
	i := slices.IndexFunc(all, func(w v1alpha1.Wave) bool {
		selector, err := metav1.LabelSelectorAsSelector(&w.ClusterSelector)
		return err == nil && selector.Matches(labels.Set(of))
	})
	if i < 0 {
		return len(all)
	}
	return i
}

func (d *decision) indexOf(name string) int {
	if name == "" {
		return -1
	}
	return slices.IndexFunc(d.Waves, func(w v1alpha1.Wave) bool { return w.Name == name })
}

func (d *decision) nameOf(index int) string {
	if index >= len(d.Waves) {
		return ""
	}
	return d.Waves[index].Name
}

// Due returns how long after an instant the current wave has soaked. It returns 0 if it has soaked already, or no wave is soaking.
func Due(s *v1alpha1.RolloutStatus, all []v1alpha1.Wave, now time.Time) time.Duration {
	if s == nil || s.Progress == nil || s.Progress.Halt != nil || s.Progress.EnforcedSince == nil {
		return 0
	}
	return max(s.Progress.EnforcedSince.Add(Soak(all, s.Progress.Name)).Sub(now), 0)
}

package waves_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/waves"
)

var begin = time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)

var everywhere = v1alpha1.MemberSet{AllExcept: true}

func wave(name, tier string, soak time.Duration) v1alpha1.Wave {
	w := v1alpha1.Wave{Name: name, Soak: metav1.Duration{Duration: soak}}
	if tier != "" {
		w.ClusterSelector.MatchLabels = map[string]string{"tier": tier}
	}
	return w
}

// fleet is a resource in five members: m1 is the canary, m2 and m3 are in the second wave, and no wave selects m4 and m5.
type fleet struct {
	t       *testing.T
	in      waves.Input
	changes []waves.Change
}

func newFleet(t *testing.T) *fleet {
	f := &fleet{t: t, in: waves.Input{Now: begin, Wanted: everywhere,
		Waves: []v1alpha1.Wave{wave("canary", "canary", time.Hour), wave("eu", "eu", 2*time.Hour)}}}
	for name, tier := range map[string]string{"m1": "canary", "m2": "eu", "m3": "eu", "m4": "", "m5": ""} {
		f.in.Members = append(f.in.Members, waves.Member{Name: name, Labels: map[string]string{"tier": tier}})
	}
	slices.SortFunc(f.in.Members, func(a, b waves.Member) int { return strings.Compare(a.Name, b.Name) })
	f.in.Status = &v1alpha1.RolloutStatus{}
	return f
}

// step decides until nothing changes. The members have what the status permits, as if it was read back.
func (f *fleet) step() *fleet {
	f.t.Helper()
	for range 20 {
		next, changes := waves.Next(f.in)
		f.changes = append(f.changes, changes...)
		if cmp.Equal(next, f.in.Status) {
			return f
		}
		f.in.Status = next
		f.realize()
	}
	f.t.Fatal("it does not settle")
	return f
}

// realize lets the members have what they must have, unless their state is bad.
func (f *fleet) realize() {
	for i := range f.in.Members {
		m := &f.in.Members[i]
		m.Last.Mode = v1alpha1.ModeAudit
		if f.in.Wanted.Has(m.Name) && !f.in.Status.Holds(m.Name) && !f.in.TemporaryAudit {
			m.Last.Mode = v1alpha1.ModeEnforce
		}
		if m.Last.State == "" {
			m.Last.State = v1alpha1.MemberRealized
		}
		m.Closed = m.Last.Mode == v1alpha1.ModeEnforce
	}
}

func (f *fleet) pass(d time.Duration) *fleet { f.in.Now = f.in.Now.Add(d); return f.step() }

func (f *fleet) member(name string) *waves.Member {
	return &f.in.Members[slices.IndexFunc(f.in.Members, func(m waves.Member) bool { return m.Name == name })]
}

func (f *fleet) state(name string, s v1alpha1.MemberState) *fleet {
	m := f.member(name)
	m.Last.State, m.Last.Since = s, &metav1.MicroTime{Time: f.in.Now}
	return f.step()
}

// joins adds a member that has not had what it must have for an hour.
func (f *fleet) joins(name, tier string) {
	f.in.Members = append(f.in.Members, waves.Member{Name: name, Labels: map[string]string{"tier": tier},
		Last: v1alpha1.ClusterState{State: v1alpha1.MemberPending, Since: &metav1.MicroTime{Time: f.in.Now.Add(-time.Hour)}}})
}

func (f *fleet) do(a waves.Action) *fleet {
	i := waves.New(a, "sam", "because", f.in.Now)
	f.in.Instruction = &i
	return f.step()
}

// enforced returns the members in which Enforce counts.
func (f *fleet) enforced() (out []string) {
	for _, m := range f.in.Members {
		if f.in.Wanted.Has(m.Name) && !f.in.Status.Holds(m.Name) {
			out = append(out, m.Name)
		}
	}
	return out
}

func (f *fleet) halt() v1alpha1.HaltReason {
	if s := f.in.Status; s != nil && s.Progress != nil && s.Progress.Halt != nil {
		return s.Progress.Halt.Reason
	}
	return ""
}

func TestNext(t *testing.T) {
	all := []string{"m1", "m2", "m3", "m4", "m5"}
	for _, c := range []struct {
		reason string
		do     func(*fleet)
		want   []string
		halt   v1alpha1.HaltReason
		done   bool
	}{
		{"the first wave begins at once", func(f *fleet) { f.step() }, []string{"m1"}, "", false},
		{"the second one waits for the soak time", func(f *fleet) { f.step().pass(time.Hour - time.Second) }, []string{"m1"}, "", false},
		{"it begins then", func(f *fleet) { f.step().pass(time.Hour) }, []string{"m1", "m2", "m3"}, "", false},
		{"the members that no wave selects come last", func(f *fleet) { f.step().pass(time.Hour).pass(2 * time.Hour) }, all, "", false},
		{"the last wave soaks like the one before", func(f *fleet) { f.step().pass(time.Hour).pass(2 * time.Hour).pass(2 * time.Hour) }, all, "", true},
		{"a wave whose member does not enforce waits", func(f *fleet) {
			f.member("m1").Last.State = v1alpha1.MemberUnreachable
			f.step().pass(100 * time.Hour)
		}, []string{"m1"}, "", false},
		{"a short disturbance delays the next wave", func(f *fleet) {
			f.step().pass(time.Hour-time.Minute).state("m1", v1alpha1.MemberPending).pass(time.Minute)
		}, []string{"m1"}, "", false},
		{"it does not restart the soak time", func(f *fleet) {
			f.step().pass(30*time.Minute).state("m1", v1alpha1.MemberPending).pass(time.Minute).state("m1", v1alpha1.MemberRealized).pass(29 * time.Minute)
		}, []string{"m1", "m2", "m3"}, "", false},
		{"a member that stays disturbed halts it", func(f *fleet) {
			f.step().pass(time.Minute).state("m1", v1alpha1.MemberUnreachable).pass(waves.UnhealthyAfter)
		}, []string{"m1"}, v1alpha1.HaltMemberUnhealthy, false},
		{"a halt stays when the member is well again", func(f *fleet) {
			f.step().pass(time.Minute).state("m1", v1alpha1.MemberDrifted).pass(waves.UnhealthyAfter).state("m1", v1alpha1.MemberRealized).pass(100 * time.Hour)
		}, []string{"m1"}, v1alpha1.HaltMemberUnhealthy, false},
		{"a downgraded member halts it at once", func(f *fleet) { f.step().state("m1", v1alpha1.MemberDowngraded) },
			[]string{"m1"}, v1alpha1.HaltMemberUnhealthy, false},
		{"a quarantined member halts it at once", func(f *fleet) { f.step().state("m1", v1alpha1.MemberQuarantined) },
			[]string{"m1"}, v1alpha1.HaltMemberUnhealthy, false},
		{"a member whose wave has not begun halts nothing", func(f *fleet) { f.step().state("m4", v1alpha1.MemberDowngraded).pass(time.Hour) },
			[]string{"m1", "m2", "m3"}, "", false},
		{"a member of an earlier wave halts a later one", func(f *fleet) {
			f.step().pass(time.Hour).state("m1", v1alpha1.MemberDowngraded).pass(10 * time.Hour)
		}, []string{"m1", "m2", "m3"}, v1alpha1.HaltMemberUnhealthy, false},
		{"a pause", func(f *fleet) { f.step().do(waves.Pause).pass(100 * time.Hour) }, []string{"m1"}, v1alpha1.HaltPaused, false},
		{"the soak time begins again after it", func(f *fleet) { f.step().do(waves.Pause).pass(100 * time.Hour).do(waves.Resume).pass(59 * time.Minute) },
			[]string{"m1"}, "", false},
		{"and then the next wave begins", func(f *fleet) { f.step().do(waves.Pause).pass(100 * time.Hour).do(waves.Resume).pass(time.Hour) },
			[]string{"m1", "m2", "m3"}, "", false},
		{"skip begins one wave", func(f *fleet) { f.step().do(waves.Skip) }, []string{"m1", "m2", "m3"}, "", false},
		{"skip after a halt", func(f *fleet) { f.step().do(waves.Pause).pass(time.Minute).do(waves.Skip) }, []string{"m1", "m2", "m3"}, "", false},
		{"skip in the last wave completes", func(f *fleet) { f.step().do(waves.Finish).pass(time.Second).do(waves.Skip) }, all, "", true},
		{"finish begins all", func(f *fleet) { f.step().do(waves.Finish) }, all, "", false},
		{"rollback opens all and halts", func(f *fleet) {
			f.step().pass(time.Hour).do(waves.RollBack).pass(100 * time.Hour)
		}, nil, v1alpha1.HaltRolledBack, false},
		{"rollback in the last wave", func(f *fleet) { f.step().do(waves.Finish).pass(time.Minute).do(waves.RollBack) }, nil, v1alpha1.HaltRolledBack, false},
		{"resume after a rollback begins with the first wave", func(f *fleet) {
			f.step().pass(time.Hour).do(waves.RollBack).pass(time.Minute).do(waves.Resume)
		}, []string{"m1"}, "", false},
		{"an instruction is carried out once", func(f *fleet) {
			f.step().do(waves.Skip)
			f.in.Now = f.in.Now.Add(time.Minute)
			f.step()
		}, []string{"m1", "m2", "m3"}, "", false},
		{"an instruction without a rollout is not kept for the next one", func(f *fleet) {
			f.in.Wanted = v1alpha1.MemberSet{}
			f.step().do(waves.Finish)
			f.in.Wanted = everywhere
			f.step()
		}, []string{"m1"}, "", false},
		{"what is not wanted any more ends at once", func(f *fleet) {
			f.step().pass(time.Hour)
			f.in.Wanted = v1alpha1.MemberSet{Clusters: []v1alpha1.ClusterName{"m3", "m4"}}
			f.step()
		}, []string{"m3"}, "", false},
		{"a change of mode ends a halt", func(f *fleet) {
			f.step().do(waves.Pause)
			f.in.Wanted = v1alpha1.MemberSet{}
			f.step()
		}, nil, "", true},
		{"after Audit everything begins again", func(f *fleet) {
			f.step().do(waves.Finish).pass(10 * time.Hour)
			f.in.Wanted = v1alpha1.MemberSet{}
			f.step()
			f.in.Wanted = everywhere
			f.step()
		}, []string{"m1"}, "", false},
		{"a temporary audit begins no wave", func(f *fleet) {
			f.step()
			f.in.TemporaryAudit = true
			f.realize()
			f.step().pass(100 * time.Hour)
		}, []string{"m1"}, "", false},
		{"after a temporary audit the wave soaks again", func(f *fleet) {
			f.step().pass(50 * time.Minute)
			f.in.TemporaryAudit = true
			f.realize()
			f.step().pass(time.Hour)
			f.in.TemporaryAudit = false
			f.realize()
			f.step().pass(59 * time.Minute)
		}, []string{"m1"}, "", false},
		{"a settled resource returns from a temporary audit without waves", func(f *fleet) {
			f.step().do(waves.Finish).pass(10 * time.Hour)
			f.in.TemporaryAudit = true
			f.realize()
			f.step().pass(time.Hour)
			f.in.TemporaryAudit = false
			f.step()
		}, all, "", true},
		{"a member that joins a wave that has begun", func(f *fleet) {
			f.step()
			f.in.Members = append(f.in.Members, waves.Member{Name: "m6", Labels: map[string]string{"tier": "canary"}})
			f.step()
		}, []string{"m1", "m6"}, "", false},
		{"a member that joins a later wave", func(f *fleet) {
			f.step()
			f.in.Members = append(f.in.Members, waves.Member{Name: "m6", Labels: map[string]string{"tier": "eu"}})
			f.step()
		}, []string{"m1"}, "", false},
		{"a member whose labels change stays enforced", func(f *fleet) {
			f.step()
			f.member("m1").Labels = nil
			f.step().pass(30 * time.Minute)
		}, []string{"m1"}, "", false},
		{"a member that is settled does not wait", func(f *fleet) {
			f.in.Wanted = v1alpha1.MemberSet{Clusters: []v1alpha1.ClusterName{"m4"}}
			f.step().pass(10 * time.Hour)
			f.in.Wanted = everywhere
			f.step()
		}, []string{"m1", "m4"}, "", false},
		{"a change that wants more while the last wave soaks", func(f *fleet) {
			f.in.Wanted = v1alpha1.MemberSet{Clusters: []v1alpha1.ClusterName{"m4"}}
			f.step().pass(time.Minute)
			f.in.Wanted = everywhere
			f.step()
		}, []string{"m4"}, "", false},
		{"it goes on with the first wave", func(f *fleet) {
			f.in.Wanted = v1alpha1.MemberSet{Clusters: []v1alpha1.ClusterName{"m4"}}
			f.step().pass(time.Minute)
			f.in.Wanted = everywhere
			f.step().pass(2 * time.Hour)
		}, []string{"m1", "m4"}, "", false},
		{"the waves are removed from the class", func(f *fleet) {
			f.step()
			f.in.Waves = nil
			f.step().pass(100 * time.Hour)
		}, []string{"m1"}, v1alpha1.HaltClassWithoutWaves, false},
		{"resume without waves enforces everywhere", func(f *fleet) {
			f.step()
			f.in.Waves = nil
			f.step().pass(time.Minute).do(waves.Resume)
		}, all, "", true},
		{"a wave that is renamed opens no other", func(f *fleet) {
			f.step()
			f.in.Waves[0].Name, f.in.Waves[0].ClusterSelector.MatchLabels = "other", map[string]string{"tier": "none"}
			f.step()
		}, []string{"m1"}, "", false},
		{"waves in another order open nothing before the soak time", func(f *fleet) {
			f.step()
			f.in.Waves = append([]v1alpha1.Wave{wave("all", "", time.Hour)}, f.in.Waves...)
			f.step()
		}, []string{"m1"}, "", false},
		{"without any member it does not complete", func(f *fleet) {
			members := f.step().in.Members
			f.in.Members = nil
			f.pass(100 * time.Hour)
			f.in.Members = members
			f.step()
		}, []string{"m1"}, "", false},
		{"nor is a wave skipped", func(f *fleet) {
			members := f.step().in.Members
			f.in.Members = nil
			f.pass(time.Minute).do(waves.Skip)
			f.in.Members = members
			f.step()
		}, []string{"m1"}, "", false},
		{"a member that joins the wave late halts nothing", func(f *fleet) {
			f.step().pass(59*time.Minute).joins("m6", "canary")
			f.step().pass(waves.UnhealthyAfter)
		}, []string{"m1", "m6"}, "", false},
		{"the soak time begins again with it", func(f *fleet) {
			f.step().pass(59*time.Minute).joins("m6", "canary")
			f.step().state("m6", v1alpha1.MemberRealized).pass(59 * time.Minute)
		}, []string{"m1", "m6"}, "", false},
		{"and then the next wave begins as usual", func(f *fleet) {
			f.step().pass(59*time.Minute).joins("m6", "canary")
			f.step().state("m6", v1alpha1.MemberRealized).pass(time.Hour)
		}, []string{"m1", "m2", "m3", "m6"}, "", false},
		{"an invalid selector selects nothing", func(f *fleet) {
			f.in.Waves[0].ClusterSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Odd"}}
			f.step()
		}, []string{"m2", "m3"}, "", false},
	} {
		t.Run(c.reason, func(t *testing.T) {
			f := newFleet(t)
			c.do(f)
			if got := f.enforced(); !slices.Equal(got, c.want) {
				t.Errorf("enforced in %v, want %v", got, c.want)
			}
			if f.halt() != c.halt {
				t.Errorf("halted because of %q, want %q", f.halt(), c.halt)
			}
			if done := f.in.Status == nil || f.in.Status.Progress == nil; done != c.done {
				t.Errorf("complete: %t, want %t; %+v", done, c.done, f.in.Status)
			}
		})
	}
}

// TestAdopt checks the first status: nothing that is enforced is opened, and no wave is skipped.
func TestAdopt(t *testing.T) {
	all := []string{"m1", "m2", "m3", "m4", "m5"}
	for _, c := range []struct {
		reason string
		closed []string
		do     func(*fleet)
		want   []string
	}{
		{"not enforced yet", nil, nil, []string{"m1"}},
		{"enforced everywhere", all, nil, all},
		{"enforced in the first wave: the second waits for its soak time", []string{"m1"}, nil, []string{"m1"}},
		{"the second begins then", []string{"m1"}, func(f *fleet) { f.pass(time.Hour) }, []string{"m1", "m2", "m3"}},
		{"enforced in the last wave only: the first begins", []string{"m5"}, nil, []string{"m1", "m5"}},
		{"in a temporary audit", nil, func(f *fleet) {
			f.in.Status, f.in.TemporaryAudit = nil, true
			f.step()
			f.in.TemporaryAudit = false
			f.step()
		}, all},
		{"placed in no member now", nil, func(f *fleet) {
			members := f.in.Members
			f.in.Status, f.in.Members, f.in.ClosedElsewhere = nil, nil, true
			f.step()
			f.in.Members = members
			f.step()
		}, all},
		{"nothing known of any member", nil, func(f *fleet) {
			members := f.in.Members
			f.in.Status, f.in.Members = nil, nil
			f.step()
			if f.in.Status != nil {
				f.t.Errorf("the first status is %+v", f.in.Status)
			}
			for i := range members {
				members[i].Closed = true
			}
			f.in.Members = members[:1]
			f.step()
			f.in.Members = members
			f.step()
		}, all},
		{"a pause survives the loss of the status", []string{"m1"}, func(f *fleet) {
			f.in.Status = nil
			f.do(waves.Pause).pass(100 * time.Hour)
		}, []string{"m1"}},
		{"a rollback becomes a pause", []string{"m1"}, func(f *fleet) {
			f.in.Status = nil
			f.do(waves.RollBack).pass(100 * time.Hour)
			if f.halt() != v1alpha1.HaltPaused {
				f.t.Errorf("halted because of %q", f.halt())
			}
		}, []string{"m1"}},
		{"a rollback that was carried out stays", nil, func(f *fleet) {
			f.do(waves.RollBack)
			f.in.Status = nil
			f.step().pass(100 * time.Hour)
		}, nil},
		{"another old instruction is not carried out", []string{"m1"}, func(f *fleet) {
			f.in.Status = nil
			f.do(waves.Finish)
		}, []string{"m1"}},
		{"an old instruction is not carried out", all, func(f *fleet) {
			f.in.Status = nil
			f.do(waves.RollBack)
		}, all},
	} {
		t.Run(c.reason, func(t *testing.T) {
			f := newFleet(t)
			f.in.Status = nil
			for _, name := range c.closed {
				f.member(name).Closed = true
			}
			f.step()
			if c.do != nil {
				c.do(f)
			}
			if got := f.enforced(); !slices.Equal(got, c.want) {
				t.Errorf("enforced in %v, want %v", got, c.want)
			}
		})
	}
}

// TestWithoutWaves checks that a class without waves has no status, and that its removal changes no mode.
func TestWithoutWaves(t *testing.T) {
	f := newFleet(t)
	f.in.Status, f.in.Waves = nil, nil
	if next, changes := waves.Next(f.in); next != nil || len(changes) > 0 {
		t.Errorf("got %+v, %v", next, changes)
	}
	f = newFleet(t)
	f.step().do(waves.Finish).pass(10 * time.Hour)
	f.in.Waves = nil
	if next, _ := waves.Next(f.in); next != nil {
		t.Errorf("got %+v after the waves were removed", next)
	}
}

// TestChanges checks what is reported.
func TestChanges(t *testing.T) {
	f := newFleet(t)
	f.step().do(waves.Pause).pass(time.Minute).do(waves.Resume).pass(time.Hour).pass(2 * time.Hour).pass(2 * time.Hour)
	want := []waves.Change{waves.Started, waves.Halted, waves.Resumed, waves.Started, waves.Started, waves.Completed}
	if !slices.Equal(f.changes, want) {
		t.Errorf("got %v, want %v", f.changes, want)
	}
}

func TestDue(t *testing.T) {
	f := newFleet(t)
	f.step()
	if got := waves.Due(f.in.Status, f.in.Waves, f.in.Now.Add(20*time.Minute)); got != 40*time.Minute {
		t.Errorf("due in %s, want 40m", got)
	}
	if got := waves.Due(f.in.Status, f.in.Waves, f.in.Now.Add(2*time.Hour)); got != 0 {
		t.Errorf("due in %s after the soak time", got)
	}
	f.do(waves.Pause)
	if got := waves.Due(f.in.Status, f.in.Waves, f.in.Now); got != 0 {
		t.Errorf("due in %s while halted", got)
	}
}

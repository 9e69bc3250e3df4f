package protectedresource

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/guard"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/waves"
)

// newWaves returns a scene with a canary, two members in the second wave, and one that no wave selects. Each wave soaks for an hour.
func newWaves(t testing.TB) *scene {
	s := newScene(t, "m1", "m2", "m3", "m4")
	tiers := []string{"canary", "eu", "eu", ""}
	for i := range s.clusters {
		s.clusters[i].Labels = map[string]string{"tier": tiers[i]}
	}
	for _, name := range []string{"canary", "eu"} {
		s.waves = append(s.waves, v1alpha1.Wave{Name: name, Soak: metav1.Duration{Duration: time.Hour},
			ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"tier": name}}})
	}
	return s
}

// store stores the status that follows, and reports whether it differs.
func (s *scene) store() bool {
	s.Helper()
	f := s.facts()
	next, _, known := f.nextRollout(f.Objects[0])
	if !known {
		s.Fatal("the next status is not known")
	}
	changed := !equality.Semantic.DeepEqual(next, s.rollout)
	s.rollout = next
	return changed
}

// run stores and settles until nothing changes.
func (s *scene) run() {
	s.Helper()
	for range 20 {
		changed := s.store()
		s.last = s.settle()
		if !changed {
			return
		}
	}
	s.Fatal("the rollout does not settle")
}

// TestWavesOfAResource checks what the members have while a rollout is in progress: Enforce only where a wave has begun, and every change
// of statements everywhere.
func TestWavesOfAResource(t *testing.T) {
	s := newWaves(t)
	s.spec.Mode = v1alpha1.ModeAudit
	s.run()
	if got := s.closed(federation.CiliumPolicy); got != nil {
		t.Fatalf("Audit closes %v", got)
	}
	s.spec.Mode = v1alpha1.ModeEnforce
	s.run()
	if got := s.closed(federation.CiliumPolicy); !slices.Equal(got, []string{"m1"}) {
		t.Fatalf("the first wave closes %v", got)
	}
	for member, want := range map[string]v1alpha1.Mode{"m1": v1alpha1.ModeEnforce, "m2": v1alpha1.ModeAudit, "m4": v1alpha1.ModeAudit} {
		if got := s.last[member]; got.Mode != want || got.State != v1alpha1.MemberRealized {
			t.Errorf("%s is %s in %s, want Realized in %s", member, got.State, got.Mode, want)
		}
	}

	held := s.existing[0].SpecIn("m4")
	s.allowed = nil // a revocation
	s.run()
	if enforcer.Revision(held) == enforcer.Revision(s.existing[0].SpecIn("m4")) {
		t.Error("a revocation does not reach a member whose wave has not begun")
	}
	if got := s.closed(federation.CiliumPolicy); !slices.Equal(got, []string{"m1"}) {
		t.Errorf("after a revocation, %v are closed", got)
	}

	s.elapsed = time.Hour
	s.run()
	if got := s.closed(federation.CiliumPolicy); !slices.Equal(got, []string{"m1", "m2", "m3"}) {
		t.Errorf("the second wave closes %v", got)
	}
	s.spec.Mode = v1alpha1.ModeAudit
	f := s.facts()
	p, err := newPlan(f)
	if err != nil || len(p.Writes) != 1 || slices.ContainsFunc([]string{"m1", "m2", "m3", "m4"}, func(m string) bool {
		return closes(federation.CiliumPolicy, p.Writes[0].SpecIn(m))
	}) {
		t.Errorf("a change that opens waits: %d writes, %v", len(p.Writes), err)
	}
	s.spec.Mode = v1alpha1.ModeEnforce

	s.elapsed = 2 * time.Hour
	s.run()
	s.elapsed = 3 * time.Hour
	s.run()
	if got := s.closed(federation.CiliumPolicy); len(got) != 4 || s.rollout.Progress != nil {
		t.Errorf("at the end %v are closed, %+v", got, s.rollout)
	}
	s.join("m5")
	s.run()
	if got := s.closed(federation.CiliumPolicy); len(got) != 5 {
		t.Errorf("with a member that joined later, %v are closed", got)
	}
}

// TestWavesAreAdopted checks that a class that gets waves opens nothing, and skips no wave for what is enforced later.
func TestWavesAreAdopted(t *testing.T) {
	s := newWaves(t)
	all := s.waves
	s.waves = nil
	s.run()
	if s.rollout != nil {
		t.Fatalf("without waves the status has a rollout: %+v", s.rollout)
	}
	s.waves = all
	s.run()
	if got := s.closed(federation.CiliumPolicy); len(got) != 4 || s.rollout == nil || !s.rollout.Settled.AllExcept {
		t.Fatalf("after the class got waves, %v are closed: %+v", got, s.rollout)
	}

	// A host that was restored without the Federated objects and without the status.
	s.existing, s.rollout, s.last = nil, nil, nil
	s.odd = map[string]func(*federation.Observation){}
	for _, m := range []string{"m1", "m2", "m3"} {
		s.odd[m] = func(o *federation.Observation) {
			o.Object = &federation.Observed{Name: objectName(sceneResource), Revision: "old", Label: "old"}
		}
	}
	s.away = []string{"m4"}
	s.store()
	if s.rollout.Progress != nil || !s.rollout.Settled.Has("m1") || !s.rollout.Settled.Has("m4") {
		t.Errorf("members that may be closed would be opened: %+v", s.rollout)
	}
}

// TestAdoptedMembersMayDiffer checks that the first status trusts what was read in the members rather than the host's record, which may be
// older: nothing that may be closed is opened.
func TestAdoptedMembersMayDiffer(t *testing.T) {
	s := newWaves(t)
	all := s.waves
	s.waves, s.spec.Mode = nil, v1alpha1.ModeAudit
	s.run()
	s.waves, s.spec.Mode, s.rollout = all, v1alpha1.ModeEnforce, nil
	s.odd = map[string]func(*federation.Observation){"m2": func(o *federation.Observation) {
		o.Object = &federation.Observed{Name: objectName(sceneResource), Revision: "later", Label: "later"}
	}}
	s.away = []string{"m3"}
	s.store()
	if p := s.rollout.Progress; p == nil || !p.Begun.Has("m2") || !p.Begun.Has("m3") || p.Begun.Has("m4") {
		t.Errorf("the first status is %+v", s.rollout)
	}
}

// TestNextWaveNeedsPresentStates checks that no wave begins because of states that an earlier process stored, or that are older than what
// was read.
func TestNextWaveNeedsPresentStates(t *testing.T) {
	for _, c := range []struct {
		reason string
		do     func(*scene, *facts)
		want   bool
	}{
		{"the canary is as reported", func(*scene, *facts) {}, true},
		{"this process has not reported yet", func(_ *scene, f *facts) { f.LastReport = statuscache.Report{} }, false},
		{"the object is gone", func(s *scene, _ *facts) {
			s.odd = map[string]func(*federation.Observation){"m1": func(o *federation.Observation) { o.Object = nil }}
		}, false},
		{"the object was changed", func(s *scene, _ *facts) {
			s.odd = map[string]func(*federation.Observation){"m1": func(o *federation.Observation) {
				if o.Object != nil {
					o.Object.Revision = "odd"
				}
			}}
		}, false},
		{"the member is not reachable", func(s *scene, _ *facts) { s.away = []string{"m1"} }, false},
		{"the member was downgraded", func(_ *scene, f *facts) { f.Marks = map[string]*guard.DowngradeMark{"m1": {}} }, false},
		{"its dataplane was not read", func(_ *scene, f *facts) { delete(f.Enforcement, "m1") }, false},
		{"a member whose wave has not begun is not reachable", func(s *scene, _ *facts) { s.away = []string{"m4"} }, true},
	} {
		t.Run(c.reason, func(t *testing.T) {
			s := newWaves(t)
			s.run()
			s.elapsed = time.Hour
			c.do(s, &facts{})
			f := s.facts()
			c.do(s, f)
			next, changes, known := f.nextRollout(f.Objects[0])
			if !known || slices.Contains(changes, waves.Started) != c.want {
				t.Errorf("known %t, changes %v, %+v", known, changes, next.Progress)
			}
		})
	}
}

// TestStatementsDoNotWaitForTheFirstStatus checks that only a first status that changes a mode must be stored before anything is written.
func TestStatementsDoNotWaitForTheFirstStatus(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	r := &Reconciler{Client: fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		SubResourceUpdate: func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
			return errors.New("the status cannot be stored")
		}}).Build()}
	for _, c := range []struct {
		reason string
		do     func(*scene)
		safe   bool
	}{
		{"Audit", func(s *scene) { s.spec.Mode = v1alpha1.ModeAudit }, true},
		{"Enforce that stays", func(s *scene) {
			all := s.waves
			s.waves = nil
			s.run()
			s.waves = all
		}, true},
		{"Enforce that has to wait", func(*scene) {}, false},
		{"a later status", func(s *scene) {
			s.run()
			s.elapsed = time.Hour
		}, true},
	} {
		t.Run(c.reason, func(t *testing.T) {
			s := newWaves(t)
			c.do(s)
			changed, safe, err := r.storeRollout(t.Context(), s.facts())
			if changed || safe != c.safe || err == nil {
				t.Errorf("changed %t, safe %t, want %t, %v", changed, safe, c.safe, err)
			}
		})
	}
}

// TestUnknownPlacementAdoptsNothing checks that no first status is made before the members of the resource are known.
func TestUnknownPlacementAdoptsNothing(t *testing.T) {
	s := newWaves(t)
	f := s.facts()
	f.Placement, f.Placed = nil, false
	if _, _, known := f.nextRollout(f.Objects[0]); known {
		t.Error("a status is made although the placement is not known")
	}
}

// TestRolloutSurvivesCrashes interrupts rollouts between any two writes, at random, with changes of statements in between. A wave
// must never begin before the one before it has soaked, and nothing may open a member that is closed.
func TestRolloutSurvivesCrashes(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 15))
		s := newWaves(t)
		s.spec.Mode = v1alpha1.ModeAudit
		s.run()
		s.spec.Mode = v1alpha1.ModeEnforce
		wave := map[string]int{"m1": 0, "m2": 1, "m3": 1, "m4": 2}
		closedAt := map[string]time.Duration{}
		for step := range 80 {
			switch random.IntN(8) {
			case 0: // the process crashes after it has decided: nothing is stored
				f := s.facts()
				f.nextRollout(f.Objects[0])
				s.last = nil // and its reports are lost
			case 1:
				s.store()
			case 2: // the plan is written, and the process crashes before it reports
				f := s.facts()
				p, err := newPlan(f)
				if err != nil {
					t.Fatal(err)
				}
				for _, w := range p.Writes {
					w.Meta.ResourceVersion, w.Propagation.Seen = "1", true
					s.existing = replace(s.existing, w)
				}
			case 3:
				s.last = s.settle()
			case 4:
				s.elapsed += time.Duration(random.IntN(40)) * time.Minute
			case 5:
				s.allowed = [][]string{nil, {"1"}, {"1", "2"}}[random.IntN(3)]
			default:
				s.store()
				s.last = s.settle()
			}
			closed := s.closed(federation.CiliumPolicy)
			for m := range closedAt {
				if !slices.Contains(closed, m) {
					t.Fatalf("seed %d, step %d: %s was opened", seed, step, m)
				}
			}
			for _, m := range closed {
				if _, had := closedAt[m]; had {
					continue
				}
				closedAt[m] = s.elapsed
				for other, w := range wave {
					if at, begun := closedAt[other]; w < wave[m] && (!begun || s.elapsed-at < time.Hour) {
						t.Fatalf("seed %d, step %d: %s is closed %s after %s (closed: %t)", seed, step, m, s.elapsed-at, other, begun)
					}
				}
			}
			// Decisions count Enforce only in members in which the stored status permits it.
			f := s.facts()
			for m := range wave {
				permitted := s.rollout != nil && !s.rollout.Holds(m)
				q := policy.Query{Subjects: []string{sceneApps + "9"}, Resources: []string{sceneResource}, Cluster: m, Protocol: v1alpha1.ProtocolTCP,
					Port: 6379, At: f.Now}
				if got := f.View.Decide(q).Verdict; (got == policy.DefaultDenied) != permitted {
					t.Fatalf("seed %d, step %d: the decision in %s is %s, the status permits Enforce: %t", seed, step, m, got, permitted)
				}
			}
		}
	}
}

// TestInstructionAppliedAgain checks that an old instruction does not continue a rollout that was halted after it.
func TestInstructionAppliedAgain(t *testing.T) {
	s := newWaves(t)
	s.run()
	f := s.facts()
	finish := waves.New(waves.Finish, "sam", "a rollout of the past", f.Now)
	pause := waves.New(waves.Pause, "sam", "the canary fails", f.Now.Add(time.Second))
	for _, step := range []struct {
		reason string
		waves.Instruction
		want []waves.Change
	}{
		{"a pause", pause, []waves.Change{waves.Halted}},
		{"an older instruction from a repository", finish, []waves.Change{waves.Ignored}},
		{"the pause again", pause, []waves.Change{waves.Ignored}},
	} {
		f.Objects[0].Annotations = map[string]string{v1alpha1.AnnotationRollout: step.String()}
		next, changes, known := f.nextRollout(f.Objects[0])
		if !known || !slices.Equal(changes, step.want) || next.Progress.Halt == nil {
			t.Fatalf("%s: known %t, changes %v, %+v", step.reason, known, changes, next)
		}
		f.Objects[0].Status.Rollout = next
	}
}

// TestRollBack checks that a rollback opens the members of the rollout at once.
func TestRollBack(t *testing.T) {
	s := newWaves(t)
	s.run()
	f := s.facts()
	i := waves.New(waves.RollBack, "sam", "the canary fails", f.Now)
	f.Objects[0].Annotations = map[string]string{v1alpha1.AnnotationRollout: i.String()}
	next, changes, known := f.nextRollout(f.Objects[0])
	if !known || !slices.Equal(changes, []waves.Change{waves.Halted}) {
		t.Fatalf("known %t, changes %v", known, changes)
	}
	s.rollout = next
	s.last = s.settle()
	if got := s.closed(federation.CiliumPolicy); got != nil {
		t.Errorf("%v are closed after the rollback", got)
	}
}

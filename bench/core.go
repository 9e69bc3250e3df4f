package main

import (
	"fmt"
	"math"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/bench/world"
	"github.com/acp-io/acp/internal/enforcer/cilium"
	"github.com/acp-io/acp/internal/policy"
)

const (
	small, large = 1_000, 100_000
	questions    = 1 << 16
	rounds       = 25
)

func report(name string, value float64, unit string) {
	fmt.Printf("bench %s %s %s\n", name, strconv.FormatFloat(value, 'f', 1, 64), unit)
}

// cpu returns the processor time that the process has used, garbage collection included. Unlike wall time, it does not
// depend on what else runs on the machine.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // Linux and Darwin always support it
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// fastest runs f several times and returns the least processor time, because the processor's caches may be used by other
// processes in the slower runs.
func fastest(times int, f func()) time.Duration {
	best := time.Duration(math.MaxInt64)
	for range times {
		start := cpu()
		f()
		best = min(best, cpu()-start)
	}
	return best
}

// nsEach answers n questions several times and returns the least processor time for one, in nanoseconds. The least time is
// determined for each chunk of the questions, which is short enough to end before another process gets the processor and its
// caches.
func nsEach(n int, answer func(from, to int)) float64 {
	const piece = 2048
	best := make([]time.Duration, (n+piece-1)/piece)
	for round := range rounds {
		for i := range best {
			start := cpu()
			answer(i*piece, min(n, (i+1)*piece))
			if d := cpu() - start; round == 0 || d < best[i] {
				best[i] = d
			}
		}
	}
	var sum time.Duration
	for _, d := range best {
		sum += d
	}
	return float64(sum.Nanoseconds()) / float64(n)
}

// decide answers every question and counts the allowed ones, so that the compiler cannot remove the calls.
func decide(s *policy.Snapshot, queries []world.Question) (allowed int) {
	var refs [8]policy.Ref
	query := policy.Query{Protocol: v1alpha1.ProtocolTCP, At: world.Now}
	for i := range queries {
		q := &queries[i]
		query.Subjects, query.Resources, query.Port = q.SubjectList, q.ResourceList, q.Port
		d := s.DecideInto(&query, refs[:])
		if d.Verdict == policy.Allowed && len(d.Statements) > 0 {
			allowed++
		}
	}
	return allowed
}

func measureDecide(s *policy.Snapshot, queries []world.Question) float64 {
	return nsEach(len(queries), func(from, to int) { decide(s, queries[from:to]) })
}

func measureResolved(s *policy.Snapshot, queries []world.Question) float64 {
	type resolved struct {
		subject  policy.SubjectHandle
		resource policy.ResourceHandle
	}
	handles := make([]resolved, len(queries))
	for i, q := range queries {
		handles[i] = resolved{s.ResolveSubject(q.Subject), s.ResolveResource(q.Resource)}
	}
	q := policy.Query{Protocol: v1alpha1.ProtocolTCP, Port: world.Port, At: world.Now}
	var refs [8]policy.Ref
	allowed := 0
	return nsEach(len(handles), func(from, to int) {
		for _, h := range handles[from:to] {
			if s.DecideResolved(h.subject, h.resource, &q, refs[:]).Verdict == policy.Allowed {
				allowed++
			}
		}
	})
}

// measureMap measures the lower bound for the machine: the same questions answered by a plain map of maps of the exact
// grants, without wildcards and reasons.
func measureMap(w *world.World, queries []world.Question) float64 {
	grants := map[string]map[string]bool{}
	for _, g := range w.Grants {
		name := g.Redis.Name()
		if grants[name] == nil {
			grants[name] = map[string]bool{}
		}
		grants[name][g.App.Name()] = !g.Deny
	}
	allowed := 0
	return nsEach(len(queries), func(from, to int) {
		for i := from; i < to; i++ {
			if grants[queries[i].Resource][queries[i].Subject] {
				allowed++
			}
		}
	})
}

// heap returns the size of the reachable objects in bytes.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func core(seed uint64) (*policy.Snapshot, world.World, error) {
	few := world.New(seed, small)
	fewSnapshot := policy.NewSnapshot(few.Input)
	ofFew := measureDecide(fewSnapshot, few.Questions(seed, questions))

	w := world.New(seed, large)
	before := heap()
	s := policy.NewSnapshot(w.Input)
	after := heap()
	if refused := s.Refusals(); len(refused) > 0 {
		return nil, w, fmt.Errorf("the world has a statement that is refused: %+v", refused[0])
	}
	queries := w.Questions(seed, questions)
	ns := measureDecide(s, queries)
	report("decide_100k", ns, "ns")
	yardstick := measureMap(&w, queries)
	report("decide_100k_map_of_maps", yardstick, "ns")
	report("decide_100k_vs_map_of_maps", ns/yardstick, "x")
	report("decide_100k_resolved", measureResolved(s, queries), "ns")
	report("decide_growth", ns/ofFew, "x")
	report("snapshot_heap_100k", float64(after-before)/(1<<20), "MB")
	report("load_100k", ms(fastest(5, func() { policy.NewSnapshot(w.Input) })), "ms")
	report("compile_full_100k", ms(fullCompile(w)), "ms")
	return s, w, nil
}

// fullCompile returns the time to compile all units of a new snapshot. A snapshot that was used before has cached the units of
// wildcards.
func fullCompile(w world.World) time.Duration {
	best := time.Duration(math.MaxInt64)
	for range 5 {
		s := policy.NewSnapshot(w.Input)
		start := cpu()
		s.Compile(world.Now)
		best = min(best, cpu()-start)
	}
	return best
}

// analyze measures the analysis of a world, and the comparison of two worlds that share no object, such as those of two
// folders of files.
func analyze(s *policy.Snapshot, w world.World) error {
	report("analyze_100k", ms(fastest(3, func() { s.Analyze(world.Now) })), "ms")
	in := w.Input
	in.Policies, in.Resources = slices.Clone(in.Policies), slices.Clone(in.Resources)
	for i, p := range in.Policies {
		in.Policies[i] = p.DeepCopy()
	}
	for i, r := range in.Resources {
		in.Resources[i] = r.DeepCopy()
	}
	// The removal of a single statement changes nothing if another statement covers it.
	in.Policies = in.Policies[1:]
	other := policy.NewSnapshot(in)
	changes := 0
	report("compare_100k", ms(fastest(3, func() { changes = len(policy.Compare(s, other, world.Now)) })), "ms")
	if changes == 0 {
		return fmt.Errorf("a policy less changes nothing")
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// incremental changes one grant after the other and measures the time to make a snapshot and compile the changed units.
func incremental(s *policy.Snapshot, w world.World) error {
	in := w.Input
	in.Policies = slices.Clone(in.Policies)
	var all []time.Duration
	for i := range 50 {
		p := in.Policies[i*7].DeepCopy()
		p.Spec.Statements = append(p.Spec.Statements, v1alpha1.Statement{SID: "new", Effect: v1alpha1.EffectAllow, Actions: []v1alpha1.Action{world.Action},
			Subjects: []v1alpha1.Subject{v1alpha1.Subject(w.Grants[i].App.Name())}, Resources: p.Spec.Statements[0].Resources})
		in.Policies[i*7] = p
		next := s.Next(in)
		start := cpu()
		names := policy.ChangedUnits(s, next)
		for _, name := range names {
			next.CompileResource(name, world.Now)
		}
		all = append(all, cpu()-start)
		if len(names) != 1 {
			return fmt.Errorf("a grant touched %d units, want 1", len(names))
		}
		s = next
	}
	slices.Sort(all)
	report("compile_incremental", float64(all[len(all)/2].Nanoseconds())/1000, "us") // the median, because the changes differ
	return nil
}

func translate(s *policy.Snapshot) error {
	units := s.Compile(world.Now)
	var failed error
	d := fastest(3, func() {
		for _, u := range units {
			if _, err := (cilium.Enforcer{}).Render(u); err != nil {
				failed = err
			}
		}
	})
	report("translate_cilium_10k", ms(d)*10_000/float64(len(units)), "ms")
	return failed
}

// groups measures the rendering of the CIDR groups of 40,000 external workloads of 5,000 applications.
func groups(w world.World) error {
	in := w.Input
	for i := range 40_000 {
		a := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		in.Workloads = append(in.Workloads, &v1alpha1.ExternalWorkload{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("vm-", i)},
			Spec: v1alpha1.ExternalWorkloadSpec{Subject: v1alpha1.ResourceName(in.KnownNames[i%5000]), Addresses: []string{a.String()}}})
	}
	only := policy.Input{SubjectClasses: in.SubjectClasses, Workloads: in.Workloads}
	var failed error
	d := fastest(3, func() {
		for _, g := range policy.NewSnapshot(only).ExternalGroups() {
			if _, err := cilium.RenderGroup(g); err != nil {
				failed = err
			}
		}
	})
	report("cidrgroups_40k", ms(d), "ms")
	return failed
}

func run(seed uint64, peersToo bool) error {
	s, w, err := core(seed)
	if err != nil {
		return err
	}
	if err := incremental(s, w); err != nil {
		return err
	}
	if err := analyze(s, w); err != nil {
		return err
	}
	if err := translate(s); err != nil {
		return err
	}
	if err := groups(w); err != nil {
		return err
	}
	if err := measureSearch(); err != nil {
		return err
	}
	if err := measureLedger(); err != nil {
		return err
	}
	if err := measureInsight(&w, s); err != nil {
		return err
	}
	if peersToo {
		return comparePeers(seed, s, &w)
	}
	return nil
}

package istio

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/istiotest"
	"github.com/acp-io/acp/internal/policy"
)

var (
	worlds    = flag.Uint64("worlds", 600, "how many random worlds to compare")
	firstSeed = flag.Uint64("seed", 0, "the seed of the first world; the others follow")
	pairs     = flag.String(
		"pairs",
		"",
		"prefix of files to write, for each kind of proxy, with how often each pair of features occurred: count, feature, feature",
	)
)

const (
	// connections is the number of connections to each pod of a world.
	connections = 60
	// batch is the number of worlds that are in the API server at the same time.
	batch = 200
	// leastDecisions is a lower bound with the defaults, so that a change of the worlds cannot reduce the coverage unnoticed.
	leastDecisions = 100_000
)

// members are those whose dataplane are sidecars: with mutual TLS, too old, without a declaration of their own.
var members = []string{"m1", "m1", "unnamed", "unnamed", "m3"}

// newWorlds generates worlds from a seed on. Each has names of its own.
func newWorlds(t *testing.T, members []string, from, n uint64, mutant func(map[string]any) map[string]any) []*world {
	t.Helper()
	var out []*world
	for seed := from; seed < from+n; seed++ {
		w, err := newWorld(seed, fmt.Sprint("-", seed), members[seed%uint64(len(members))], mutant)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, w)
	}
	return out
}

// run writes the worlds, compares them, and deletes them. It returns the first disagreement.
func run(t *testing.T, p *controlPlane, all []*world, out *tally) string {
	t.Helper()
	var objects []enforcer.Object
	for _, w := range all {
		objects = append(objects, w.objects...)
	}
	if err := p.write(t.Context(), objects); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.clear(t.Context()); err != nil {
			t.Fatal(err)
		}
	}()
	out.objects += len(objects)
	for _, w := range all {
		out.worlds++
		for _, labels := range w.generator.Destinations() {
			proxy, err := sidecarOf(t.Context(), p.istiod, labels)
			if err != nil {
				t.Fatal(err)
			}
			disagreement, err := w.compare(labels, proxy, connections, out)
			if err != nil {
				t.Fatal(err)
			}
			if disagreement != "" {
				return disagreement
			}
		}
	}
	return ""
}

// TestIstioAgrees compares the decisions of random worlds with the configuration that istiod sends to sidecars.
func TestIstioAgrees(t *testing.T) {
	p := startControlPlane(t)
	out := newTally()
	t.Logf("seeds %d to %d", *firstSeed, *firstSeed+*worlds-1)
	for from := *firstSeed; from < *firstSeed+*worlds; from += batch {
		if disagreement := run(t, p, newWorlds(t, members, from, min(batch, *firstSeed+*worlds-from), nil), out); disagreement != "" {
			t.Fatal(disagreement)
		}
	}
	t.Logf("%d decisions in %d worlds with %d policies, %d of them about requests, %d as written, %d changed by what is left out: %v; "+
		"%d without a certificate; in %d, a wildcard's statement about requests decides",
		out.decisions, out.worlds, out.objects, out.requests, out.exact, out.differs, out.verdicts, out.unmeshed, out.met["requests of a wildcard"])
	if *worlds < 600 {
		return // too few for the counts below, which are about the defaults
	}
	if out.unmeshed < leastDecisions/20 || out.decisions < leastDecisions || out.requests < leastDecisions/4 || out.exact < leastDecisions/4 ||
		out.differs < leastDecisions/100 || out.met["requests of a wildcard"] < leastDecisions/1000 {
		t.Error("too few decisions were compared")
	}
	checkVerdicts(t, out, leastDecisions/200)
	checkPairs(t, "sidecars", out.met, istiotest.Sidecars)
}

// checkPairs fails if a feature, or a pair of features, of the decisions of some proxies never occurred, unless there is a reason. It writes the table of
// the flag pairs.
func checkPairs(t *testing.T, proxies string, met istiotest.Met, reasons istiotest.Reasons) {
	t.Helper()
	if *pairs != "" {
		if err := os.WriteFile(*pairs+"-"+proxies+".tsv", []byte(met.Table()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, problem := range met.Missing(reasons) {
		t.Errorf("decisions of %s: %s", proxies, problem)
	}
}

// checkVerdicts fails if a verdict is rarer than least.
func checkVerdicts(t *testing.T, out *tally, least int) {
	t.Helper()
	for _, v := range []policy.Verdict{policy.Allowed, policy.Denied, policy.DefaultDenied, policy.Audited, policy.Unmanaged} {
		if out.verdicts[v] < least {
			t.Errorf("only %d decisions were %s: a mistake there would not be noticed", out.verdicts[v], v)
		}
	}
}

// inAmbient writes the worlds and pods that ztunnel protects, calls do with the policies of each pod, and deletes them.
func inAmbient(t *testing.T, p *controlPlane, all []*world, do func(state map[string]connectionPolicies)) {
	t.Helper()
	var objects []enforcer.Object
	pods := map[string]map[string]string{}
	enforcing := map[string]int{} // the policies of each pod that are not AUDIT
	for _, w := range all {
		objects = append(objects, w.objects...)
		for i, labels := range w.generator.Destinations() {
			name := podName(w, i)
			pods[name] = labels
			for j := range w.objects {
				if w.objects[j].Spec["action"] != "AUDIT" && selects(&w.objects[j], labels) {
					enforcing[name]++
				}
			}
		}
	}
	if err := p.write(t.Context(), objects); err != nil {
		t.Fatal(err)
	}
	if err := p.createPods(t.Context(), pods); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(p.clear(t.Context()), p.deletePods(t.Context())); err != nil {
			t.Fatal(err)
		}
	}()
	state, err := p.untilAmbient(t.Context(), enforcing)
	if err != nil {
		t.Fatal(err)
	}
	do(state)
}

// runAmbient is run with pods that ztunnel protects.
func runAmbient(t *testing.T, p *controlPlane, all []*world, out *tally) (disagreement string) {
	t.Helper()
	inAmbient(t, p, all, func(state map[string]connectionPolicies) {
		for _, w := range all {
			out.worlds, out.objects = out.worlds+1, out.objects+len(w.objects)
			for i, labels := range w.generator.Destinations() {
				var err error
				if disagreement, err = w.compare(labels, state[podName(w, i)], connections, out); err != nil {
					t.Fatal(err)
				}
				if disagreement != "" {
					return
				}
			}
		}
	})
	return disagreement
}

func podName(w *world, i int) string { return fmt.Sprintf("pod-%d-%d", w.seed, i) }

// selects reports whether a policy selects pods with these labels.
func selects(o *enforcer.Object, labels map[string]string) bool {
	matched, has, err := unstructured.NestedStringMap(o.Spec, "selector", "matchLabels")
	for k, v := range matched {
		if labels[k] != v {
			return false
		}
	}
	return err == nil && has
}

// TestZtunnelAgrees compares the decisions of random worlds in ambient with what istiod sends to ztunnel.
func TestZtunnelAgrees(t *testing.T) {
	p := startControlPlane(t)
	out := newTally()
	n := max(1, *worlds/2)
	for from := *firstSeed; from < *firstSeed+n; from += batch {
		all := newWorlds(t, []string{ambient}, from, min(batch, *firstSeed+n-from), nil)
		if disagreement := runAmbient(t, p, all, out); disagreement != "" {
			t.Fatal(disagreement)
		}
	}
	t.Logf("%d decisions in %d worlds with %d policies, %d as written, %d changed by what is left out: %v",
		out.decisions, out.worlds, out.objects, out.exact, out.differs, out.verdicts)
	if *worlds < 600 {
		return
	}
	if out.decisions < leastDecisions/3 || out.exact < leastDecisions/16 || out.differs < leastDecisions/300 {
		t.Error("too few decisions were compared")
	}
	checkVerdicts(t, out, leastDecisions/400)
	checkPairs(t, "ztunnel", out.met, istiotest.Ztunnel)
}

// dropRefused removes the policies that istiod's webhook refuses, as the API server would, so that the comparison has to detect a mistake by
// the others.
func dropRefused(t *testing.T, p *controlPlane, all []*world) {
	t.Helper()
	for _, w := range all {
		w.objects = slices.DeleteFunc(w.objects, func(o enforcer.Object) bool {
			err := p.validate(t.Context(), policyObject(&o))
			if err != nil && !strings.Contains(err.Error(), refusedByWebhook) {
				t.Fatal(err)
			}
			return err != nil
		})
	}
}

// TestMutantsAreDetected checks that the comparison detects each deliberate mistake of the translation.
func TestMutantsAreDetected(t *testing.T) {
	p := startControlPlane(t)
	p.warnings.ignored = true
	mutants := istiotest.Mutants()
	for _, name := range slices.Sorted(maps.Keys(mutants)) {
		t.Run(name, func(t *testing.T) {
			for from := uint64(0); from < 600; from += 60 {
				all := newWorlds(t, members, from, 60, mutants[name])
				dropRefused(t, p, all)
				if disagreement := run(t, p, all, newTally()); disagreement != "" {
					t.Log(disagreement)
					return
				}
			}
			t.Error("not detected")
		})
	}
}

// notForZtunnel are the mistakes that cannot be in what is rendered for ztunnel, with the reason.
var notForZtunnel = map[string]string{
	"AnyMethod": "nothing about requests is rendered for ztunnel",
	"AnyPath":   "nothing about requests is rendered for ztunnel",
}

// TestMutantsAreDetectedInAmbient checks that the comparison with ztunnel detects each deliberate mistake of the translation that can be in it.
func TestMutantsAreDetectedInAmbient(t *testing.T) {
	p := startControlPlane(t)
	p.warnings.ignored = true
	mutants := istiotest.Mutants()
	for _, name := range slices.Sorted(maps.Keys(mutants)) {
		if notForZtunnel[name] != "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			for from := uint64(0); from < 300; from += 30 {
				all := newWorlds(t, []string{ambient}, from, 30, mutants[name])
				dropRefused(t, p, all)
				if disagreement := runAmbient(t, p, all, newTally()); disagreement != "" {
					t.Log(disagreement)
					return
				}
			}
			t.Error("not detected")
		})
	}
}

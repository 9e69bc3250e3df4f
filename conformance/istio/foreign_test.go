package istio

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/istiotest"
	"github.com/acp-io/acp/internal/federation"
)

const (
	// foreignBatch is the number of worlds with policies of others that are in the API server at the same time, each with a namespace of its own.
	foreignBatch  = 50
	foreignWorlds = 150
)

// namespaceOf returns the namespace of the pods of a world in a batch.
func namespaceOf(i int) string { return fmt.Sprint("others-", i) }

// sidecarsOf returns what istiod sends to the sidecars of the pods of a world.
func (w *foreignWorld) sidecarsOf(t *testing.T, p *controlPlane) []*sidecar {
	t.Helper()
	var out []*sidecar
	for _, labels := range w.pods {
		l, err := inboundOf(t.Context(), p.istiod, w.in, labels)
		if err != nil {
			t.Fatal(err)
		}
		s, err := read(l)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

// recordOpened records which connections pass only because of the policies of others, which evaluates each with both configurations of the sidecars. It
// returns the number of connections.
func (w *foreignWorld) recordOpened(t *testing.T, before, after []*sidecar) int {
	t.Helper()
	n := 0
	for i, labels := range w.pods {
		for _, x := range w.traffic() {
			n++
			was, err := before[i].passes(x)
			if err != nil {
				t.Fatalf("seed %d: %v", w.seed, err)
			}
			is, err := after[i].passes(x)
			if err != nil {
				t.Fatalf("seed %d: %v", w.seed, err)
			}
			if !was && is {
				for k, v := range labels {
					w.opened[federation.Label{Key: k, Value: v}] = fmt.Sprintf("%+v", x)
				}
			}
		}
	}
	return n
}

// newForeignWorlds generates worlds with policies of others, and lets istiod translate them with and without these. It returns the number of
// connections that were evaluated.
func newForeignWorlds(t *testing.T, p *controlPlane, from, n uint64) (all []*foreignWorld, connections int) {
	t.Helper()
	namespaces := []string{rootNamespace, elsewhere}
	p.createNamespaces(t, elsewhere)
	for i := range foreignBatch {
		namespaces = append(namespaces, namespaceOf(i))
		p.createNamespaces(t, namespaceOf(i))
	}
	for start := from; start < from+n; start += foreignBatch {
		var worlds []*foreignWorld
		var objects []enforcer.Object
		for i := range min(foreignBatch, from+n-start) {
			w, err := newForeignWorld(start+i, namespaceOf(int(i))) //nolint:gosec // small
			if err != nil {
				t.Fatal(err)
			}
			worlds, objects = append(worlds, w), append(objects, w.objects...)
		}
		if err := p.write(t.Context(), objects); err != nil {
			t.Fatal(err)
		}
		before := make([][]*sidecar, len(worlds))
		for i, w := range worlds {
			before[i] = w.sidecarsOf(t, p)
			w.create(t, p)
		}
		if err := p.untilPushed(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, w := range worlds {
			connections += w.recordOpened(t, before[i], w.sidecarsOf(t, p))
		}
		if err := p.clearIn(t.Context(), namespaces...); err != nil {
			t.Fatal(err)
		}
		all = append(all, worlds...)
	}
	return all, connections
}

// create creates the policies of others, without those that istiod's webhook refuses.
func (w *foreignWorld) create(t *testing.T, p *controlPlane) {
	t.Helper()
	w.foreign = slices.DeleteFunc(w.foreign, func(u *unstructured.Unstructured) bool {
		err := p.client.Create(t.Context(), u.DeepCopy())
		if err != nil && !strings.Contains(err.Error(), refusedByWebhook) {
			t.Fatalf("seed %d: %v", w.seed, err)
		}
		return err != nil
	})
}

// TestForeignPolicies checks that the adapter reports every resource that policies of others open in istiod's translation, and how often it
// reports one that they do not open; and that it notices every mistake of a detector.
func TestForeignPolicies(t *testing.T) {
	p := startControlPlane(t)
	p.warnings.ignored = true // istiod warns of policies that have no effect
	all, connections := newForeignWorlds(t, p, *firstSeed, min(foreignWorlds, max(1, *worlds/2)))
	opened, closed, over, overWithout, policies := 0, 0, 0, 0, 0
	for _, w := range all {
		policies += len(w.foreign)
		reported, err := detection{}.opens(w)
		if err != nil {
			t.Fatal(err)
		}
		unsure, err := detection{withoutIdentities: true}.opens(w)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range w.labels() {
			by, without := reported(l), unsure(l)
			switch example := w.opened[l]; {
			case example != "" && (by == "" || without == ""):
				t.Errorf("seed %d: %s=%s is opened and reported by %q, without identities by %q: %s\n%s",
					w.seed, l.Key, l.Value, by, without, example, w.text(t))
			case example != "":
				opened++
			default:
				closed++
				over += map[bool]int{true: 1}[by != ""]
				overWithout += map[bool]int{true: 1}[without != ""]
			}
		}
	}
	t.Logf("%d connections in %d worlds with %d policies of others: %d labels opened, %d not; %d reported without need, %d without identities",
		connections, len(all), policies, opened, closed, over, overWithout)
	if len(all) < foreignWorlds {
		return
	}
	if opened < len(all)/3 || closed < len(all)/3 {
		t.Error("too few worlds are of one kind")
	}
	if over > closed/mostOver {
		t.Error("too many labels are reported without need")
	}
	for _, name := range slices.Sorted(maps.Keys(faultyDetections())) {
		t.Run(name, func(t *testing.T) { noticed(t, all, faultyDetections()[name], strings.HasPrefix(name, "Over")) })
	}
}

// mostOver is the smallest share of labels that are not opened to those that are reported all the same: what several rules let in only together, what
// ACP denies, and rules that match nobody count as more.
const mostOver = 5

// text returns the policies of a world.
func (w *foreignWorld) text(t *testing.T) string {
	t.Helper()
	var out []string
	for _, u := range w.foreign {
		text, err := yaml.Marshal(u)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(text))
	}
	for i := range w.objects {
		text, err := yaml.Marshal(w.objects[i].Spec)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, "# ACP\n"+string(text))
	}
	return strings.Join(out, "---\n")
}

// noticed fails unless the mistake of a detector is noticed: a label that is opened and not reported or, if it reports too much, one that is reported
// only because of the mistake.
func noticed(t *testing.T, all []*foreignWorld, faulty detection, over bool) {
	t.Helper()
	for _, w := range all {
		right, err := detection{}.opens(w)
		if err != nil {
			t.Fatal(err)
		}
		wrong, err := faulty.opens(w)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range w.labels() {
			opened := w.opened[l] != ""
			if over && !opened && right(l) == "" && wrong(l) != "" || !over && opened && wrong(l) == "" {
				t.Logf("noticed in the world of seed %d", w.seed)
				return
			}
		}
	}
	t.Error("not noticed")
}

// faultyDetections returns detectors with one mistake each. The names of those that report too much begin with Over.
func faultyDetections() map[string]detection {
	mutants := istiotest.Mutants()
	foreign := func(change func(u *unstructured.Unstructured, spec map[string]any) bool) detection {
		return detection{foreign: func(u *unstructured.Unstructured) *unstructured.Unstructured {
			spec, _ := u.Object["spec"].(map[string]any)
			if !change(u, spec) {
				return nil
			}
			return u
		}}
	}
	return map[string]detection{
		"OnlyRootNamespace":    foreign(func(u *unstructured.Unstructured, _ map[string]any) bool { return u.GetNamespace() == rootNamespace }),
		"OnlyWithSelector":     foreign(func(_ *unstructured.Unstructured, spec map[string]any) bool { return spec["selector"] != nil }),
		"OnlyWithAction":       foreign(func(_ *unstructured.Unstructured, spec map[string]any) bool { return spec["action"] != nil }),
		"OwnWithoutFrom":       {own: mutants["NoFrom"]},
		"OwnWithoutTo":         {own: mutants["NoTo"]},
		"OwnOnAnyPort":         {own: mutants["AnyPort"]},
		"OwnWithAnyMethod":     {own: mutants["AnyMethod"]},
		"OwnWithAnyPath":       {own: mutants["AnyPath"]},
		"OwnRangesMatchPods":   {own: mutants["RangesMatchPods"]},
		"OwnWholeRanges":       {own: mutants["LongerRangesCount"]},
		"OwnNobodyIsEverybody": {own: mutants["NobodyIsEverybody"]},
		"OverWithoutOwn":       {own: func(map[string]any) map[string]any { return nil }},
		"OverOneAccount":       {own: mutants["OneAccount"]},
		"OverDenies": foreign(func(_ *unstructured.Unstructured, spec map[string]any) bool {
			if spec["action"] == "DENY" {
				spec["action"] = "ALLOW"
			}
			return true
		}),
		"OverDryRuns":   foreign(func(u *unstructured.Unstructured, _ map[string]any) bool { u.SetAnnotations(nil); return true }),
		"OverSelectors": foreign(func(_ *unstructured.Unstructured, spec map[string]any) bool { delete(spec, "selector"); return true }),
		"OverNamespaces": foreign(func(u *unstructured.Unstructured, _ map[string]any) bool {
			u.SetNamespace(rootNamespace)
			return true
		}),
	}
}

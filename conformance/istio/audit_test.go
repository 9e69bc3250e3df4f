package istio

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/istio"
	"github.com/acp-io/acp/internal/enforcer/istiotest"
	"github.com/acp-io/acp/internal/policy"
)

// reported returns what Envoy reports about traffic that the filters of a proxy in Audit let through: access_log_hint is that of the filter with
// the action LOG, and for requests, enforced_effective_policy_id is the first policy that matches, in the order of their names. Anything but
// one filter with the action LOG is an error.
func reported(filters []*rbacv3.RBAC, t istiotest.Traffic) (istio.AuditResult, error) {
	if len(filters) != 1 || filters[0].GetAction() != rbacv3.RBAC_LOG {
		return istio.AuditResult{}, fmt.Errorf("the filters are not one with the action LOG: %v", filters)
	}
	policies := filters[0].GetPolicies()
	for _, name := range slices.Sorted(maps.Keys(policies)) {
		matched, err := matches(policies[name], t)
		if err != nil {
			return istio.AuditResult{}, fmt.Errorf("policy %s: %w", name, err)
		}
		if matched && t.Method == "" {
			return istio.AuditResult{Matched: true}, nil
		}
		if matched {
			return istio.AuditResult{Matched: true, Rule: name}, nil
		}
	}
	return istio.AuditResult{}, nil
}

// auditTally counts what AUDIT policies report.
type auditTally struct {
	// missed and denied count what is shown to be refused, by no match and by the match of a deny. passing counts matches of traffic that would
	// pass, and unknown those of traffic that would be refused.
	missed, denied, passing, unknown int
}

// auditWorld is a world with all resources in Audit, and its policies with all of them in Enforce.
type auditWorld struct {
	*world
	enforced *policy.Snapshot
	// complete reports whether no statement is missing in the policies of either mode.
	complete bool
}

func newAuditWorlds(t *testing.T, from, n uint64, mutant func(map[string]any) map[string]any) []auditWorld {
	t.Helper()
	var out []auditWorld
	for seed := from; seed < from+n; seed++ {
		w := &world{seed: seed, generator: istiotest.NewGenerator(seed, 11), plain: seed%4 != 0, member: members[seed%uint64(len(members))],
			capabilities: istiotest.Capabilities}
		w.generator.Suffix = fmt.Sprint("-", seed)
		random := w.generator.World(w.plain)
		inForce := *w
		if err := errors.Join(w.render(inMode(random, v1alpha1.ModeAudit), mutant), inForce.render(inMode(random, v1alpha1.ModeEnforce), nil)); err != nil {
			t.Fatal(err)
		}
		out = append(out, auditWorld{w, inForce.s, !w.refused && !inForce.refused})
	}
	return out
}

// compareAudit compares what AUDIT policies report about connections to a pod with the decisions in Enforce. It returns the first
// contradiction: something that is shown to be refused and would pass, or that is not shown although nothing hides it.
func (w *auditWorld) compareAudit(labels map[string]string, p *sidecar, out *auditTally) (string, error) {
	for range connections {
		x := w.generator.Connection(w.enforced, labels, w.member)
		if x.Unmeshed { // It has a name in the statements only.
			continue
		}
		filters := p.tcp
		if x.Traffic.Method != "" {
			filters = p.http
		}
		result, err := reported(filters, x.Traffic)
		if err != nil {
			return "", fmt.Errorf("world of seed %d, %v: %w", w.seed, labels, err)
		}
		audited := slices.DeleteFunc(slices.Clone(x.Query.Resources), func(r string) bool {
			return w.s.EffectiveMode(r, w.member, x.Query.At) != v1alpha1.ModeAudit
		})
		passes, shown := w.enforced.DecideEffective(&x.Query).Verdict.LetsThrough(), result.WouldRefuse(audited)
		// Of a request to a pod of one resource, a deny that matches is reported rather than an allow, because its name comes first.
		conclusive := !result.Matched || x.Traffic.Method != "" && len(x.Query.Resources) == 1 && w.complete
		switch {
		case shown && passes, !shown && !passes && conclusive:
			return fmt.Sprintf("seed %d in %s: %+v shows that it would be refused: %v; it would pass: %v: %+v to %v",
				w.seed, w.member, result, shown, passes, x, labels), nil
		case shown && !result.Matched:
			out.missed++
		case shown:
			out.denied++
		case passes:
			out.passing++
		default:
			out.unknown++
		}
	}
	return "", nil
}

// runAudit writes the worlds, compares them, and deletes them. It returns the first contradiction.
func runAudit(t *testing.T, p *controlPlane, all []auditWorld, out *auditTally) string {
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
	for _, w := range all {
		for _, labels := range w.generator.Destinations() {
			if !slices.ContainsFunc(w.objects, func(o enforcer.Object) bool { return selects(&o, labels) }) {
				continue // None of its resources is in Audit.
			}
			proxy, err := sidecarOf(t.Context(), p.istiod, labels)
			if err != nil {
				t.Fatal(err)
			}
			contradiction, err := w.compareAudit(labels, proxy, out)
			if err != nil {
				t.Fatal(err)
			}
			if contradiction != "" {
				return contradiction
			}
		}
	}
	return ""
}

// TestAuditShowsWhatEnforceRefuses checks that istiod translates the policies of resources in Audit to one filter with the action LOG, and that
// what Envoy reports about it shows only what would be refused in Enforce.
func TestAuditShowsWhatEnforceRefuses(t *testing.T) {
	p := startControlPlane(t)
	var out auditTally
	n := max(1, *worlds/4)
	for from := *firstSeed; from < *firstSeed+n; from += batch {
		if contradiction := runAudit(t, p, newAuditWorlds(t, from, min(batch, *firstSeed+n-from), nil), &out); contradiction != "" {
			t.Fatal(contradiction)
		}
	}
	t.Logf("shown to be refused: %d by no match, %d by the match of a deny; matches: %d would pass, %d would be refused",
		out.missed, out.denied, out.passing, out.unknown)
	if *worlds >= 600 && (out.missed < 2000 || out.denied < 200 || out.passing < 1000 || out.unknown < 100) {
		t.Error("too few results were compared")
	}
}

// TestFaultyAuditIsDetected checks that the comparison detects policies that report too little or too much.
func TestFaultyAuditIsDetected(t *testing.T) {
	p := startControlPlane(t)
	for name, mutant := range map[string]func(map[string]any) map[string]any{
		"LacksRules": func(spec map[string]any) map[string]any {
			spec = maps.Clone(spec)
			delete(spec, "rules")
			return spec
		},
		"MatchesAll": func(spec map[string]any) map[string]any {
			spec = maps.Clone(spec)
			spec["rules"] = []any{map[string]any{}}
			return spec
		},
	} {
		t.Run(name, func(t *testing.T) {
			if contradiction := runAudit(t, p, newAuditWorlds(t, 0, 20, mutant), &auditTally{}); contradiction == "" {
				t.Error("not detected")
			} else {
				t.Log(contradiction)
			}
		})
	}
}

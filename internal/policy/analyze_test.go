package policy

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/norace"
)

func TestAnalyze(t *testing.T) {
	finding := func(kind FindingKind, sid string, others ...string) Finding {
		f := Finding{Kind: kind, Ref: Ref{"p-" + sid, sid}}
		for _, o := range others {
			f.Other = append(f.Other, Ref{"p-" + o, o})
		}
		return f
	}
	cases := map[string]struct {
		reason string
		world  []any
		want   []Finding
	}{
		"Nothing": {
			reason: "different grants",
			world: []any{
				statementOf("a", Allow, app888, "redis:connect", bobs),
				statementOf("b", Allow, app889, "redis:connect", bobs),
				statementOf("c", Allow, app888, "redis:admin", bobs),
				statementOf("d", Allow, app888, "redis:connect", orders),
			},
		},
		"Twice": {
			reason: "of two that say the same one is redundant",
			world:  []any{statementOf("a", Allow, app888, "redis:connect", bobs), statementOf("b", Allow, app888, "redis:connect", bobs)},
			want:   []Finding{finding(Redundant, "b", "a")},
		},
		"Wider": {
			reason: "a wider one makes the narrower redundant, whatever their order",
			world:  []any{statementOf("a", Allow, app888, "redis:connect", bobs), statementOf("b", Allow, appHead+"app/*", "redis:*", allRedis)},
			want:   []Finding{finding(Redundant, "a", "b")},
		},
		"Together": {
			reason: "several may say it together",
			world: []any{
				statementOf("a", Allow, app888, "redis:connect", bobs),
				statementOf("b", Allow, app888, "redis:admin", bobs),
				statementOf("c", Allow, app888, "redis:*", bobs),
			},
			want: []Finding{finding(Redundant, "c", "a", "b")},
		},
		"Partly": {
			reason: "not if one subject is not said by others",
			world:  []any{statementOf("a", Allow, app888, "redis:connect", bobs), statementOf("b", Allow, app888, "redis:connect", bobs, alsoSubjects(app889))},
			want:   []Finding{finding(Redundant, "a", "b")},
		},
		"Sooner": {
			reason: "not by one that ends sooner",
			world:  []any{statementOf("a", Allow, app888, "redis:connect", bobs), statementOf("b", Allow, "*", "redis:connect", bobs, until(hours(1)))},
		},
		"NotYet": {
			reason: "nor by one that has not begun",
			world:  []any{statementOf("a", Allow, app888, "redis:connect", bobs), statementOf("b", Allow, "*", "redis:connect", bobs, from(hours(1)))},
		},
		"Refused": {
			reason: "nor by one that is refused",
			world: []any{
				statementOf("a", Allow, app888, "redis:connect", bobs),
				statementOf("b", Allow, app888, "redis:connect", bobs, alsoSubjects(userBob)),
			},
		},
		"Deny": {
			reason: "denies may be redundant, too",
			world:  []any{statementOf("a", Deny, app888, "redis:connect", bobs), statementOf("b", Deny, "*", "redis:connect", allRedis)},
			want:   []Finding{finding(Redundant, "a", "b")},
		},
		"Shadowed": {
			reason: "an allow of which a deny takes away everything",
			world:  []any{statementOf("a", Allow, app888, "redis:connect", bobs), statementOf("d", Deny, appHead+"app/*", "redis:*", allRedis)},
			want:   []Finding{finding(Shadowed, "a", "d")},
		},
		"Part": {
			reason: "an allow of which a deny takes away a part",
			world:  []any{statementOf("a", Allow, app888, "redis:*", bobs), statementOf("d", Deny, "*", "redis:admin", allRedis)},
			want:   []Finding{finding(Contradictory, "a", "d")},
		},
		"PartWild": {
			reason: "also of a wildcard",
			world:  []any{statementOf("a", Allow, appHead+"app/*", "redis:*", allRedis), statementOf("d", Deny, app888, "redis:admin", bobs)},
			want:   []Finding{finding(Contradictory, "a", "d")},
		},
		"Ranges": {
			reason: "ranges within ranges",
			world: []any{
				statementOf("a", Allow, cidrHead+"10.0.0.0/8", "redis:connect", bobs),
				statementOf("b", Allow, cidrHead+"10.5.0.0/24", "redis:connect", bobs),
				statementOf("d", Deny, cidrHead+"10.5.0.0/16", "redis:connect", orders),
			},
			want: []Finding{finding(Redundant, "b", "a")},
		},
		"Unrelated": {
			reason: "a range is no name",
			world:  []any{statementOf("a", Allow, app888, "redis:connect", bobs), statementOf("d", Deny, cidrHead+"0.0.0.0/0", "redis:connect", bobs)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := NewSnapshot(world(tc.world...)).Analyze(noon)
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(Finding{}, "Example", "Message")); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			for _, f := range got {
				if f.Message.IsZero() || len(f.Example.Resources) != 1 || f.Example.Port == 0 {
					t.Errorf("%s: %+v shows nothing", tc.reason, f)
				}
			}
		})
	}
}

// drop is the world without a statement.
func drop(in Input, ref Ref) Input {
	in.Policies = slices.Clone(in.Policies)
	for i, p := range in.Policies {
		if p.Name == ref.Policy {
			p = p.DeepCopy()
			p.Spec.Statements = slices.DeleteFunc(p.Spec.Statements, func(st v1alpha1.Statement) bool { return st.SID == ref.SID })
			in.Policies[i] = p
		}
	}
	return in
}

// TestFindingsAreTrue checks that the removal of a redundant or shadowed statement changes no decision while everything is enforced, and
// that the example of each finding demonstrates it.
func TestFindingsAreTrue(t *testing.T) {
	norace.SkipUnderRace(t)
	seen := map[FindingKind]int{}
	for seed := range uint64(4000) {
		d := dice{rand.New(rand.NewPCG(seed, 9))}
		in := d.world()
		in.Resources = nil
		for _, r := range []string{bobs, orders, redisHead + "bobs-2", shop, webHead + "blog", redisHead + exampleID, webHead + exampleID} {
			in.Resources = append(in.Resources, protect(r, v1alpha1.ModeEnforce))
		}
		s := NewSnapshot(in)
		for _, f := range s.Analyze(noon) {
			seen[f.Kind]++
			if word := s.Decide(f.Example).Verdict; f.Kind != Redundant && word != Denied {
				t.Fatalf("seed %d: the example of %+v is %s", seed, f, word)
			}
			if f.Kind == Contradictory {
				continue
			}
			without := NewSnapshot(drop(in, f.Ref))
			for range 20 {
				q := d.query()
				q.At = noon
				if before, after := s.Decide(q).Verdict, without.Decide(q).Verdict; before != after {
					t.Fatalf("seed %d: without %s statement %s, %+v is %s and was %s", seed, f.Kind, f.Ref, q, after, before)
				}
			}
		}
	}
	for _, kind := range []FindingKind{Shadowed, Redundant, Contradictory} {
		if seen[kind] < 30 {
			t.Errorf("only %d findings are %s: too few to notice a mistake", seen[kind], kind)
		}
	}
}

func TestCompare(t *testing.T) {
	// A change without what led to it.
	type told struct {
		Subject, Resource, Action, Cluster string
		Before, After                      Verdict
	}
	enforced := []any{protect(bobs, v1alpha1.ModeEnforce), statementOf("a", Allow, app888, "redis:connect", bobs)}
	audited := []any{protect(bobs, v1alpha1.ModeAudit), enforced[1]}
	with := func(more ...any) []any { return append(slices.Clone(enforced), more...) }
	connect := func(subject string, before, after Verdict) told {
		return told{subject, bobs, "redis:connect", "", before, after}
	}
	for name, tc := range map[string]struct {
		reason   string
		old, new []any
		want     []told
	}{
		"Nothing": {reason: "the same objects", old: enforced, new: enforced},
		"Grant": {
			reason: "a grant", old: enforced, new: with(statementOf("b", Allow, app889, "redis:connect", bobs)),
			want: []told{connect(app889, DefaultDenied, Allowed)},
		},
		"Revoked": {reason: "a revocation", old: enforced, new: enforced[:1], want: []told{connect(app888, Allowed, DefaultDenied)}},
		"Denied": {reason: "a wildcard deny", old: enforced, new: with(statementOf("d", Deny, appHead+"app/*", "redis:connect", allRedis)),
			want: []told{connect(appHead+"app/*", DefaultDenied, Denied), connect(app888, Allowed, Denied)}},
		"Wildcard": {reason: "a wildcard allow, also on unnamed ones", old: enforced, new: with(statementOf("w", Allow, app889, "redis:connect", allRedis)),
			want: []told{{app889, allRedis, "redis:connect", "", Unmanaged, Allowed}, connect(app889, DefaultDenied, Allowed)}},
		"Same": {reason: "the same said otherwise", old: enforced, new: []any{enforced[0], statementOf("z", Allow, app888, "redis:connect", bobs)}},
		"Enforced": {reason: "a mode, at every port", old: audited, new: enforced, want: []told{
			{app888, bobs, "redis:admin", "", Audited, DefaultDenied}, {"*", bobs, "redis:admin", "", Audited, DefaultDenied},
			connect("*", Audited, DefaultDenied), {app888, bobs, "", "", Audited, DefaultDenied}, {"*", bobs, "", "", Audited, DefaultDenied}}},
		"Member": {reason: "a member's own mode is reported separately, where it differs", old: enforced,
			new: []any{protect(bobs, v1alpha1.ModeEnforce, in("m1", v1alpha1.ModeAudit)), enforced[1]}, want: []told{
				{app888, bobs, "redis:admin", "m1", DefaultDenied, Audited}, {"*", bobs, "redis:admin", "m1", DefaultDenied, Audited},
				{"*", bobs, "redis:connect", "m1", DefaultDenied, Audited},
				{app888, bobs, "", "m1", DefaultDenied, Audited}, {"*", bobs, "", "m1", DefaultDenied, Audited}}},
		"Range": {
			reason: "addresses", old: enforced, new: with(statementOf("b", Allow, cidrHead+"10.5.0.0/24", "redis:connect", bobs)),
			want: []told{connect("10.5.0.0/24", DefaultDenied, Allowed)},
		},
		"Moved": {reason: "an address that acts as another subject", old: with(workload("w", app889, "10.9.0.1")), new: with(workload("w", app888, "10.9.0.1")),
			want: []told{connect("10.9.0.1", DefaultDenied, Allowed)}},
	} {
		t.Run(name, func(t *testing.T) {
			old := NewSnapshot(world(tc.old...))
			for way, next := range map[string]*Snapshot{"apart": NewSnapshot(world(tc.new...)), "next": old.Next(world(tc.new...))} {
				var got []told
				for _, c := range Compare(old, next, noon) {
					got = append(got, told{c.Subject, c.Resource, c.Action, c.Cluster, c.Before.Verdict, c.After.Verdict})
					if before, after := old.Decide(c.Example).Verdict, next.Decide(c.Example).Verdict; before != c.Before.Verdict || after != c.After.Verdict {
						t.Errorf("%s, %s: the example of %+v was %s and is %s", tc.reason, way, c, before, after)
					}
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s, %s: -want +got:\n%s", tc.reason, way, diff)
				}
			}
		})
	}
}

// Every pod's connection that becomes possible or impossible is reported, by its name or by a wider one.
func TestCompareMissesNothing(t *testing.T) {
	told := 0
	for seed := range uint64(300) {
		d := dice{rand.New(rand.NewPCG(seed, 10))}
		in := d.world()
		old := NewSnapshot(in)
		if seed%2 == 0 {
			in.Policies = append(slices.Clone(in.Policies), acp("new", d.statement("s", []string{bobs, shop})))
		} else {
			in.Resources = append(slices.Clone(in.Resources), protect(bobs, v1alpha1.ModeEnforce, as("new")))
		}
		new := old.Next(in)
		changes := Compare(old, new, noon)
		for _, subject := range []string{app888, app889, teamApp, cart} {
			for _, resource := range []string{bobs, orders, shop} {
				c, _ := new.resources.of(resource)
				for i := range c.actions {
					q := new.example(pattern{text: subject}, pattern{text: resource}, &c.actions[i], c, noon)
					if old.Decide(q).Verdict.LetsThrough() == new.Decide(q).Verdict.LetsThrough() {
						continue
					}
					told++
					if !slices.ContainsFunc(changes, func(ch Change) bool {
						return ch.Resource == resource && ch.Action == c.actions[i].name && (ch.Subject == anyone || nameCovers(ch.Subject, subject))
					}) {
						t.Fatalf(
							"seed %d: %s to %s %s is %s and was %s, and not in %+v",
							seed,
							subject,
							resource,
							c.actions[i].name,
							new.Decide(q).Verdict,
							old.Decide(q).Verdict,
							changes,
						)
					}
				}
			}
		}
	}
	if told < 200 {
		t.Errorf("only %d connections changed: too few to notice a mistake", told)
	}
}

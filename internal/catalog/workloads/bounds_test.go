package workloads_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/acp-io/acp/internal/catalog/workloads"
	"github.com/acp-io/acp/internal/enforcer/cilium"
	"github.com/acp-io/acp/internal/policy"
)

// networks returns workloads of one application with a /24 each.
func networks(from string, n int) []workloads.Workload {
	at := netip.MustParseAddr(from).As4()
	out := make([]workloads.Workload, n)
	for i := range out {
		p := netip.PrefixFrom(netip.AddrFrom4([4]byte{at[0], at[1] + byte(i>>8), byte(i), 0}), 24)
		out[i] = vm(fmt.Sprintf("net-%s-%d", strings.ReplaceAll(from, ".", "-"), i), app1, p.String())
	}
	return out
}

func created(results []workloads.Result) (n int) {
	for _, r := range results {
		if r.Outcome == workloads.Created {
			n++
		}
	}
	return n
}

// TestOwnersRegisterABoundedNumberOfAddresses checks the bound in one call and over several calls: owners register for
// their application without anybody's approval.
func TestOwnersRegisterABoundedNumberOfAddresses(t *testing.T) {
	w := newWorld(t)
	got := w.put(alice, "", networks("11.0.0.0", 1000)...)
	if created(got) != workloads.DefaultAddresses/256 {
		t.Errorf("alice registered %d times 256 addresses", created(got))
	}
	if why := got[999].Message.Text; !strings.Contains(why, "its owners may register 1024 without approval: ask the owners of the resources") {
		t.Errorf("the message does not say what to do: %q", why)
	}
	if got := w.put(alice, "", vm("one-more", app1, "12.0.0.1")); created(got) != 0 {
		t.Error("nor in the next call")
	}
	if got := w.put(alice, "", vm("six", app1, "2001:db8::/64")); created(got) != 0 {
		t.Error("nor in IPv6")
	}
	if got := outcomes(w.put(alice, "", vm("net-11-0-0-0-0", app1, "11.0.0.0/28"))); got != "changed" {
		t.Errorf("less is always possible: %s", got)
	}
	if got := w.put(alice, "", vm("six", app1, "2001:db8::/122")); created(got) != 1 {
		t.Errorf("and makes room: %+v", got)
	}
	if got := w.put(platform, "vms", networks("13.0.0.0", 100)...); created(got) != 100 {
		t.Errorf("the security team registers more, as a platform's: %+v", got[99])
	}
	if got := w.put(workloads.Actor{ID: "alice", Security: true}, "", vm("her-own", app1, "14.0.0.1")); created(got) != 0 {
		t.Error("but not as the owner of the application")
	}
}

// TestNewAddressesBeyondTheBoundNeedApproval checks that owners of an application with more addresses than they may register cannot replace the
// addresses of their own workloads: others approved those addresses, or a platform registered them.
func TestNewAddressesBeyondTheBoundNeedApproval(t *testing.T) {
	const approval = "needs approval"
	for name, tc := range map[string]struct {
		reason    string
		addresses []string
		want      string
	}{
		"others":              {"nobody approved them", []string{"14.0.1.1", "14.0.1.2"}, approval},
		"another one":         {"one of the two is new", []string{"14.0.0.1", "14.0.1.2"}, approval},
		"fewer, and another":  {"fewer does not mean the same", []string{"14.0.1.1"}, approval},
		"around the same":     {"a range has more than its parts", []string{"14.0.0.0/30"}, approval},
		"fewer":               {"a removal needs no approval", []string{"14.0.0.2"}, "changed"},
		"the same":            {"the description changes", []string{"14.0.0.1", "14.0.0.2"}, "changed"},
		"of another workload": {"the application has it", []string{"14.0.0.1", "14.0.9.1"}, "changed"},
		"of a platform":       {"the application has it, as a part of a range", []string{"14.0.0.1", "13.0.3.7"}, "changed"},
		"a part of a range":   {"the application has it", []string{"14.0.0.1", "13.0.3.0/32"}, "changed"},
		"another's":           {"it is another application's range", []string{"14.0.0.1", "15.0.0.9"}, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.put(alice, "", vm("mine", app1, "14.0.0.1", "14.0.0.2"), vm("mine-too", app1, "14.0.9.1"))
			w.put(platform, "vms", networks("13.0.0.0", 8)...)
			w.put(platform, "vms", vm("theirs", app2, "15.0.0.0/24"))
			in := vm("mine", app1, tc.addresses...)
			in.Description = "renamed"
			result := w.put(alice, "", in)[0]
			got := string(result.Outcome)
			if result.NeedsApproval {
				got = approval
			}
			if got != tc.want {
				t.Errorf("%s: %s, want %s: %s", tc.reason, got, tc.want, result.Message.Text)
			}
		})
	}

	t.Run("within the bound", func(t *testing.T) {
		w := newWorld(t)
		w.put(alice, "", vm("mine", app1, "14.0.0.1", "14.0.0.2"))
		w.put(platform, "vms", networks("13.0.0.0", 3)...)
		if got := outcomes(w.put(alice, "", vm("mine", app1, "14.0.1.1", "14.0.1.2"))); got != "changed" {
			t.Errorf("owners register so many without approval, and so they replace them: %s", got)
		}
	})
	t.Run("a call that was not seen", func(t *testing.T) {
		w := newWorld(t)
		w.put(platform, "vms", networks("13.0.0.0", 3)...)
		w.Cluster = unseen{}
		mine := vm("mine", app1, "14.0.0.1")
		if got := outcomes(w.put(alice, "", mine)); got != "created" {
			t.Fatal(got)
		}
		w.put(platform, "vms", networks("16.0.0.0", 3)...)
		if got := outcomes(w.put(alice, "", mine)); got == "refused" {
			t.Error("a call that is repeated registers nothing new")
		}
	})
}

// TestUnseenRegistrationsCount checks that a call that is written and not yet returned by the watch is counted, so that
// concurrent calls cannot exceed the bound.
func TestUnseenRegistrationsCount(t *testing.T) {
	w := newWorld(t)
	w.Cluster = unseen{}
	if n := created(w.put(alice, "", networks("11.0.0.0", 4)...)); n != 4 {
		t.Fatal(n)
	}
	if n := created(w.put(alice, "", networks("12.0.0.0", 4)...)); n != 0 {
		t.Errorf("%d more networks were registered while the first were not seen", n)
	}
}

// unseen accepts every write, and no watch event follows.
type unseen struct{}

func (unseen) Put(_ context.Context, in []workloads.Workload) []error { return make([]error, len(in)) }
func (unseen) Delete(_ context.Context, in []workloads.Registered) []error {
	return make([]error, len(in))
}

// TestRangesOfGrantedApplicationsNeedTheSecurityTeam checks that owners alone cannot add an address range to an
// application that has access, because the access was approved for its earlier clients.
func TestRangesOfGrantedApplicationsNeedTheSecurityTeam(t *testing.T) {
	w := newWorld(t)
	if n := created(w.put(alice, "", vm("early", app1, "11.0.0.0/28"))); n != 1 {
		t.Fatal("nothing is granted yet")
	}
	w.Granted = func(subject string) (bool, error) { return subject == app1, nil }
	for name, tc := range map[string]struct {
		reason string
		who    workloads.Actor
		in     workloads.Workload
		want   string
	}{
		"a range":    {"nobody of the resource's side looked at it", alice, vm("a", app1, "11.0.1.0/28"), "refused"},
		"an address": {"a machine of its own", alice, vm("b", app1, "11.0.2.1"), "created"},
		"the same range": {
			"it was there", alice,
			workloads.Workload{ID: "early", Subject: app1, Addresses: []string{"11.0.0.0/28"}, Description: "renamed"}, "changed",
		},
		"a platform": {"its token is the security team's", platform, vm("d", app1, "11.0.4.0/28"), "created"},
	} {
		t.Run(name, func(t *testing.T) {
			source := map[bool]string{true: "vms"}[tc.who.Machine]
			if got := outcomes(w.put(tc.who, source, tc.in)); got != tc.want {
				t.Errorf("%s: %s", tc.reason, got)
			}
		})
	}
}

// TestAddressesFitIntoOneObject checks that nobody registers more addresses for an application than its group, which is one object, can hold. An API
// server takes 1.5 MB, which the longest addresses reach long before the number of addresses is too large.
func TestAddressesFitIntoOneObject(t *testing.T) {
	for family, tc := range map[string]struct {
		format string
		count  int
	}{"IPv4": {"203.113.%d.%d", 1 << 16}, "IPv6": {"2001:db80:1111:2222:3333:4444:1%03x:1%03x", 29_000}} {
		t.Run(family, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var all []string
			for i := range tc.count {
				all = append(all, fmt.Sprintf(tc.format, i>>8, i&0xff))
			}
			var in []workloads.Workload
			for some := range slices.Chunk(all, workloads.MaxAddresses) {
				in = append(in, vm(fmt.Sprint("m-", len(in)), app1, some...))
			}
			var fit []netip.Prefix
			var refusal string
			for some := range slices.Chunk(in, workloads.MaxPut) {
				for i, got := range w.put(platform, "vms", some...) {
					if got.Outcome != workloads.Created {
						refusal = got.Message.Text
						continue
					}
					for _, a := range some[i].Addresses {
						at := netip.MustParseAddr(a)
						fit = append(fit, netip.PrefixFrom(at, at.BitLen()))
					}
				}
			}
			if len(fit) == len(all) || !strings.Contains(refusal, "bytes, and may take 1300000") {
				t.Errorf("%d of %d addresses are registered: %s", len(fit), len(all), refusal)
			}
			group, err := cilium.RenderGroup(policy.ExternalGroup{ID: "g", ClassID: "app", Subject: app1, Prefixes: fit})
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(group.Objects[0].Object.Spec)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(text); n < 1_290_000 || n > 1_301_000 {
				t.Errorf("%d addresses take %d bytes", len(fit), n)
			}
			if got := outcomes(w.put(platform, "vms", vm("m-0", app1, all[0]))); got != "changed" {
				t.Errorf("less is always possible: %s", got)
			}
			if got := outcomes(w.put(platform, "vms", vm("more", app1, "13.0.0.0/24"))); got != "created" {
				t.Errorf("and makes room: %s", got)
			}
			if got := outcomes(w.put(platform, "vms", vm("others", app2, "14.0.0.0/24"))); got != "created" {
				t.Errorf("other applications have their own groups: %s", got)
			}
		})
	}
}

// TestProposals checks that an approval can lift only the bounds: who owns the application, whose the addresses
// are and how many there may be at all is not for approvers to decide.
func TestProposals(t *testing.T) {
	w := newWorld(t)
	w.Granted = func(string) (bool, error) { return true, nil }
	if got := w.put(alice, "", vm("range", app1, "11.0.0.0/28"))[0]; !got.NeedsApproval ||
		!strings.Contains(got.Message.Text, "ask the owners of the resources") {
		t.Errorf("a range while access is granted: %+v", got)
	}
	if got := w.put(alice, "", vm("theirs", app2, "11.0.0.1"))[0]; got.Outcome != workloads.Refused || got.NeedsApproval {
		t.Errorf("another's application is not a matter of approval: %+v", got)
	}
	w.put(platform, "vms", vm("two", app2, "11.9.9.9"))
	w.put(platform, "vms", networks("12.0.0.0", 500)...)
	for name, tc := range map[string]struct {
		reason, who string
		in          workloads.Workload
		says        string
	}{
		"a range":         {"", "alice", vm("range", app1, "11.0.0.0/28"), ""},
		"over the bound":  {"", "alice", vm("many", app1, "11.1.0.0/24", "11.2.0.0/24"), ""},
		"another's":       {"bob owns it", "alice", vm("range", app2, "11.0.0.0/28"), "do not own"},
		"contested":       {"it is registered for bob's", "alice", vm("range", app1, "11.9.9.0/24"), "registered for another application"},
		"not an address":  {"", "alice", vm("range", app1, "11.0.0.1/28"), "host bits"},
		"a whole network": {"", "alice", vm("range", app1, "11.0.0.0/16"), "wider than /24"},
		"no application":  {"", "alice", vm("range", "trnv1:rsc:trip-com:mysql:clusters:db", "11.0.0.1"), "do not own"},
		"beyond all": {
			"nobody may have so many", "alice",
			workloads.Workload{ID: "x", Subject: app1, Addresses: networkTexts("13.0.0.0", 64)}, "may have 131072",
		},
	} {
		got, err := w.Propose(tc.who, tc.in)
		if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %s: %v", name, tc.reason, err)
		}
		if err == nil && (got.Source != workloads.Portal || workloads.NeedsApproval(err)) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if len(w.writes) != 501 {
		t.Errorf("a proposal writes nothing: %d writes", len(w.writes))
	}
}

func networkTexts(from string, n int) (out []string) {
	for _, w := range networks(from, n) {
		out = append(out, w.Addresses...)
	}
	return out
}

// TestPlatformsAreBounded checks that a platform cannot give an application a whole network either.
func TestPlatformsAreBounded(t *testing.T) {
	w := newWorld(t)
	in := networks("11.0.0.0", 1000)
	got := created(w.put(platform, "vms", in...))
	if got*256 > workloads.MaxAddressesOfMachines || got == 0 {
		t.Errorf("%d times 256 addresses", got)
	}
	s, err := w.PreviewSync(t.Context(), platform, "others", networks("12.0.0.0", 1000))
	if err != nil || s.Added != 0 || len(s.Refused) != 1000 {
		t.Errorf("%d added, %d refused, %v", s.Added, len(s.Refused), err)
	}
}

// BenchmarkPutOfOwners measures a call of the largest size with overlapping prefixes.
func BenchmarkPutOfOwners(b *testing.B) {
	w := newWorld(b)
	w.MostAddresses = 1 << 30
	var in []workloads.Workload
	next := netip.MustParseAddr("11.0.0.0")
	for i := range workloads.MaxPut {
		var addresses []string
		for range workloads.MaxAddresses {
			addresses = append(addresses, next.String())
			next = next.Next()
		}
		in = append(in, vm(fmt.Sprint("m-", i), app1, addresses...))
	}
	for b.Loop() {
		if _, err := w.Registrar.Put(b.Context(), alice, "", in); err != nil {
			b.Fatal(err)
		}
	}
}

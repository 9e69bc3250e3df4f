package insight

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

// Bounds stand for every address: asking all 256 of a prefix one by one finds the same.
func TestBoundsRepresentEveryAddress(t *testing.T) {
	sure, unsure := 0, 0
	for seed := range uint64(400) {
		d := rand.New(rand.NewPCG(seed, 11))
		prefix := func() string {
			return netip.PrefixFrom(netip.AddrFrom4([4]byte{203, 0, 113, byte(d.IntN(256))}), 22+d.IntN(11)).Masked().String()
		}
		randomSnapshot := func() *policy.Snapshot {
			add := []func(*policy.Input){protect(bobs, v1alpha1.ModeEnforce), allow("w", vm, "redis:connect", bobs)}
			for i := range d.IntN(3) {
				add = append(add, allow(fmt.Sprint("c", i), cidr+prefix(), "redis:connect", bobs))
			}
			if d.IntN(2) == 0 {
				add = append(add, func(in *policy.Input) {
					in.Workloads = append(
						in.Workloads,
						&v1alpha1.ExternalWorkload{ObjectMeta: named("w"), Spec: v1alpha1.ExternalWorkloadSpec{Subject: vm, Addresses: []string{prefix()}}},
					)
				})
			}
			return with(world(), add...)
		}
		states := []*policy.Snapshot{randomSnapshot(), randomSnapshot()}
		e := edge("", bobs, 6379, policy.DefaultDenied, from("203.0.113.0/24"))
		got := newDecider(newPolicyState(states[0], now), newPolicyState(states[1], now)).decide(&e, asIs)
		same, words := true, [2][]policy.Verdict{}
		for i := range 256 {
			q := policy.Query{
				Resources: []string{bobs},
				Source:    netip.AddrFrom4([4]byte{203, 0, 113, byte(i)}),
				Cluster:   "m1",
				Protocol:  "TCP",
				Port:      6379,
				At:        now,
			}
			a, b := states[0].Decide(q).Verdict, states[1].Decide(q).Verdict
			same = same && a == b
			words[0], words[1] = append(words[0], a), append(words[1], b)
		}
		several := len(slices.Compact(words[0])) > 1 || len(slices.Compact(words[1])) > 1
		if got.same != same || (got.why != nil) != several {
			t.Fatalf("seed %d: same %v and several %v, asking all of them %v and %v", seed, got.same, got.why != nil, same, several)
		}
		if several {
			unsure++
		} else {
			sure++
		}
	}
	if sure < 50 || unsure < 50 {
		t.Errorf("%d sure and %d unsure: too few to notice a mistake", sure, unsure)
	}
}

func FuzzReadEnd(f *testing.F) {
	for _, s := range []string{"", ownNode, "reserved:world", "outside", "203.0.113.0/24", "::/0", "namespace=a,b=c", "a=b…", "namespace=", ",=,"} {
		f.Add(s)
	}
	s := newPolicyState(with(world(), protect(bobs, v1alpha1.ModeEnforce)), now)
	f.Fuzz(func(t *testing.T, text string) {
		e := readEnd(text)
		if e.kind == sourcePrefix && !e.prefix.IsValid() {
			t.Errorf("%q became the prefix %v", text, e.prefix)
		}
		if e.cut != (e.kind == sourceLabels && strings.HasSuffix(text, cutMark)) {
			t.Errorf("%q: cut %v", text, e.cut)
		}
		v := newDecider(s).decide(&audit.Edge{Source: text, Resource: bobs, Protocol: "TCP", Port: 6379}, asIs)
		if len(v.of) != 1 {
			t.Errorf("%q: %d decisions", text, len(v.of))
		}
	})
}

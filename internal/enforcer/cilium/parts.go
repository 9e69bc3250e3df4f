package cilium

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

const (
	// MaxObjectBytes bounds an object in its Federated wrapper, which contains a spec for each member that differs. An
	// API server accepts 1.5 MB; the rest is reserved for metadata and status.
	MaxObjectBytes = 1_300_000
	// maxParts limits the doubling of parts.
	maxParts = 1 << 12
)

// partName numbers the parts from the second on, so that a unit that grows keeps its first object.
func partName(u *policy.Unit, i int) string {
	if i == 0 {
		return v1alpha1.ObjectPrefix + u.ID
	}
	return fmt.Sprintf("%s%s-part-%d", v1alpha1.ObjectPrefix, u.ID, i+1)
}

// division is the distribution of a unit's rules over objects.
type division struct {
	// parts are the rules of each object. There is at least one part, because a unit without rules closes.
	parts [][]policy.Rule
	// closed are the ports that a deny of every source closes in place of the unit's denies; nil if the denies fit.
	closed []v1alpha1.Port
}

// divide distributes the rules of a unit over objects of at most limit bytes each.
//
// Every part contains all denies of the unit and a share of the allows. KubeFed and the agents may apply the parts of
// several revisions in any order, and this makes the order irrelevant: a part lets in no source that its own revision
// of the unit refuses, so no mixture of parts lets in what all of their revisions refuse.
//
// The part of a peer is derived from a hash of the peer alone, so that a change of other peers or of its ports does not
// move it. The number of parts is a power of two; when it doubles, half of each part's peers stay.
//
// Denies that would take more than three quarters of an object are replaced by one deny of every source on their ports:
// if they were distributed over several objects, some would be missing for a moment whenever one of them moves.
func divide(u *policy.Unit, v *variants, limit int) division {
	var denies []policy.Rule
	allowBytes, denyBytes := 0, 0
	for i := range u.Rules {
		if r := &u.Rules[i]; r.Effect == policy.Allow {
			allowBytes += ruleBytes(r)
		} else {
			denies, denyBytes = append(denies, *r), denyBytes+ruleBytes(r)
		}
	}
	allows := u.Rules
	if len(denies) > 0 {
		allows = slices.DeleteFunc(slices.Clone(allows), func(r policy.Rule) bool { return r.Effect != policy.Allow })
	}
	var out division
	enforcing := v.enforcing()
	if denyBytes*enforcing > limit/4*3 {
		closing := policy.Rule{Effect: policy.Deny, Anyone: true}
		for i := range denies {
			closing.Ports = append(closing.Ports, denies[i].Ports...)
			closing.From = append(closing.From, denies[i].From...)
		}
		closing.Ports = policy.JoinPorts(closing.Ports)
		denies, denyBytes, out.closed = []policy.Rule{closing}, ruleBytes(&closing), closing.Ports
	}
	room := (limit - denyBytes*enforcing) / (1 + len(v.members))
	peers := peerCount(allows)
	for n := 1; ; n *= 2 {
		last := n >= min(peers, maxParts) // more parts would not be smaller
		if !last && n*room < allowBytes {
			continue
		}
		shares := spread(allows, n)
		if !last && slices.ContainsFunc(shares, func(share []policy.Rule) bool { return rulesBytes(share) > room }) {
			continue
		}
		for _, share := range shares {
			if len(denies) > 0 {
				share = slices.Concat(share, denies)
			}
			out.parts = append(out.parts, share)
		}
		return out
	}
}

// spread gives each of n parts the peers that belong to it, in the order of the rules.
func spread(rules []policy.Rule, n int) [][]policy.Rule {
	if n == 1 {
		return [][]policy.Rule{rules}
	}
	out := make([][]policy.Rule, n)
	for i := range rules {
		shares := make([]policy.Rule, n)
		for part := range shares {
			r := rules[i]
			r.Anyone, r.Subjects, r.Prefixes, r.External, r.ExternalClasses = false, nil, nil, nil, nil
			shares[part] = r
		}
		divideRule(&rules[i], shares)
		for part := range shares {
			if shares[part].HasPeers() {
				out[part] = append(out[part], shares[part])
			}
		}
	}
	return out
}

// divideRule adds each peer of a rule to the share of its part. Rules are additive, so the shares together mean the
// same.
func divideRule(r *policy.Rule, shares []policy.Rule) {
	if r.Anyone {
		shares[partOf("*", "", len(shares))].Anyone = true
	}
	for _, s := range r.Subjects {
		if s.Any {
			share := &shares[partOf("label", s.LabelKey, len(shares))]
			share.Subjects = append(share.Subjects, s)
			continue
		}
		for _, v := range s.Values {
			share := &shares[partOf("label "+s.LabelKey, v, len(shares))]
			if last := len(share.Subjects) - 1; last < 0 || share.Subjects[last].LabelKey != s.LabelKey {
				share.Subjects = append(share.Subjects, policy.SubjectSelector{LabelKey: s.LabelKey})
			}
			last := &share.Subjects[len(share.Subjects)-1]
			last.Values = append(last.Values, v)
		}
	}
	for _, p := range r.Prefixes {
		share := &shares[partOf("range", p.String(), len(shares))]
		share.Prefixes = append(share.Prefixes, p)
	}
	for _, id := range r.External {
		share := &shares[partOf("group", id, len(shares))]
		share.External = append(share.External, id)
	}
	for _, id := range r.ExternalClasses {
		share := &shares[partOf("groups", id, len(shares))]
		share.ExternalClasses = append(share.ExternalClasses, id)
	}
}

// partOf returns the part of a peer among n parts, where n is a power of two.
func partOf(kind, peer string, n int) int {
	sum := sha256.Sum256([]byte(kind + "\x00" + peer))
	return int(binary.BigEndian.Uint32(sum[:]) & uint32(n-1)) //nolint:gosec // n is at most maxParts
}

// peerCount counts the peers that could be in different parts.
func peerCount(rules []policy.Rule) int {
	n := 0
	for i := range rules {
		r := &rules[i]
		n += len(r.Prefixes) + len(r.External) + len(r.ExternalClasses)
		if r.Anyone {
			n++
		}
		for _, s := range r.Subjects {
			n += max(1, len(s.Values))
		}
	}
	return n
}

func rulesBytes(rules []policy.Rule) int {
	n := 0
	for i := range rules {
		n += ruleBytes(&rules[i])
	}
	return n
}

// ruleBytes returns an upper bound of the size of the rule as JSON, in any mode.
func ruleBytes(r *policy.Rule) int {
	const (
		selectorBytes = 250 // the clauses around the key and values of a label
		peerBytes     = 200 // a prefix, a reference to a group or a selector of groups
		anyoneBytes   = 1000
		listBytes     = 100 // the syntax around a list of peers or ports
		portBytes     = 60
	)
	ports := listBytes + portBytes*len(r.Ports)
	for _, h := range r.HTTP {
		ports += (1 + len(r.Ports)/maxPorts) * (listBytes + 2*len(h.Method) + 2*len(h.Path))
	}
	kinds, peers := 0, 0
	if r.Anyone {
		kinds, peers = kinds+3, peers+anyoneBytes
	}
	if len(r.Subjects) > 0 {
		kinds++
	}
	if n := len(r.Prefixes) + len(r.External) + len(r.ExternalClasses); n > 0 {
		kinds, peers = kinds+1, peers+n*peerBytes
	}
	times := 1
	if r.Effect == policy.Deny {
		times = 2 // the rule selects pods with a namespace and without
	}
	for _, s := range r.Subjects {
		n := 0
		for _, v := range s.Values {
			n += len(v) + len(`"",`)
		}
		peers += times * (n + (1+len(s.Values)/chunk)*(selectorBytes+2*len(s.LabelKey)))
	}
	return peers + kinds*(listBytes+ports) // the ports are repeated for each kind of peers
}

// refuseClosed reports the allows that have no effect in the members in Enforce because every source is denied their
// ports.
func refuseClosed(out *enforcer.Rendering, u *policy.Unit, v *variants, closed []v1alpha1.Port) {
	if len(closed) == 0 {
		return
	}
	seen := map[policy.Ref]bool{}
	var refused []policy.Refusal
	for _, r := range slices.Concat(u.Rules, u.Inherited) {
		if r.Effect != policy.Allow || !policy.PortsOverlap(r.Ports, closed) {
			continue
		}
		for _, ref := range r.From {
			if !seen[ref] {
				seen[ref] = true
				refused = append(refused, policy.Refusal{Ref: ref, Resource: u.Resource, Reason: v1alpha1.RefusedTooMany,
					Message: message.RefusalDeniesTooLarge()})
			}
		}
	}
	slices.SortFunc(refused, func(a, b policy.Refusal) int { return strings.Compare(a.Ref.String(), b.Ref.String()) })
	out.Refused, out.RefusedIn = v.refusing(out, refused)
}

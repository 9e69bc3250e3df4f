package statusfields

import (
	"slices"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
)

const (
	// MaxSize bounds the JSON of a status for 500 members, in bytes. The rest of the status reduces what is available
	// for members that are listed in full.
	MaxSize = 98_000
	// MaxListed is the maximum number of members that are listed with their messages.
	MaxListed = 20
	// leastFull is the space for members with messages in any case, so that the worst few are always shown.
	leastFull = 4_000
)

// ListMembers divides members into those that are listed in full, the worst first, and groups of all others. used is the size
// of the rest of the status, in bytes of JSON.
func ListMembers(states []v1alpha1.ClusterState, used int) ([]v1alpha1.ClusterState, []v1alpha1.MemberGroup) {
	sorted := slices.SortedFunc(slices.Values(states), v1alpha1.CompareMembers)
	if len(sorted) <= MaxListed {
		return sorted, nil
	}
	room := max(MaxSize-used-SizeOfGroups(v1alpha1.GroupMembers(sorted)), leastFull)
	n := fit(sorted, MaxListed, room)
	return sorted[:n:n], v1alpha1.GroupMembers(sorted[n:])
}

// fit returns how many of the first most members fit into room bytes.
func fit(states []v1alpha1.ClusterState, most, room int) int {
	for i := range states[:min(most, len(states))] {
		if room -= SizeOfMember(&states[i]); room < 0 {
			return i
		}
	}
	return min(most, len(states))
}

// The sizes below are upper bounds of the JSON of a value. They are computed instead of measured because statuses are
// built during every push.

// SizeOfMember returns an upper bound of the JSON of a member that is listed in full.
func SizeOfMember(c *v1alpha1.ClusterState) int {
	const keys = len(`{"name":"","state":"","mode":"","desiredRevision":"","observedRevision":"","propagated":true,"since":"","message":"",` +
		`"messageCode":"","messageParams":""},`)
	return keys + len(c.Name) + len(c.State) + len(c.Mode) + len(c.DesiredRevision) + len(c.ObservedRevision) + len(timeFormat) +
		SizeOfText(c.Message) + len(c.MessageCode) + SizeOfText(c.MessageParams)
}

// timeFormat has the length of the JSON of a time.
const timeFormat = "2006-01-02T15:04:05.000000Z"

// SizeOfGroups returns an upper bound of the JSON of groups.
func SizeOfGroups(groups []v1alpha1.MemberGroup) int {
	const (
		ofGroup    = len(`{"state":"","mode":"","propagated":true,"since":"","revisions":[]},`) + len(timeFormat)
		ofRevision = len(`{"desired":"","observed":"","members":[],"after":[]},`)
	)
	n := 0
	for i := range groups {
		g := &groups[i]
		n += ofGroup + len(g.State) + len(g.Mode)
		for j := range g.Revisions {
			r := &g.Revisions[j]
			n += ofRevision + len(r.Desired) + len(r.Observed)
			for _, name := range r.Members {
				n += len(`"",`) + len(name)
			}
			for _, after := range r.After {
				n += len(`0,`)
				for ; after >= 10; after /= 10 {
					n++
				}
			}
		}
	}
	return n
}

// SizeOfCounts returns an upper bound of the JSON of counts of members.
func SizeOfCounts(n *v1alpha1.MemberCounts) int {
	if n == nil {
		return 0
	}
	size := len(`"members":{},`)
	for _, of := range []struct {
		key   string
		count int32
	}{{"total", n.Total}, {"targeted", n.Targeted}, {"waiting", n.Waiting}, {"realized", n.Realized}, {"pending", n.Pending}, {"drifted", n.Drifted},
		{"unreachable", n.Unreachable}, {"leaked", n.Leaked}, {"overridden", n.Overridden}, {"quarantined", n.Quarantined}, {"downgraded", n.Downgraded}} {
		if of.count != 0 {
			size += len(`"":0,`) + len(of.key)
			for c := of.count; c >= 10; c /= 10 {
				size++
			}
		}
	}
	return size
}

// SizeOfConditions returns an upper bound of the JSON of conditions.
func SizeOfConditions(conditions []metav1.Condition) int {
	const keys = len(`{"type":"","status":"","observedGeneration":9223372036854775807,"lastTransitionTime":"2006-01-02T15:04:05Z","reason":"","message":""},`)
	n := len(`"conditions":[],`)
	for i := range conditions {
		c := &conditions[i]
		n += keys + len(c.Type) + len(c.Status) + len(c.Reason) + SizeOfText(c.Message)
	}
	return n
}

// SizeOfText returns the size of a text as a JSON string, without its quotes.
func SizeOfText(s string) int {
	n := 0
	for i := 0; i < len(s); {
		r, width := utf8.DecodeRuneInString(s[i:])
		n += sizeOfRune(r, width)
		i += width
	}
	return n
}

func sizeOfRune(r rune, width int) int {
	switch {
	case r == '"', r == '\\':
		return 2
	case r < ' ', r == '<', r == '>', r == '&', r == 0x7f, r == '\u2028', r == '\u2029', r == utf8.RuneError && width == 1:
		return len(`\u0000`)
	default:
		return width
	}
}

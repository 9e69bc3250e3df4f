package protectedresource

import (
	"maps"
	"slices"

	"github.com/acp-io/acp/controllers/memberhealth"
)

// sound are members that enforce everything.
type sound struct{}

func (sound) Unenforced(string, []string) string    { return "" }
func (sound) MissingLabels(string, []string) string { return "" }
func (sound) HostPods(_, _, _ string) string        { return "" }
func (sound) MeaningChanged(string) string          { return "" }

func (sound) MembersLacking([]string) []memberhealth.Lack { return nil }

// unsound says of members why they enforce nothing.
type unsound map[string]string

func (u unsound) Unenforced(cluster string, _ []string) string { return u[cluster] }
func (unsound) MissingLabels(string, []string) string          { return "" }
func (unsound) HostPods(_, _, _ string) string                 { return "" }
func (unsound) MeaningChanged(string) string                   { return "" }

func (unsound) MembersLacking([]string) []memberhealth.Lack { return nil }

// labelless says of members which label keys are not in identities there; "?" stands for any, if nobody knows.
type labelless map[string]string

func (l labelless) lack(cluster string, keys []string) memberhealth.Lack {
	switch key := l[cluster]; {
	case key == "?":
		return memberhealth.Lack{Member: cluster, Why: "nobody could look", Unknown: true}
	case key != "" && slices.Contains(keys, key):
		return memberhealth.Lack{Member: cluster, Why: key + " is not in identities"}
	}
	return memberhealth.Lack{}
}

func (l labelless) Unenforced(cluster string, keys []string) string {
	return l.MissingLabels(cluster, keys)
}
func (l labelless) MissingLabels(cluster string, keys []string) string {
	return l.lack(cluster, keys).Why
}

func (labelless) HostPods(_, _, _ string) string { return "" }
func (labelless) MeaningChanged(string) string   { return "" }

func (l labelless) MembersLacking(keys []string) []memberhealth.Lack {
	var out []memberhealth.Lack
	for _, c := range slices.Sorted(maps.Keys(l)) {
		if lack := l.lack(c, keys); lack.Why != "" && len(keys) > 0 {
			out = append(out, lack)
		}
	}
	return out
}

// hosted are members of which some have pods with a label that use the network of their node.
type hosted struct {
	sound
	member, key, value string
}

func (h hosted) HostPods(cluster, key, value string) string {
	if cluster == h.member && key == h.key && value == h.value {
		return "ns/redis-0"
	}
	return ""
}

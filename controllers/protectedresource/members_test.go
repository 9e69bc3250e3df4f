package protectedresource

import (
	"maps"
	"slices"

	"github.com/acp-io/acp/controllers/memberhealth"
	"github.com/acp-io/acp/internal/message"
)

// sound are members that enforce everything.
type sound struct{}

func (sound) Unenforced(string, []string) (none message.Message)                  { return none }
func (sound) MissingLabels(string, []string) (none message.Message)               { return none }
func (sound) HostPodProblem(_, _, _ string) (none message.Message)                { return none }
func (sound) MeshProblem(_, _, _ string, _ bool, _ string) (none message.Message) { return none }

func (sound) GatewayProblem(_, _ string) (none message.Message, known bool) { return none, true }
func (sound) MeaningChanged(string) (none message.Message)                  { return none }

func (sound) RequestsIncomplete(string) bool              { return false }
func (sound) MembersLacking([]string) []memberhealth.Lack { return nil }

// unsound says of members why they enforce nothing.
type unsound map[string]string

func (u unsound) Unenforced(cluster string, _ []string) message.Message {
	return message.Verbatim(u[cluster])
}
func (unsound) MissingLabels(string, []string) (none message.Message)               { return none }
func (unsound) HostPodProblem(_, _, _ string) (none message.Message)                { return none }
func (unsound) MeshProblem(_, _, _ string, _ bool, _ string) (none message.Message) { return none }

func (unsound) GatewayProblem(_, _ string) (none message.Message, known bool) { return none, true }
func (unsound) MeaningChanged(string) (none message.Message)                  { return none }

func (unsound) RequestsIncomplete(string) bool              { return false }
func (unsound) MembersLacking([]string) []memberhealth.Lack { return nil }

// labelless has for members the label keys that are not in identities there, or "?" for any if that is unknown.
type labelless map[string]string

func (l labelless) lack(cluster string, keys []string) memberhealth.Lack {
	switch key := l[cluster]; {
	case key == "?":
		return memberhealth.Lack{Member: cluster, Reason: message.Verbatim("nobody could look"), Unknown: true}
	case key != "" && slices.Contains(keys, key):
		return memberhealth.Lack{Member: cluster, Reason: message.Verbatim(key + " is not in identities")}
	}
	return memberhealth.Lack{}
}

func (l labelless) Unenforced(cluster string, keys []string) message.Message {
	return l.MissingLabels(cluster, keys)
}
func (l labelless) MissingLabels(cluster string, keys []string) message.Message {
	return l.lack(cluster, keys).Reason
}

func (labelless) HostPodProblem(_, _, _ string) (none message.Message)                { return none }
func (labelless) MeshProblem(_, _, _ string, _ bool, _ string) (none message.Message) { return none }

func (labelless) GatewayProblem(_, _ string) (none message.Message, known bool) { return none, true }
func (labelless) RequestsIncomplete(string) bool                                { return false }
func (labelless) MeaningChanged(string) (none message.Message)                  { return none }

func (l labelless) MembersLacking(keys []string) []memberhealth.Lack {
	var out []memberhealth.Lack
	for _, c := range slices.Sorted(maps.Keys(l)) {
		if lack := l.lack(c, keys); !lack.Reason.IsZero() && len(keys) > 0 {
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

func (h hosted) HostPodProblem(cluster, key, value string) message.Message {
	if cluster == h.member && key == h.key && value == h.value {
		return message.StateHostPods(message.Verbatim("ns/redis-0"))
	}
	return message.Message{}
}

// unmeshed are members of which some have pods with a label that have no proxy, or none for requests.
type unmeshed struct {
	sound
	member, key, value string
	requests           bool
}

func (u unmeshed) MeshProblem(cluster, key, value string, requests bool, _ string) message.Message {
	if cluster == u.member && key == u.key && value == u.value && requests == u.requests {
		return message.StateUnproxied(message.Verbatim("ns/redis-0"))
	}
	return message.Message{}
}

// envoyless are members of which some nodes do not enforce rules about requests.
type envoyless struct {
	sound
	member string
}

func (e envoyless) RequestsIncomplete(cluster string) bool { return cluster == e.member }

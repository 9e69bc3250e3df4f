package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unique"

	"github.com/cilium/cilium/pkg/identity"
	"github.com/cilium/cilium/pkg/u8proto"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation/foreignpolicy"
	"github.com/acp-io/acp/internal/policy"
)

// Detector returns the labels of classes that foreign policies open in Here, beyond ACP's objects, with the policy.
type Detector func(own Objects, foreign []map[string]any, pods []map[string]string) func(key, value string) string

// Detect is the Detector that calls the product's package foreignpolicy. Tests pass others, with a mistake, to check that they are found.
func Detect(own Objects, foreign []map[string]any, pods []map[string]string) func(key, value string) string {
	in := foreignpolicy.Input{Keys: map[string]bool{redisKey: true, webKey: true, dnsKey: true}}
	for name, spec := range own.Policies {
		in.Own = append(in.Own, foreignpolicy.Parse(object("CiliumClusterwideNetworkPolicy", "", name, spec)))
	}
	for _, f := range foreign {
		in.Foreign = append(in.Foreign, foreignpolicy.Parse(&unstructured.Unstructured{Object: f}))
	}
	for _, name := range slices.Sorted(maps.Keys(own.Groups)) {
		g := own.Groups[name]
		in.Groups = append(in.Groups, foreignpolicy.Group{Name: name, Labels: g.Labels, Prefixes: g.Prefixes})
	}
	in.Each = func(do func([]foreignpolicy.Handle)) {
		for _, pod := range pods {
			var labels []foreignpolicy.Handle
			for _, k := range slices.Sorted(maps.Keys(pod)) {
				labels = append(labels, unique.Make(foreignpolicy.Label{Key: k, Value: pod[k]}))
			}
			do(labels)
		}
	}
	return foreignpolicy.NewDetector().Find(in).OpenedBy
}

func object(kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"kind": kind, "spec": spec}}
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// ForeignCase is a world with foreign policies.
type ForeignCase struct {
	Seed    uint64
	Foreign []map[string]any
	Key     string
	Value   string
	By      string
	Shown   string
	Missed  bool
}

func (c *ForeignCase) String() string {
	if c.Missed {
		return fmt.Sprintf("seed %d: %s=%s is opened, and not reported: %s", c.Seed, c.Key, c.Value, c.Shown)
	}
	return fmt.Sprintf("seed %d: %s=%s is not opened, and reported: by %s", c.Seed, c.Key, c.Value, c.By)
}

// ForeignTally counts the comparisons with foreign policies.
type ForeignTally struct {
	Worlds, Connections int
	// Opened and Closed count the labels of enforced workloads with a foreign policy that may allow a source.
	Opened, Closed int
	// Refused counts the worlds in which Cilium rejects a policy, so that the agents' state is unknown, or fails to compute the
	// result. In these the detector may report too much, but never too little.
	Refused int
	// Overreported counts the labels that were reported unnecessarily.
	Overreported int
	// Kinds counts the opened labels by the kinds of the policies that the detector reported.
	Kinds map[string]int
}

// NewForeignTally returns an empty tally.
func NewForeignTally() *ForeignTally { return &ForeignTally{Kinds: map[string]int{}} }

// foreignPorts contains the connections to test: those of ACP's worlds, and those that only foreign policies name.
var foreignPorts = slices.Concat(l4s, tcpPorts(9121, 79, 81, 8081, 6378), []l4{{Protocol: "UDP", Number: 9121}, {Protocol: ICMP, Number: 200},
	{Protocol: ICMPv6, Number: 200}, {Protocol: "GRE"}})

func tcpPorts(numbers ...uint16) []l4 {
	var out []l4
	for _, n := range numbers {
		out = append(out, l4{Protocol: "TCP", Number: n})
	}
	return out
}

func foreignProtocol(p v1alpha1.Protocol) u8proto.U8proto {
	if p == "GRE" {
		return u8proto.GRE
	}
	return protocols[p]
}

// namespaceName is the key of the label in which Cilium repeats the name of a pod's namespace.
const (
	podNamespace  = "io.kubernetes.pod.namespace"
	namespaceName = "io.cilium.k8s.namespace.labels.kubernetes.io/metadata.name"
)

// foreignSources returns the sources in addition to those of ACP's worlds: pods with the labels that foreign policies select, in
// two namespaces and in a cluster that is not a member, and an address on each side of every prefix.
func foreignSources() []Source {
	var out []Source
	for _, cluster := range []string{Here, "m9"} {
		for _, ns := range []string{"default", "monitoring"} {
			choices := []map[string]string{{}, {appKey: "888"}, {appKey: "889"}, {appKey: "1"}, {appKey: ""}, {"app": "other"}, {"app": "other", appKey: "888"},
				{svcKey: "cart"}, {"app": "prometheus", appKey: "889"}, {"app": "server"}}
			if cluster != Here {
				choices = append(choices, map[string]string{"app": "prometheus"}, map[string]string{"app": "nowhere"})
			}
			for _, labels := range choices {
				l := maps.Clone(labels)
				l[podNamespace], l[namespaceName] = ns, ns
				out = append(out, Source{Cluster: cluster, Labels: l})
			}
		}
	}
	for _, a := range []string{
		"0.0.0.1", "10.4.255.255", "10.5.0.0", "10.5.0.6", "10.5.0.127", "10.5.0.128", "10.5.0.255", "10.5.1.0", "10.5.255.255",
		"10.6.0.0", "10.7.255.255", "10.8.0.0", "192.0.1.255", "192.0.2.0", "192.0.2.128", "192.0.3.0",
		"2001:db8::", "2001:db7::1", "2001:db8:4::1", "2001:db8:5::", "2001:db8:5::6", "2001:db8:5:1::", "2001:db8:6::",
	} {
		out = append(out, Source{Address: a})
	}
	return out
}

// labelsHere returns the labels of a pod of Here in its identity.
func labelsHere(id *identity.Identity) map[string]string {
	out := map[string]string{}
	for _, l := range id.LabelArray {
		out[l.Key] = l.Value
	}
	return out
}

// RunForeign compares the detector with the engine in the world of a seed. The detector must report exactly what the engine allows
// with the foreign policies and not without them.
func RunForeign(seed uint64, detect Detector, tally *ForeignTally) ([]*ForeignCase, error) {
	d := newGenerator(seed)
	in := d.Input()
	sources, destinations := append(d.Sources(), foreignSources()...), d.Destinations(4)
	for i := range destinations {
		if d.IntN(4) == 0 {
			destinations[i][podNamespace], destinations[i][namespaceName] = "monitoring", "monitoring"
		} else {
			destinations[i][namespaceName] = "default"
		}
	}
	for _, to := range destinations {
		sources = append(sources, Source{Cluster: Here, Labels: to})
	}
	foreign := d.foreign()
	s := policy.NewSnapshot(in)
	objects, err := Translate(s, noon)
	if err != nil {
		return nil, fmt.Errorf("translate the world of seed %d: %w", seed, err)
	}
	alone, err := newMember(objects, sources, destinations)
	if err != nil {
		return nil, fmt.Errorf("load the world of seed %d: %w", seed, err)
	}
	beside, err := newMember(objects, sources, destinations)
	if err != nil {
		return nil, fmt.Errorf("load the world of seed %d: %w", seed, err)
	}
	refused := false
	for _, f := range foreign {
		if err := beside.engine.take(f); err != nil {
			refused = true
		}
	}
	var pods []map[string]string
	for i, src := range sources {
		if src.Cluster == Here {
			pods = append(pods, labelsHere(alone.sources[i]))
		}
	}
	for _, id := range alone.destinations {
		pods = append(pods, labelsHere(id))
	}
	opened, failed, err := compareMembers(alone, beside, sources, destinations, tally)
	if err != nil {
		return nil, fmt.Errorf("decide in the world of seed %d: %w", seed, err)
	}
	by := detect(objects, foreign, pods)
	tally.Worlds++
	if refused || failed {
		tally.Refused++
	}
	var wrong []*ForeignCase
	seen := map[foreignpolicy.Label]bool{}
	for _, to := range destinations {
		for _, key := range []string{redisKey, webKey, dnsKey} {
			l := foreignpolicy.Label{Key: key, Value: to[key]}
			if to[key] == "" || seen[l] {
				continue
			}
			seen[l] = true
			name, shown := by(l.Key, l.Value), opened[l]
			c := &ForeignCase{Seed: seed, Foreign: foreign, Key: l.Key, Value: l.Value, By: name, Shown: shown, Missed: shown != ""}
			switch {
			case shown != "":
				tally.Opened++
				if name == "" {
					wrong = append(wrong, c)
					continue
				}
				kind, _, _ := strings.Cut(name, " ")
				tally.Kinds[kind]++
			case name != "":
				if !refused && !failed {
					tally.Overreported++
					wrong = append(wrong, c)
				}
			default:
				tally.Closed++
			}
		}
	}
	return wrong, nil
}

// compareMembers returns the labels of classes of the workloads to which the second member allows more, with an example connection.
// If the engine fails to compute a workload's policy, the agent keeps its previous one, so anything may be allowed.
func compareMembers(
	own, combined *member,
	sources []Source,
	destinations []map[string]string,
	tally *ForeignTally,
) (map[foreignpolicy.Label]string, bool, error) {
	opened, failed := map[foreignpolicy.Label]string{}, false
	for i, to := range destinations {
		shown := ""
	connections:
		for j, from := range sources {
			if from.Reserved == "host" {
				continue // policies never refuse it
			}
			for _, at := range foreignPorts {
				before, err := own.engine.decide(own.sources[j], own.destinations[i], foreignProtocol(at.Protocol), at.Number)
				if err != nil {
					return nil, false, err
				}
				after, err := combined.engine.decide(combined.sources[j], combined.destinations[i], foreignProtocol(at.Protocol), at.Number)
				if err != nil {
					failed = true
					break connections
				}
				tally.Connections++
				if exceeds(after, before) {
					shown = fmt.Sprintf("%+v to %v on %s %d", from, to, at.Protocol, at.Number)
					break connections
				}
			}
		}
		for _, key := range []string{redisKey, webKey, dnsKey} {
			if shown != "" && to[key] != "" {
				opened[foreignpolicy.Label{Key: key, Value: to[key]}] = shown
			}
		}
	}
	return opened, failed, nil
}

// exceeds reports whether more passes than before.
func exceeds(after, before verdict) bool {
	switch {
	case !after.Pass:
		return false
	case !before.Pass:
		if !after.Proxied {
			return true
		}
		return slices.Contains(after.Requests[:], true)
	case !before.Proxied:
		return false
	case !after.Proxied:
		return true
	}
	for i, passes := range after.Requests {
		if passes && !before.Requests[i] {
			return true
		}
	}
	return false
}

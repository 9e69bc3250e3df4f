// Package nodereport defines the report of acp-node about one node of a member: which revision of ACP's policies the
// node's Cilium agent has, and whether every endpoint of the node enforces it.
//
// The package computes reports and reads them; it must not depend on the controllers or on the host cluster. Package
// ciliumagent below it reads from an agent.
package nodereport

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind and Resource are the kind NodeReport of deploy/node, which is installed in members with acp-node.
var (
	// Kind is the group, version and kind of a NodeReport.
	Kind = schema.GroupVersionKind{Group: "acp.io", Version: "v1alpha1", Kind: "NodeReport"}
	// Resource is the resource of NodeReports.
	Resource = schema.GroupVersionResource{Group: "acp.io", Version: "v1alpha1", Resource: "nodereports"}
)

const (
	// MaxPolicies is the number of policies that a report contains at most. The others are counted in Omitted, and are
	// unknown.
	MaxPolicies = 2000
	// maxMessage is the length of a message in characters.
	maxMessage = 512
	// StaleAfter is the age from which on a report is ignored.
	StaleAfter = 2 * time.Minute
	// maxAhead is how far the clock of a node may be ahead before its reports are ignored.
	maxAhead = 30 * time.Second
)

// Report is what acp-node found on its node at one time.
type Report struct {
	// Node is the name of the node, and of the object.
	Node string
	// Time is when the agent was read, by the clock of the node.
	Time time.Time
	// Healthy reports whether the agent answered everything and considers itself healthy. Message is the reason if not.
	Healthy bool
	Message string
	// Policies are ACP's policies in the agent, by the names of the objects.
	Policies map[string]Policy
	// Omitted is the number of policies that were left out.
	Omitted int
}

// Policy describes the rules of one policy that an agent has.
type Policy struct {
	// Revision is the revision of the rules that the agent has; empty if the rules have no label of it.
	Revision string
	// Realized reports whether every endpoint of the node enforces these rules.
	Realized bool
}

// PolicyState is the state of one revision of one policy on a node, according to the node's report. A greater value is a better state, so
// the state on several nodes is the least of their values.
type PolicyState int

const (
	// Unknown means that there is no usable report, or that the report does not contain the state. It must never count as realized.
	Unknown PolicyState = iota
	// Lagging means that the agent does not have the revision, or not every endpoint enforces it yet.
	Lagging
	// Realized means that the agent has the revision, and every endpoint of the node enforces it.
	Realized
)

// StateOf returns the state of a revision of a policy on the node at an instant, according to the report. A nil report, as of a node
// that has not reported, gives Unknown.
func (r *Report) StateOf(policy, revision string, now time.Time) PolicyState {
	if !r.Usable(now) || revision == "" {
		return Unknown
	}
	p, has := r.Policies[policy]
	switch {
	case !has && r.Omitted > 0:
		return Unknown
	case !has:
		return Lagging
	case p.Revision == "":
		return Unknown
	case p.Revision == revision && p.Realized:
		return Realized
	default:
		return Lagging
	}
}

// Recent reports whether there is a report, and its time is neither too old nor too far in the future.
func (r *Report) Recent(now time.Time) bool {
	return r != nil && now.Sub(r.Time) < StaleAfter && r.Time.Sub(now) < maxAhead
}

// Usable reports whether the report is recent, and of a healthy agent.
func (r *Report) Usable(now time.Time) bool { return r.Recent(now) && r.Healthy }

// EqualExceptTime reports whether two reports differ at most in their times.
func (r *Report) EqualExceptTime(other *Report) bool {
	return r != nil && other != nil && r.Node == other.Node && r.Healthy == other.Healthy && r.Message == other.Message &&
		r.Omitted == other.Omitted && maps.Equal(r.Policies, other.Policies)
}

// Object returns the report as an object for the member's API server. It contains at most MaxPolicies policies, in the
// order of their names.
func (r *Report) Object() *unstructured.Unstructured {
	names := slices.Sorted(maps.Keys(r.Policies))
	omitted := r.Omitted
	if len(names) > MaxPolicies {
		omitted += len(names) - MaxPolicies
		names = names[:MaxPolicies]
	}
	policies := make([]any, 0, len(names))
	for _, name := range names {
		p := map[string]any{"name": name, "realized": r.Policies[name].Realized}
		if revision := r.Policies[name].Revision; revision != "" {
			p["revision"] = revision
		}
		policies = append(policies, p)
	}
	report := map[string]any{"time": r.Time.UTC().Format(time.RFC3339), "healthy": r.Healthy, "policies": policies, "omitted": int64(omitted)}
	if r.Message != "" {
		report["message"] = bounded(r.Message)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"report": report}}
	u.SetGroupVersionKind(Kind)
	u.SetName(r.Node)
	return u
}

// bounded shortens a message that is too long, and replaces what is not UTF-8.
func bounded(s string) string {
	if utf8.ValidString(s) && utf8.RuneCountInString(s) <= maxMessage {
		return s
	}
	runes := []rune(s)
	return string(runes[:min(len(runes), maxMessage)])
}

// errNoReport is returned for an object without a report.
var errNoReport = errors.New("the object has no report")

// Parse reads a report from an object. An object with a part that is not what Object writes is an error, and says
// nothing.
func Parse(u *unstructured.Unstructured) (Report, error) {
	report, found, err := unstructured.NestedMap(u.Object, "report")
	if err != nil || !found {
		return Report{}, fmt.Errorf("NodeReport %s: %w", u.GetName(), errNoReport)
	}
	r := Report{Node: u.GetName(), Policies: map[string]Policy{}}
	text, _ := report["time"].(string)
	if r.Time, err = time.Parse(time.RFC3339, text); err != nil {
		return Report{}, fmt.Errorf("NodeReport %s: the time is not a time", r.Node)
	}
	r.Healthy, _ = report["healthy"].(bool)
	r.Message, _ = report["message"].(string)
	omitted, _ := report["omitted"].(int64)
	if omitted < 0 || omitted > 1<<30 {
		return Report{}, fmt.Errorf("NodeReport %s: the number of omitted policies is out of range", r.Node)
	}
	r.Omitted = int(omitted)
	list, _ := report["policies"].([]any)
	if len(list) > MaxPolicies {
		return Report{}, fmt.Errorf("NodeReport %s: more than %d policies", r.Node, MaxPolicies)
	}
	for _, item := range list {
		p, _ := item.(map[string]any)
		name, _ := p["name"].(string)
		if _, twice := r.Policies[name]; name == "" || twice {
			return Report{}, fmt.Errorf("NodeReport %s: a policy without a name, or twice", r.Node)
		}
		revision, _ := p["revision"].(string)
		realized, _ := p["realized"].(bool)
		r.Policies[name] = Policy{Revision: revision, Realized: realized}
	}
	return r, nil
}

package istiotest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// allFeatures lists the features of compared decisions. A comparison proves nothing about a combination of features that did not occur in it.
var allFeatures = []string{"ambient", "anyone", "audit", "cluster mode", "deny", "enforce", "external workload", "http", "node",
	"other port", "range", "requests of a wildcard", "several classes", "temporary audit", "validity", "wildcard resource"}

// Reasons contains features, and pairs of features ("A with B", in the order of allFeatures), that cannot occur in an exact comparison, with the reason.
// A feature stands for all of its pairs.
type Reasons map[string]string

// These are the reasons that several entries have.
const (
	noStatement = "an open port is decided by no statement"
	noAddress   = "a node has no address in the worlds"
	sameMode    = "a pod of resources in different modes is not compared with the statements as written"
	noDenial    = "what is in Audit denies nothing"
	// A resource in Observe has no policies that could be refused.
	refusedRequests = "a statement about requests is refused for ztunnel, so that its world is not compared with the statements as written"
	certificate     = "a waypoint requires a certificate, and a client that an address identifies, or a node, has none"
)

// everywhere are the pairs that cannot occur, whatever proxy the destination has.
var everywhere = Reasons{
	"anyone with other port":                 noStatement,
	"deny with other port":                   noStatement,
	"other port with range":                  noStatement,
	"other port with requests of a wildcard": noStatement,
	"other port with validity":               noStatement,
	"other port with wildcard resource":      noStatement,
	"http with other port":                   "the ports of the worlds on which requests are made are all named",
	"other port with several classes":        "ports are open only on pods of one class",
	"external workload with node":            noAddress,
	"node with range":                        noAddress,
	"audit with enforce":                     sameMode,
	"enforce with temporary audit":           sameMode,
	"audit with deny":                        noDenial,
	"deny with temporary audit":              noDenial,
}

// These are the features that cannot occur where a proxy of one kind decides.
var (
	// Sidecars are the reasons for members of which the dataplane is sidecars.
	Sidecars = Reasons{"ambient": "no member with sidecars is in ambient"}
	// Ztunnel are the reasons for pods that ztunnel protects.
	Ztunnel = Reasons{
		"audit with requests of a wildcard":   refusedRequests,
		"deny with requests of a wildcard":    refusedRequests,
		"enforce with requests of a wildcard": refusedRequests,
	}
	// Waypoints are the reasons for connections through a waypoint that is dedicated to the one resource of a pod.
	Waypoints = Reasons{
		"external workload": certificate,
		"node":              certificate,
		"range":             certificate,
		"other port":        "the port of a waypoint is one that actions name",
		"several classes":   "a pod of several resources is behind a waypoint that is not its own",
	}
)

// Features returns the features of one decision.
func Features(in *policy.Input, s *policy.Snapshot, q *policy.Query, d *policy.Decision) []string {
	has := map[string]bool{
		"ambient":         q.Cluster == "m2",
		"deny":            d.Verdict == policy.Denied,
		"http":            q.Method != "",
		"node":            len(q.Subjects) == 0 && !q.Source.IsValid(),
		"other port":      d.Verdict == policy.Allowed && len(d.Statements) == 0,
		"several classes": len(q.Resources) > 1,
	}
	_, has["external workload"] = s.SubjectOfAddress(q.Source)
	for _, r := range in.Resources {
		if !slices.Contains(q.Resources, string(r.Spec.Resource)) {
			continue
		}
		mode := s.EffectiveMode(string(r.Spec.Resource), q.Cluster, q.At)
		has["audit"] = has["audit"] || mode == v1alpha1.ModeAudit
		has["enforce"] = has["enforce"] || mode == v1alpha1.ModeEnforce
		has["temporary audit"] = has["temporary audit"] || r.Spec.TemporaryAudit != nil && q.At.Before(r.Spec.TemporaryAudit.Until.Time)
		has["cluster mode"] = has["cluster mode"] ||
			slices.ContainsFunc(r.Spec.ClusterModes, func(m v1alpha1.ClusterMode) bool { return string(m.Cluster) == q.Cluster })
	}
	for _, p := range in.Policies {
		for _, st := range p.Spec.Statements {
			if !slices.Contains(d.Statements, policy.Ref{Policy: p.Name, SID: st.SID}) {
				continue
			}
			has["validity"] = has["validity"] || st.NotBefore != nil || st.NotAfter != nil
			has["anyone"] = has["anyone"] || slices.Contains(st.Subjects, "*")
			has["range"] = has["range"] || q.Source.IsValid() && strings.Contains(fmt.Sprint(st.Subjects), CIDRHead)
			has["wildcard resource"] = has["wildcard resource"] || strings.Contains(fmt.Sprint(st.Resources), "*")
			has["requests of a wildcard"] = has["requests of a wildcard"] || q.Method != "" && onlyByWildcard(&st, q) && onlyRequests(in, &st, q.Port)
		}
	}
	var out []string
	for _, f := range allFeatures {
		if has[f] {
			out = append(out, f)
		}
	}
	return out
}

// Met counts features, and pairs of them, over decisions.
type Met map[string]int

// Add counts the features of a decision.
func (m Met) Add(features []string) {
	for i, f := range features {
		m[f]++
		for _, g := range features[i+1:] {
			m[f+" with "+g]++
		}
	}
}

// Missing returns the features, and the pairs of features, that never occurred although nothing says that they cannot, and those that occurred in spite
// of a reason, whose reason is wrong. The reasons are those of some proxies, in addition to those that hold for all.
func (m Met) Missing(of ...Reasons) []string {
	reason := func(name string) string {
		for _, r := range slices.Concat(of, []Reasons{everywhere}) {
			if r[name] != "" {
				return r[name]
			}
		}
		return ""
	}
	var out []string
	check := func(name, why string) {
		switch {
		case why == "" && m[name] == 0:
			out = append(out, name+" never occurred")
		case why != "" && m[name] > 0:
			out = append(out, fmt.Sprintf("%s occurred %d times, although %s", name, m[name], why))
		}
	}
	for i, f := range allFeatures {
		check(f, reason(f))
		for _, g := range allFeatures[i+1:] {
			pair := f + " with " + g
			check(pair, cmp.Or(reason(f), reason(g), reason(pair)))
		}
	}
	return out
}

// Table returns the count, and the one or two features, of everything that occurred, separated by tabs and sorted by features.
func (m Met) Table() string {
	var out strings.Builder
	for i, f := range allFeatures {
		fmt.Fprintf(&out, "%d\t%s\t%s\n", m[f], f, f)
		for _, g := range allFeatures[i+1:] {
			fmt.Fprintf(&out, "%d\t%s\t%s\n", m[f+" with "+g], f, g)
		}
	}
	return out.String()
}

// onlyByWildcard reports whether a statement that decided names no resource of the query exactly.
func onlyByWildcard(st *v1alpha1.Statement, q *policy.Query) bool {
	return !slices.ContainsFunc(st.Resources, func(r v1alpha1.ResourceName) bool { return slices.Contains(q.Resources, string(r)) })
}

// onlyRequests reports whether a statement names actions of a port, and all of them are about requests.
func onlyRequests(in *policy.Input, st *v1alpha1.Statement, port uint16) bool {
	found := false
	for _, c := range in.ResourceClasses {
		for _, a := range c.Spec.Actions {
			service, _, _ := strings.Cut(a.Name, ":")
			if !slices.Contains(st.Actions, v1alpha1.Action(a.Name)) && !slices.Contains(st.Actions, v1alpha1.Action(service+":*")) ||
				!slices.ContainsFunc(a.Ports, func(p v1alpha1.Port) bool { return p.Port == int32(port) }) {
				continue
			}
			if len(a.HTTP) == 0 {
				return false
			}
			found = true
		}
	}
	return found
}

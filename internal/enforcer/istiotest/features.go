package istiotest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// allFeatures lists the features of compared decisions. A comparison proves nothing about a combination of features that did not occur in it.
var allFeatures = []string{"ambient", "anyone", "audit", "cluster mode", "deny", "enforce", "external workload", "http", "node",
	"other port", "range", "requests of a wildcard", "several classes", "temporary audit", "validity", "wildcard resource"}

// impossible are the pairs that cannot meet in an exact comparison: an open port is decided by no statement, on pods of
// one class, and the HTTP ports of the worlds are all named; a node has no address; resources of one pod in different
// modes are left out, and what is in Audit denies nothing.
var impossible = []string{
	"anyone with other port", "deny with other port", "http with other port", "other port with range", "other port with several classes",
	"other port with requests of a wildcard", "other port with validity", "other port with wildcard resource", "external workload with node", "node with range",
	"audit with enforce", "audit with deny", "deny with temporary audit", "enforce with temporary audit",
}

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

// Missing returns the features, and the possible pairs, that never met.
func (m Met) Missing() []string {
	var out []string
	for i, f := range allFeatures {
		if m[f] == 0 {
			out = append(out, f)
		}
		for _, g := range allFeatures[i+1:] {
			if pair := f + " with " + g; m[pair] == 0 && !slices.Contains(impossible, pair) {
				out = append(out, pair)
			}
		}
	}
	return out
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

package istio

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ztunnelCondition is the condition in which istiod reports what it makes of a policy for ztunnel, and accepted its reason for a policy
// that ztunnel gets as it is written. Source: WorkloadAuthorization in pilot/pkg/model/service.go and convertAuthorizationPolicy in
// pilot/pkg/serviceregistry/ambient/authorization.go.
const (
	ztunnelCondition = "ZtunnelAccepted"
	accepted         = "Accepted"
)

// ZtunnelStatus is what istiod reports about a policy for ztunnel. Istiod writes it only if ambient is enabled.
type ZtunnelStatus struct {
	// Reported reports whether istiod reported about the current version of the policy.
	Reported bool
	// Problem is what istiod says if it rejected the policy or left out a part of it, or "".
	Problem string
}

// ZtunnelStatusOf reads what istiod reports about an AuthorizationPolicy for ztunnel. A policy with the action AUDIT decides nothing, so
// nothing is missing although ztunnel does not support it. A policy of a waypoint is not meant for ztunnel.
func ZtunnelStatusOf(object map[string]any) ZtunnelStatus {
	spec, _ := object["spec"].(map[string]any)
	if spec["action"] == audit || spec["targetRefs"] != nil {
		return ZtunnelStatus{Reported: true}
	}
	for _, c := range statusEntries(object, "conditions") {
		if c["type"] != ztunnelCondition || !isCurrent(object, c) {
			continue
		}
		if c["status"] == "True" && c["reason"] == accepted {
			return ZtunnelStatus{Reported: true}
		}
		return ZtunnelStatus{Reported: true, Problem: textOr(c["message"], textOr(c["reason"], ztunnelCondition))}
	}
	return ZtunnelStatus{}
}

// waypointCondition is the condition in which istiod reports whether the targets of a policy exist. Source: WaypointPolicyStatusCollection in
// pilot/pkg/serviceregistry/ambient/policies.go.
const waypointCondition = "WaypointAccepted"

// WaypointStatus is what istiod reports about a policy of a waypoint.
type WaypointStatus struct {
	// Bound reports whether the Gateway existed when istiod reported last, maybe about an earlier version of the policy. Istiod sends the current
	// version to the same waypoint.
	Bound bool
	// Current reports whether the report is about the current version of the policy.
	Current bool
	// Problem is what istiod says if the Gateway does not exist, or "".
	Problem string
}

// WaypointStatusOf reads what istiod reports about an AuthorizationPolicy that refers to a waypoint. It is zero for other policies.
func WaypointStatusOf(object map[string]any) WaypointStatus {
	if spec, _ := object["spec"].(map[string]any); spec["targetRefs"] == nil {
		return WaypointStatus{}
	}
	for _, c := range statusEntries(object, "conditions") {
		switch {
		case c["type"] != waypointCondition:
		case c["status"] == "True" && c["reason"] == accepted:
			return WaypointStatus{Bound: true, Current: isCurrent(object, c)}
		default:
			return WaypointStatus{Current: isCurrent(object, c), Problem: textOr(c["message"], textOr(c["reason"], waypointCondition))}
		}
	}
	return WaypointStatus{}
}

// isCurrent reports whether a condition is about the current version of an object.
func isCurrent(object, condition map[string]any) bool {
	metadata, _ := object["metadata"].(map[string]any)
	return fmt.Sprint(condition["observedGeneration"]) == fmt.Sprint(metadata["generation"]) // the former is an integer, or a text
}

// AnalysisError returns the codes and names of the errors that istiod's analysis found in an object, or "". Istiod writes them only if its analysis is enabled.
func AnalysisError(object map[string]any) string {
	var out []string
	for _, m := range statusEntries(object, "validationMessages") {
		if m["level"] != "ERROR" {
			continue
		}
		kind, _ := m["type"].(map[string]any)
		out = append(out, strings.TrimSpace(textOr(kind["code"], "")+" "+textOr(kind["name"], "")))
	}
	return strings.Join(out, ", ")
}

// annotationDryRun, if it is true, means that proxies only record what an AuthorizationPolicy would refuse.
const annotationDryRun = "istio.io/dry-run"

// DryRun reports whether an object is an AuthorizationPolicy that proxies do not enforce because of its annotation. Istio reads the annotation
// as strconv.ParseBool does (pilot/pkg/security/authz/builder/builder.go).
func DryRun(u *unstructured.Unstructured) bool {
	on, err := strconv.ParseBool(u.GetAnnotations()[annotationDryRun])
	return err == nil && on && u.GetKind() == kind
}

// statusEntries returns the objects of a list in the status of an object.
func statusEntries(object map[string]any, field string) []map[string]any {
	status, _ := object["status"].(map[string]any)
	var out []map[string]any
	for _, e := range entries(status[field]) {
		if m, ok := e.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// textOr returns a text that is not empty, or else another one.
func textOr(v any, other string) string {
	if s, ok := v.(string); ok && s != "" {
		return s
	}
	return other
}

package controllers_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
)

// dedicatedGateway is the Gateway of a waypoint that serves one resource, and its account as pods accept it.
const (
	dedicatedGateway = "cache-waypoint"
	waypointAccount  = "*/ns/istio-system/sa/" + dedicatedGateway
)

// waypointPorts are the ports of the pods to which the waypoint connects in the test.
var waypointPorts = []string{"6379", "6380"}

// atWaypoint returns the suffixes of the names of the waypoint's policies for a port.
func atWaypoint(port string) []string {
	return []string{"-waypoint-" + port + "." + dedicatedGateway, "-waypoint-" + port + "-deny." + dedicatedGateway}
}

// waypointScenario is a scenario with a member in ambient.
type waypointScenario struct {
	*scenario
	admin client.Client
	// gatewayKnown is what the test reports as istiod about policies of the Gateway.
	gatewayKnown bool
}

// policy returns an AuthorizationPolicy of the unit in the member, or nil.
func (s *waypointScenario) policy(suffix string) *unstructured.Unstructured {
	s.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("security.istio.io/v1")
	u.SetKind("AuthorizationPolicy")
	err := s.admin.Get(s.ctx, types.NamespacedName{Namespace: federation.IstioPolicy.Namespace, Name: s.object() + suffix}, u)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		s.Fatal(err)
	}
	return u
}

// acceptedPort returns the port on which pods of the member accept the waypoint, or "".
func (s *waypointScenario) acceptedPort() string {
	s.Helper()
	u := s.policy("")
	if u == nil {
		return ""
	}
	rules, _, _ := unstructured.NestedSlice(u.Object, "spec", "rules")
	for _, r := range rules {
		for _, port := range waypointPorts {
			if text := fmt.Sprint(r); strings.Contains(text, waypointAccount) && strings.Contains(text, "ports:["+port+"]") {
				return port
			}
		}
	}
	return ""
}

// accepts reports whether pods of the member accept the waypoint.
func (s *waypointScenario) accepts() bool { return s.acceptedPort() != "" }

// step acts as KubeFed for the objects of the unit, and as istiod for those in the member. It fails if pods accept the waypoint on a port while the
// member lacks one of its policies for this port, or has one for another port.
func (s *waypointScenario) step() {
	s.Helper()
	ofWaypoint := slices.Concat(atWaypoint(waypointPorts[0]), atWaypoint(waypointPorts[1]))
	for _, suffix := range append([]string{"", "-deny"}, ofWaypoint...) {
		s.pushOf(federation.IstioPolicy, s.object()+suffix)
		u := s.policy(suffix)
		if u == nil {
			continue
		}
		condition := map[string]any{"type": "ZtunnelAccepted", "status": "True", "reason": "Accepted"}
		switch {
		case !slices.Contains(ofWaypoint, suffix):
		case s.gatewayKnown:
			condition["type"] = "WaypointAccepted"
		default:
			condition = map[string]any{"type": "WaypointAccepted", "status": "False", "reason": "TargetNotFound", "message": "not bound"}
		}
		condition["observedGeneration"] = strconv.FormatInt(u.GetGeneration(), 10)
		before := fmt.Sprint(u.Object["status"])
		u.Object["status"] = map[string]any{"conditions": []any{condition}}
		if fmt.Sprint(u.Object["status"]) == before {
			continue
		}
		if err := s.admin.Status().Update(s.ctx, u); err != nil && !apierrors.IsConflict(err) {
			s.Fatal(err)
		}
	}
	accepted := s.acceptedPort()
	for _, suffix := range ofWaypoint {
		if there := s.policy(suffix) != nil; accepted != "" && there != slices.Contains(atWaypoint(accepted), suffix) {
			s.Fatalf("pods accept the waypoint on port %s, and its policy %s is there: %t", accepted, suffix, there)
		}
	}
}

// untilState waits until the resource has a state in m2 with a message, and pods accept the waypoint, or do not.
func (s *waypointScenario) untilState(what string, want v1alpha1.MemberState, text string, accepts bool) {
	s.Helper()
	s.until(what, func() string {
		s.step()
		for _, c := range s.protected().Status.Clusters {
			if c.Name == "m2" && c.State == want && strings.Contains(s.message("m2"), text) && s.accepts() == accepts {
				return ""
			}
		}
		return fmt.Sprintf("pods accept the waypoint: %t; %v", s.accepts(), s.protected().Status.Clusters)
	})
}

// TestDedicatedWaypoint checks, in members with real API servers, when pods accept a waypoint that is dedicated to their resource, and when the
// resource is realized behind it: only while its policy is there and istiod reports that the Gateway exists.
func TestDedicatedWaypoint(t *testing.T) {
	f, admin := istioFleet(t)
	s := &waypointScenario{scenario: enforcedBy(t, f, "dedicated", v1alpha1.EnforcerIstio), admin: admin}
	s.distributed("it is realized", bothRealized)
	value := strings.TrimPrefix(string(s.resource()), "trnv1:rsc:trip-com:dedicated:clusters:")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "redis-0", Labels: map[string]string{"com.trip/dedicated": value, "app": "redis"},
			Annotations: map[string]string{"ambient.istio.io/redirection": "enabled"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "redis", Image: "redis"}}},
	}
	if err := admin.Create(s.ctx, pod); err != nil {
		t.Fatal(err)
	}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.9", PodIPs: []corev1.PodIP{{IP: "10.0.0.9"}}}
	if err := admin.Status().Update(s.ctx, pod); err != nil {
		t.Fatal(err)
	}
	s.createIn(admin, definition("gateway.networking.k8s.io", "GatewayClass", "gatewayclasses", "Cluster"))
	s.createIn(admin, definition("gateway.networking.k8s.io", "Gateway", "gateways", "Namespaced"))
	s.createIn(admin, map[string]any{
		"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
		"metadata": map[string]any{"namespace": federation.IstioPolicy.Namespace, "name": dedicatedGateway},
		"spec":     map[string]any{"gatewayClassName": "istio-waypoint"},
	})
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "redis", Labels: map[string]string{
			"istio.io/use-waypoint": dedicatedGateway, "istio.io/use-waypoint-namespace": federation.IstioPolicy.Namespace}},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "redis"}, Ports: []corev1.ServicePort{{Port: 6379}}},
	}
	if err := admin.Create(s.ctx, service); err != nil {
		t.Fatal(err)
	}

	s.declareIstio("m2", `{"dataplane": "ambient", "version": "1.31.2"}`)
	s.untilState("the waypoint is not dedicated", v1alpha1.MemberPending, "default/redis-0 (istio-system/"+dedicatedGateway+")", false)
	s.declareIstio("m2", fmt.Sprintf(`{"dataplane": "ambient", "version": "1.31.2", "waypoints": [{"resource": %q, "gateway": %q, "port": 6379}]}`,
		s.resource(), dedicatedGateway))
	s.untilState("istiod does not know the Gateway", v1alpha1.MemberPending, "not bound", false)
	s.gatewayKnown = true
	s.untilState("the policy of the waypoint is in force", v1alpha1.MemberRealized, "", true)

	beside := s.createIn(admin, map[string]any{
		"apiVersion": "security.istio.io/v1", "kind": "AuthorizationPolicy", "metadata": map[string]any{"namespace": "default", "name": "beside"},
		"spec": map[string]any{"action": "ALLOW", "rules": []any{map[string]any{}}, "targetRefs": []any{map[string]any{"kind": "Service", "name": "redis"}}},
	})
	s.untilState("a policy of others adds to it", v1alpha1.MemberOverridden, "default/beside", true)
	if err := admin.Delete(s.ctx, beside); err != nil {
		t.Fatal(err)
	}
	s.untilState("it is gone", v1alpha1.MemberRealized, "", true)
	s.gatewayKnown = false
	s.untilState("the Gateway is gone", v1alpha1.MemberPending, "not bound", false)
	s.gatewayKnown = true
	s.untilState("it is there again", v1alpha1.MemberRealized, "", true)

	s.declareIstio("m2", fmt.Sprintf(`{"dataplane": "ambient", "version": "1.31.2", "waypoints": [{"resource": %q, "gateway": %q, "port": 6380}]}`,
		s.resource(), dedicatedGateway))
	s.until("the waypoint connects to another port", func() string {
		s.step()
		if port := s.acceptedPort(); port != "6380" {
			return fmt.Sprintf("pods accept it on port %q; %v", port, s.protected().Status.Clusters)
		}
		return ""
	})

	s.declareIstio("m2", `{"dataplane": "ambient", "version": "1.31.2"}`)
	s.untilState("the dedication ends", v1alpha1.MemberPending, "default/redis-0", false)
	s.until("the policies of the waypoint are removed", func() string {
		s.step()
		if s.policy(atWaypoint("6380")[0]) != nil || s.policy(atWaypoint("6380")[1]) != nil || s.policy("-deny") != nil {
			return "they are there"
		}
		return ""
	})
}

package preflight

import (
	"context"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
)

// Labels about waypoints. Source: istio.io/api/label.
const (
	// usedWaypoint and usedWaypointNamespace name the waypoint of a Service, a ServiceEntry or a pod, or of all of these in a namespace.
	usedWaypoint          = "istio.io/use-waypoint"
	usedWaypointNamespace = "istio.io/use-waypoint-namespace"
	// canaryWaypoint and canaryWaypointNamespace name the waypoint of a part of the connections, if there is another one.
	canaryWaypoint          = "istio.io/use-waypoint-canary"
	canaryWaypointNamespace = "istio.io/use-waypoint-canary-namespace"
	// waypointTraffic says of a Gateway, or of the Gateways of a class, of what they carry the connections.
	waypointTraffic = "istio.io/waypoint-for"
	// noWaypoint is the value of the labels for no waypoint, and for no traffic.
	noWaypoint = "none"
	// waypointClass is the class of the waypoints that are Envoys, which apply the kinds of policies that ACP reads.
	waypointClass = "istio-waypoint"
	// gatewayAccount is the annotation of a Gateway that gives its waypoint another service account than that with its name.
	gatewayAccount = "networking.istio.io/service-account"
)

// waypointPage is the number of objects that one request lists.
const waypointPage = 500

var (
	gatewayResource      = schema.GroupVersionResource{Group: gatewayGroup, Version: "v1", Resource: "gateways"}
	gatewayClassResource = schema.GroupVersionResource{Group: gatewayGroup, Version: "v1", Resource: "gatewayclasses"}
	namespaceResource    = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	serviceResource      = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	serviceEntryResource = schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: "serviceentries"}
)

// waypoints contains the waypoints of a member and their users. Istio's rules are in pilot/pkg/serviceregistry/ambient/waypoints.go.
// It is stricter than Istio in two ways: a waypoint also counts before it is ready, and whether its listener admits the namespace
// (allowedRoutes) is not considered.
type waypoints struct {
	// carried describes, by namespace/name, which connections each Gateway would carry as a waypoint.
	carried map[string]carried
	// namespaces contains the labels of the namespaces that name a waypoint.
	namespaces map[string]labels.Set
	// services contains the Services and ServiceEntries that use a waypoint, by namespace.
	services map[string][]service
	// dedicated contains the Gateways that the member dedicates to resources, by name, with the reason why they are not suited, or zero.
	dedicated map[string]message.Message
}

// carried describes which connections a waypoint carries: connections to Services, to the addresses of pods, or both.
type carried struct{ services, pods bool }

// service is a Service or a ServiceEntry that uses a waypoint.
type service struct {
	waypoint string
	selector labels.Set
}

// readWaypoints reads the waypoints of a member and what uses them, or returns the reason why they are not known. A member without
// Gateways has no waypoints, and nothing else is read there.
func readWaypoints(ctx context.Context, c dynamic.Interface, istio Istio) (waypoints, message.Message) {
	out := waypoints{
		carried: map[string]carried{}, namespaces: map[string]labels.Set{}, services: map[string][]service{},
		dedicated: map[string]message.Message{},
	}
	declared := istio.waypoints()
	for name := range declared {
		out.dedicated[name] = message.GatewayAbsent(federation.IstioPolicy.Namespace + "/" + name)
	}
	switch {
	case istio.GatewayAPI:
	case istio.Served || istio.Unread.IsZero():
		return out, message.Message{}
	default:
		return out, istio.Unread
	}
	if why := out.readGateways(ctx, c, declared); !why.IsZero() || len(out.carried) == 0 {
		return out, why
	}
	why := out.readUsers(ctx, c)
	return out, why
}

// readGateways reads the Gateways of a member: which connections each carries as a waypoint, and whether those that the member declares as
// dedicated are suited for that. It returns the reason why they are not known, or zero.
func (w *waypoints) readGateways(ctx context.Context, c dynamic.Interface, declared map[string]bool) message.Message {
	classes := map[string]string{}
	if err := each(ctx, c, gatewayClassResource, "", func(u *unstructured.Unstructured) {
		classes[u.GetName()] = u.GetLabels()[waypointTraffic]
	}); err != nil {
		return unread(err, "GatewayClasses")
	}
	usedBy := map[string]string{} // Gateways of the root namespace by the accounts that they use besides their names
	if err := each(ctx, c, gatewayResource, "", func(u *unstructured.Unstructured) {
		class, _, _ := unstructured.NestedString(u.Object, "spec", "gatewayClassName")
		of, own := u.GetLabels()[waypointTraffic]
		if !own {
			of = classes[class]
		}
		if t := trafficOf(of); t != (carried{}) {
			w.carried[u.GetNamespace()+"/"+u.GetName()] = t
		}
		if u.GetNamespace() != federation.IstioPolicy.Namespace {
			return
		}
		if declared[u.GetName()] {
			w.dedicated[u.GetName()] = unsuited(u)
		}
		for _, account := range accountsOf(u, class) {
			if account != u.GetName() {
				usedBy[account] = u.GetName()
			}
		}
	}); err != nil {
		return unread(err, "Gateways")
	}
	for account, by := range usedBy {
		if why, dedicated := w.dedicated[account]; dedicated && why.IsZero() {
			w.dedicated[account] = message.GatewayAccountShared(account, by)
		}
	}
	return message.Message{}
}

// readUsers reads the namespaces, Services and ServiceEntries that use a waypoint. It returns the reason why they are not known, or zero.
func (w *waypoints) readUsers(ctx context.Context, c dynamic.Interface) message.Message {
	if err := each(ctx, c, namespaceResource, usedWaypoint, func(u *unstructured.Unstructured) {
		w.namespaces[u.GetName()] = u.GetLabels()
	}); err != nil {
		return unread(err, "namespaces")
	}
	selected := ""
	if len(w.namespaces) == 0 {
		selected = usedWaypoint
	}
	for _, kind := range []struct {
		resource schema.GroupVersionResource
		selector []string
		name     string
	}{
		{serviceResource, []string{"spec", "selector"}, "Services"},
		{serviceEntryResource, []string{"spec", "workloadSelector", "labels"}, "ServiceEntries"},
	} {
		if err := each(ctx, c, kind.resource, selected, func(u *unstructured.Unstructured) {
			selector, _, err := unstructured.NestedStringMap(u.Object, kind.selector...)
			for _, name := range []string{w.named(u, usedWaypoint, usedWaypointNamespace), w.named(u, canaryWaypoint, canaryWaypointNamespace)} {
				if err == nil && len(selector) > 0 && w.carried[name].services {
					w.services[u.GetNamespace()] = append(w.services[u.GetNamespace()], service{name, selector})
				}
			}
		}); err != nil {
			return unread(err, kind.name)
		}
	}
	return message.Message{}
}

// each calls do with every object of a kind that has a label; "" means every object. A kind that is not served has no objects.
func each(ctx context.Context, c dynamic.Interface, resource schema.GroupVersionResource, label string, do func(*unstructured.Unstructured)) error {
	options := metav1.ListOptions{Limit: waypointPage, LabelSelector: label}
	for {
		list, err := c.Resource(resource).List(ctx, options)
		switch {
		case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
			return nil
		case err != nil:
			return err
		}
		for i := range list.Items {
			do(&list.Items[i])
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// trafficOf returns what a waypoint with a value of the label carries: without one, connections to Services. A value that this version
// does not know means every connection.
func trafficOf(value string) carried {
	switch value {
	case "", "service":
		return carried{services: true}
	case "workload":
		return carried{pods: true}
	case noWaypoint:
		return carried{}
	}
	return carried{services: true, pods: true}
}

// named returns the waypoint that a label of an object names, or else that of its namespace, as namespace/name; "" if there is none.
// The namespace of an object is also the default namespace of the waypoint.
func (w *waypoints) named(o metav1.Object, name, in string) string {
	set := labels.Set(o.GetLabels())
	if !set.Has(name) {
		set = w.namespaces[o.GetNamespace()]
	}
	if !set.Has(name) || set[name] == noWaypoint {
		return ""
	}
	namespace := o.GetNamespace()
	if set.Has(in) {
		namespace = set[in]
	}
	return namespace + "/" + set[name]
}

// unsuited returns the reason why a Gateway in Istio's root namespace cannot be dedicated to a resource, or zero.
func unsuited(u *unstructured.Unstructured) message.Message {
	if class, _, _ := unstructured.NestedString(u.Object, "spec", "gatewayClassName"); class != waypointClass {
		return message.GatewayClass(class, waypointClass)
	}
	if account, other := u.GetAnnotations()[gatewayAccount]; other && account != u.GetName() {
		return message.GatewayAccount(gatewayAccount, account)
	}
	listeners, _, err := unstructured.NestedSlice(u.Object, "spec", "listeners")
	if err != nil {
		return message.Of(err)
	}
	for _, l := range listeners {
		listener, _ := l.(map[string]any)
		admitted, _, _ := unstructured.NestedMap(listener, "allowedRoutes", "namespaces")
		switch admitted["from"] {
		case "All":
			return message.GatewayAdmitsAll("allowedRoutes.namespaces.from")
		case "Selector":
			if selector, _ := admitted["selector"].(map[string]any); !selectsSome(selector) {
				return message.GatewaySelectsAll("allowedRoutes.namespaces.selector")
			}
		}
	}
	return message.Message{}
}

// selectsSome reports whether a label selector of namespaces requires a label that a namespace does not have by itself. An empty one selects every
// namespace, and so does one that only excludes some, except those.
func selectsSome(selector map[string]any) bool {
	if required, _, err := unstructured.NestedStringMap(selector, "matchLabels"); err == nil && len(required) > 0 {
		return true
	}
	expressions, _, _ := unstructured.NestedSlice(selector, "matchExpressions")
	return slices.ContainsFunc(expressions, func(e any) bool {
		expression, _ := e.(map[string]any)
		return expression["operator"] == "In" || expression["operator"] == "Exists" && expression["key"] != "kubernetes.io/metadata.name"
	})
}

// accountsOf returns the service accounts that the proxies of a Gateway may have: that of its annotation, or else the name of the Gateway, or for most
// classes the name with that of the class. Source: GetDefaultName in pilot/pkg/config/kube/gatewaycommon/gateway_utils.go.
func accountsOf(u *unstructured.Unstructured, class string) []string {
	if account := u.GetAnnotations()[gatewayAccount]; account != "" {
		return []string{account}
	}
	return []string{u.GetName(), u.GetName() + "-" + class}
}

// dedicatedTo returns the name of the Gateway if connections pass it alone, and it is dedicated to a resource and suited; otherwise "".
func (w *waypoints) dedicatedTo(through []string) string {
	if len(through) != 1 {
		return ""
	}
	name, inRoot := strings.CutPrefix(through[0], federation.IstioPolicy.Namespace+"/")
	if why, dedicated := w.dedicated[name]; !inRoot || !dedicated || !why.IsZero() {
		return ""
	}
	return name
}

// of returns the waypoints that connections to a pod pass, sorted: those of the Services that select it, and its own.
func (w *waypoints) of(pod metav1.Object) []string {
	out := map[string]bool{}
	if name := w.named(pod, usedWaypoint, usedWaypointNamespace); w.carried[name].pods {
		out[name] = true
	}
	for _, s := range w.services[pod.GetNamespace()] {
		if !out[s.waypoint] && s.selector.AsSelectorPreValidated().Matches(labels.Set(pod.GetLabels())) {
			out[s.waypoint] = true
		}
	}
	return slices.Sorted(maps.Keys(out))
}

package istio

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// This file translates units for the waypoints that members dedicate to resources.
//
// A pod behind a waypoint sees the waypoint's service account, so its policy allows this account, and the waypoint's policies decide about the
// clients. They apply to the whole Gateway: whatever Service leads through it, including one that was created a moment ago, has the rules of the
// one resource, and nothing else passes. Resources do not share waypoints, because routes and endpoints decide to which pods a waypoint sends the
// clients of a Service, and other people write them. Pods accept the waypoint on one port only, because a waypoint sees the port of the Service
// instead of the pod's. They refuse it on the others, also those that everyone may use, because a deny by name does not see its clients. Until its
// policies are in force, they refuse it on every port. They also do so if the entry that dedicates it cannot be used: a mistake in a declaration must
// not let in the clients of a waypoint.

const (
	// waypointSuffix is in the names of the policies of a waypoint, before the port, denySuffix and the name of the Gateway.
	waypointSuffix = "-waypoint"
	gatewayGroup   = "gateway.networking.k8s.io"
	gatewayKind    = "Gateway"
)

// Waypoint is the dedication of a waypoint, which a Gateway in Istio's root namespace creates, to one resource.
type Waypoint struct {
	// Resource is the exact name of the resource.
	Resource string `json:"resource"`
	// Gateway is the name of the Gateway, which is also the name of the waypoint's service account.
	Gateway string `json:"gateway"`
	// Port is the port of the resource's pods to which the waypoint connects.
	Port int32 `json:"port"`

	// unreadable is the reason why the entry could not be decoded, or "".
	unreadable string
}

// UnusedWaypoint is an entry of a declaration that dedicates nothing, with the reason.
type UnusedWaypoint struct {
	Waypoint
	Reason message.Message
}

// Dedication is what a member declares about the waypoint of a resource.
type Dedication struct {
	// Waypoint is the one that is dedicated to the resource; zero if Unused is set.
	Waypoint Waypoint
	// Unused is the reason why the waypoint that the member declares for the resource is not used, or zero.
	Unused message.Message
	// Refused reports whether pods of the resource refuse the waypoint that is not used.
	Refused bool
}

// Dedications returns what members declare about the waypoint of a resource, by member. Members that declare nothing about it are not listed.
func (c *Config) Dedications(resource string) map[string]Dedication {
	out := map[string]Dedication{}
	for member, m := range c.Members {
		if w := m.WaypointOf(resource); w != (Waypoint{}) {
			out[member] = Dedication{Waypoint: w}
		}
		for _, u := range m.Unused {
			if u.Resource == resource {
				out[member] = Dedication{Unused: u.Reason, Refused: c.profileFor(member, resource).refuses(u.Gateway)}
			}
		}
	}
	return out
}

// WaypointOf returns the waypoint that is dedicated to a resource, or zero.
func (c *Capabilities) WaypointOf(resource string) Waypoint {
	for _, w := range c.Waypoints {
		if w.Resource == resource {
			return w
		}
	}
	return Waypoint{}
}

// unusedOf returns the valid names of the Gateways that unused entries name for a resource, sorted and separated by spaces. The waypoint of such an
// entry may be in front of pods of the resource all the same, for example because it was dedicated to it until now.
func (c *Capabilities) unusedOf(resource string) string {
	var out []string
	for _, u := range c.Unused {
		if u.Resource == resource && len(validation.IsDNS1123Label(u.Gateway)) == 0 {
			out = append(out, u.Gateway)
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), " ")
}

// checkWaypoints returns an error unless each waypoint belongs to one resource.
func (c *Capabilities) checkWaypoints() error {
	for i := range c.Waypoints {
		if why := c.waypointProblem(i); !why.IsZero() {
			return why.Err()
		}
	}
	return nil
}

// waypointProblem returns the reason why an entry of Waypoints cannot be used, or zero. Of entries that contradict each other, none can be.
func (c *Capabilities) waypointProblem(entry int) message.Message {
	w := c.Waypoints[entry]
	other := func(same func(Waypoint) bool) bool {
		first := slices.IndexFunc(c.Waypoints, same)
		return first != entry || slices.ContainsFunc(c.Waypoints[entry+1:], same)
	}
	switch {
	case c.Dataplane != Ambient:
		return message.IstioWaypointDataplane()
	case w.unreadable != "":
		return message.IstioWaypointUnreadable(message.Quoted(w.Resource), w.unreadable)
	case w.Resource == "" || strings.HasSuffix(w.Resource, "*"):
		return message.IstioWaypointResource(message.Quoted(w.Resource))
	case len(validation.IsDNS1123Label(w.Gateway)) > 0:
		return message.IstioWaypointGateway(message.Quoted(w.Gateway))
	case w.Port < 1 || w.Port > 65535:
		return message.IstioWaypointPort(w.Gateway, int(w.Port))
	case other(func(o Waypoint) bool { return o.Resource == w.Resource }):
		return message.IstioWaypointSecond(w.Resource)
	case other(func(o Waypoint) bool { return o.Gateway == w.Gateway }):
		return message.IstioWaypointShared(w.Gateway)
	}
	return message.Message{}
}

// dropWaypoints moves the entries of Waypoints that cannot be used to Unused.
func (c *Capabilities) dropWaypoints() {
	var used []Waypoint
	for i, w := range c.Waypoints {
		if why := c.waypointProblem(i); why.IsZero() {
			used = append(used, w)
		} else {
			c.Unused = append(c.Unused, UnusedWaypoint{Waypoint: w, Reason: why})
		}
	}
	c.Waypoints = used
}

// waypointUse is the resource to which a member dedicates a Gateway.
type waypointUse struct{ member, resource string }

// sharedGateways returns the names of the Gateways that members dedicate to different resources, with two uses of each. The account of a waypoint
// matches any trust domain, so in a mesh of several members, pods of each also accept the waypoints with this name of the others.
func (c *Config) sharedGateways() map[string][2]waypointUse {
	first, shared := map[string]waypointUse{}, map[string][2]waypointUse{}
	for _, member := range slices.Sorted(maps.Keys(c.Members)) {
		for _, w := range c.Members[member].Waypoints {
			use := waypointUse{member, w.Resource}
			before, used := first[w.Gateway]
			switch {
			case !used:
				first[w.Gateway] = use
			case before.resource != use.resource:
				shared[w.Gateway] = [2]waypointUse{before, use}
			}
		}
	}
	return shared
}

// sharedBecause returns the reason why a waypoint cannot be used, which is one of sharedGateways.
func (w Waypoint) sharedBecause(uses [2]waypointUse) message.Message {
	other := uses[0]
	if other.resource == w.Resource {
		other = uses[1]
	}
	return message.IstioWaypointElsewhere(w.Gateway, other.resource, other.member)
}

// dropSharedWaypoints moves the waypoints of sharedGateways to Unused in every member.
func (c *Config) dropSharedWaypoints() {
	shared := c.sharedGateways()
	if len(shared) == 0 {
		return
	}
	for member, m := range c.Members {
		var used []Waypoint
		for _, w := range m.Waypoints {
			if uses, ok := shared[w.Gateway]; ok {
				m.Unused = append(slices.Clone(m.Unused), UnusedWaypoint{Waypoint: w, Reason: w.sharedBecause(uses)})
			} else {
				used = append(used, w)
			}
		}
		m.Waypoints = used
		c.Members[member] = m
	}
}

// account returns the match of the waypoint's service account in a root namespace.
func (w Waypoint) account(rootNamespace string) string {
	return "*/ns/" + rootNamespace + "/sa/" + w.Gateway
}

// carriesOnly reports whether the waypoint connects to all of some ports.
func (w Waypoint) carriesOnly(ports []string) bool {
	return w.Port != 0 && !slices.ContainsFunc(ports, func(p string) bool { return p != strconv.Itoa(int(w.Port)) })
}

// refusal returns the rule by which a pod denies a waypoint every port.
func (w Waypoint) refusal(rootNamespace string) any {
	return rule([]any{source(map[string]any{"principals": []any{w.account(rootNamespace)}})}, nil)
}

// throughWaypoint contains the rules of a member for the connections through a waypoint.
type throughWaypoint struct {
	waypoint Waypoint
	// account is the match of the waypoint's service account.
	account string
	// allow and deny are the rules of the waypoint. They name no port: pods accept the waypoint on its port only.
	allow, deny []any
}

// through returns the rules of the waypoint for the statements about its port.
func (w Waypoint) through(rootNamespace string, allows, denies []expressed) *throughWaypoint {
	return &throughWaypoint{waypoint: w, account: w.account(rootNamespace), allow: rules(w.atGateway(allows)), deny: rules(w.atGateway(denies))}
}

// fromWaypoint returns the rule by which a pod accepts its waypoint, or refuses it on its port.
func (t *throughWaypoint) fromWaypoint() any {
	ports := operation(map[string]any{"ports": []any{strconv.Itoa(int(t.waypoint.Port))}})
	return rule([]any{source(map[string]any{"principals": []any{t.account}})}, []any{ports})
}

// fromWaypointElsewhere returns the rule by which a pod denies its waypoint the other ports.
func (t *throughWaypoint) fromWaypointElsewhere() any {
	ports := operation(map[string]any{"notPorts": []any{strconv.Itoa(int(t.waypoint.Port))}})
	return rule([]any{source(map[string]any{"principals": []any{t.account}})}, []any{ports})
}

// Allows reports whether a spec is that of a policy that allows something with exactly a rule, such as that of enforcer.InterimSpec.
func Allows(spec map[string]any, rule any) bool {
	return spec["action"] == allow && slices.ContainsFunc(entries(spec["rules"]), func(r any) bool { return text(r) == text(rule) })
}

// targetOf returns what the policies of the waypoint of a Gateway refer to.
func targetOf(gateway string) map[string]any {
	return map[string]any{"targetRefs": []any{map[string]any{"group": gatewayGroup, "kind": gatewayKind, "name": gateway}}}
}

// throughGateway contains the policies for the members that dedicate a Gateway with the same name to the resource.
type throughGateway struct{ allowed, denied family }

// newThroughGateway returns the families of the Gateway of a waypoint. The port is part of their names: policies for another port are other objects,
// and a Gateway never has both, because without ports the allows of one would count on the other. The denies have an object although there are none
// yet, because pods accept the waypoint only while every object is there: without it, the first deny would interrupt the connections of all clients.
func newThroughGateway(unit string, w Waypoint) *throughGateway {
	name := fmt.Sprintf("%s%s-%d", unit, waypointSuffix, w.Port)
	return &throughGateway{
		allowed: family{name: name, action: allow, least: 1, gateway: w.Gateway, members: map[string][][]any{}},
		denied:  family{name: name + denySuffix, action: deny, least: 1, gateway: w.Gateway, members: map[string][][]any{}},
	}
}

// HasObject reports whether the object of a unit with a name is one of the policies of the waypoint for its port.
func (w Waypoint) HasObject(unit, name string) bool {
	rest, ok := strings.CutPrefix(name, newThroughGateway(v1alpha1.ObjectPrefix+unit, w).allowed.name)
	return ok && (strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "-")) && strings.HasSuffix(rest, "."+w.Gateway)
}

// name returns the name of the first object.
func (g *throughGateway) name() string { return g.allowed.partName(0) }

// objects returns the names of all objects that decide about the clients of the waypoint.
func (g *throughGateway) objects() []string {
	var out []string
	for _, f := range []*family{&g.allowed, &g.denied} {
		for i := range f.size() {
			out = append(out, f.partName(i))
		}
	}
	return out
}

func (g *throughGateway) add(cluster string, t *throughWaypoint) {
	g.allowed.members[cluster], g.denied.members[cluster] = parts(t.allow), parts(t.deny)
}

// atGateway returns statements with the operations about the waypoint's port, without their ports.
func (w Waypoint) atGateway(statements []expressed) []expressed {
	var out []expressed
	for _, x := range statements {
		var requests []any
		concerned, whole := false, false
		for _, o := range x.operations {
			fields := fieldsOf(o)
			if !slices.Contains(fields.ports, strconv.Itoa(int(w.Port))) {
				continue
			}
			concerned, whole = true, whole || len(fields.requests) == 0
			if len(fields.requests) > 0 {
				requests = append(requests, operation(fields.requests))
			}
		}
		if whole {
			requests = nil
		}
		if concerned {
			out = append(out, expressed{ref: x.ref, peers: x.peers, operations: distinct(requests)})
		}
	}
	return out
}

// direct returns the allows of whole connections, for clients that connect to pods without the waypoint. A source with a deny about requests, which
// only the waypoint enforces, is not let in on its port.
func (w Waypoint) direct(allows, denies []expressed) []expressed {
	out := w.connections(allows)
	for i := range out {
		denied := slices.ContainsFunc(denies, func(d expressed) bool {
			return len(d.operations) > len(w.connections([]expressed{d})) && d.peers.overlap(&out[i].peers)
		})
		if denied {
			out[i].operations = w.withoutPort(out[i].operations)
		}
	}
	return slices.DeleteFunc(out, func(x expressed) bool { return len(x.operations) == 0 })
}

// connections returns statements with only their operations about whole connections.
func (w Waypoint) connections(statements []expressed) []expressed {
	var out []expressed
	for _, x := range statements {
		x.operations = slices.DeleteFunc(slices.Clone(x.operations), func(o any) bool { return len(fieldsOf(o).requests) > 0 })
		if len(x.operations) > 0 {
			out = append(out, x)
		}
	}
	return out
}

// withoutPort returns operations about whole connections without the waypoint's port.
func (w Waypoint) withoutPort(operations []any) []any {
	var out []any
	for _, o := range operations {
		ports := slices.DeleteFunc(fieldsOf(o).ports, func(p string) bool { return p == strconv.Itoa(int(w.Port)) })
		if len(ports) > 0 {
			out = append(out, operation(map[string]any{"ports": list(ports)}))
		}
	}
	return out
}

// operationFieldValues are the fields of an operation that was made here.
type operationFieldValues struct {
	ports []string
	// requests are the fields about requests.
	requests map[string]any
}

func fieldsOf(o any) operationFieldValues {
	out := operationFieldValues{requests: map[string]any{}}
	entry, _ := o.(map[string]any)
	fields, _ := entry["operation"].(map[string]any)
	for name, v := range fields {
		if name != "ports" {
			out.requests[name] = v
			continue
		}
		for _, p := range entries(v) {
			if port, ok := p.(string); ok {
				out.ports = append(out.ports, port)
			}
		}
	}
	return out
}

// blindSpots returns the denies of units with other labels that concern the waypoint's port: a pod with both labels enforces them by the names of
// its clients, which it does not see.
func (w Waypoint) blindSpots(denies []foreignDeny, labelKey string) []unenforcedDeny {
	var out []unenforcedDeny
	port := []v1alpha1.Port{{Port: w.Port}}
	for _, d := range denies {
		if d.labelKey != labelKey && portsOverlap(d.ports, port) {
			d.ports = port
			out = append(out, d.unenforcedDeny)
		}
	}
	return out
}

// allDenies returns the denies of units that are ever enforced, each once for a label, sorted.
func allDenies(units []policy.Unit) []foreignDeny {
	return deniesOf(units, func(st *policy.UnitStatement) []unenforcedDeny {
		return []unenforcedDeny{{ref: st.Ref, ports: tcpPorts(st), peers: intendedSources(st)}}
	})
}

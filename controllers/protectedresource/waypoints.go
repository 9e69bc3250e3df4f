package protectedresource

import (
	"maps"
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/istio"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
)

// This file orders what members have for waypoints. A pod that accepts the account of a waypoint accepts everybody whom the waypoint lets through, so
// the policies of the waypoint come before the rule by which pods accept it, and go after it.

// waypointIn returns the waypoint that a member dedicates to the resource, or zero.
func (f *facts) waypointIn(cluster string) istio.Waypoint { return f.Waypoints[cluster].Waypoint }

// gatewayUser is an object that applies to a waypoint, with its resource, which may be the unit's own.
type gatewayUser struct {
	Resource, Object string
	// Unconfirmed reports whether the object is not placed in the member any more and was not seen there, but may be there.
	Unconfirmed bool
}

// gatewayUsers returns, by member, an object that applies to the waypoint of the resource there, or may do so, and does not belong to the present
// dedication, but to another resource or another port: it is placed there, or was placed there and has not been read as absent since. The allows of
// all policies of a Gateway add up, so the clients of the other resource would reach the pods of this one, and its clients those of the other one,
// and the clients of one port would reach the other port.
func (f *facts) gatewayUsers(host federation.Host, observe func(cluster, key string) federation.Observation) map[string]gatewayUser {
	var all []*federation.Object
	out := map[string]gatewayUser{}
	for _, c := range f.Placement {
		w := f.waypointIn(c)
		if w.Gateway == "" {
			continue
		}
		if all == nil {
			all = host.List()
		}
		for _, e := range all {
			if !appliesTo(e.TemplateSpec, w.Gateway) || !e.WasPlacedIn(c) || e.Resource() == f.Resource && w.HasObject(f.Unit.ID, e.Meta.Name) {
				continue
			}
			seen := observe(c, e.Key())
			if e.IsPlacedIn(c) || !e.SeenWithout(c, seen) {
				user := gatewayUser{Resource: e.Resource(), Object: objectLabel(e.Key()), Unconfirmed: !e.IsPlacedIn(c) && seen.Object == nil}
				if out[c] = user; !user.Unconfirmed {
					break
				}
			}
		}
	}
	return out
}

// appliesTo reports whether a spec is that of a policy of the waypoint of a Gateway.
func appliesTo(spec map[string]any, gateway string) bool {
	targets, _ := spec["targetRefs"].([]any)
	return slices.ContainsFunc(targets, func(t any) bool {
		ref, _ := t.(map[string]any)
		return ref["name"] == gateway
	})
}

// placeableAtGateway reports whether a rendered object may be placed in a member now. One of a waypoint may not while the objects of another
// dedication are there, unless it is there already.
func (f *facts) placeableAtGateway(r *enforcer.Rendered, cluster string) bool {
	if _, used := f.GatewayUsers[cluster]; !used || r.Object.Spec["targetRefs"] == nil {
		return true
	}
	return f.placedObject(cluster, renderedKey(r)) != nil
}

// useInterimSpecs replaces the rendered specs of the members in which the policies of the waypoint are not in force by those without the waypoint.
func (f *facts) useInterimSpecs() {
	f.WaypointNotAccepted = map[string]message.Message{}
	for _, r := range f.renderings() {
		cloned := false
		for c, h := range r.Interim {
			why := f.waypointNotAcceptedReason(c, r, &h)
			if why.IsZero() {
				continue
			}
			if !cloned { // the rendering may be that of another unit, too
				r.Overrides, r.Revisions, cloned = maps.Clone(r.Overrides), maps.Clone(r.Revisions), true
			}
			if r.Overrides == nil {
				r.Overrides, r.Revisions = map[string]map[string]any{}, map[string]string{}
			}
			delete(r.Overrides, c)
			delete(r.Revisions, c)
			if h.Revision != r.Revision {
				r.Overrides[c], r.Revisions[c] = h.Spec, h.Revision
			}
			f.WaypointNotAccepted[c] = why
		}
	}
}

// waypointNotAcceptedReason returns the reason why pods of a member must not accept the waypoint, or zero if they may: no other resource has a policy of it,
// all its policies were read back, nobody changed them, istiod reports that their Gateway exists, and the Gateway is suited. Pods begin to accept it
// with the current versions of the policies. They continue to do so while later versions are on their way, and while the member or its Gateway
// cannot be read.
func (f *facts) waypointNotAcceptedReason(cluster string, r *enforcer.Rendered, h *enforcer.InterimSpec) message.Message {
	gateway := f.waypointIn(cluster).Gateway
	accepted := f.acceptsWaypoint(cluster, h.Rule)
	if other, used := f.GatewayUsers[cluster]; used && (!accepted || !other.Unconfirmed) {
		return message.StateWaypointTaken(gateway, other.Object, other.Resource)
	}
	for _, name := range h.Objects {
		key := renderedKind(r).Key(name)
		held := message.StateWaypointHeld(gateway, objectLabel(key))
		seen := f.Observed.of(cluster, key)
		if !seen.Reachable {
			if accepted {
				return message.Message{}
			}
			return held
		}
		o := seen.Object
		current := o != nil && o.Waypoint.Current && o.Revision == f.renderedRevision(key, cluster)
		if o == nil || !o.Waypoint.Bound || o.Invalid != "" || o.Revision != o.Label || !accepted && !current {
			return held
		}
	}
	in := f.Enforcement[cluster]
	switch {
	case !in.GatewayProblem.IsZero():
		return message.StateWaypointUnsuited(gateway, in.GatewayProblem)
	case !in.GatewayRead && !accepted:
		return message.StateWaypointUnread(gateway)
	}
	return message.Message{}
}

// acceptsWaypoint reports whether a member has, according to the host, a policy of the pods in Enforce with exactly the rule by which they accept the
// waypoint. A policy in Audit contains the rule, too, and accepts nothing.
func (f *facts) acceptsWaypoint(cluster string, rule any) bool {
	return slices.ContainsFunc(f.Existing, func(e *federation.Object) bool { return istio.Allows(e.SpecIn(cluster), rule) })
}

// renderings returns the objects of the dataplanes that the class names, and of those that it no longer names.
func (f *facts) renderings() []*enforcer.Rendered {
	var out []*enforcer.Rendered
	for _, list := range [][]enforcer.Rendered{f.Rendered, f.ReplacedRenderings} {
		for i := range list {
			out = append(out, &list[i])
		}
	}
	return out
}

// renderedRevision returns the revision of a rendered object in a member, or "".
func (f *facts) renderedRevision(key, cluster string) string {
	for _, r := range f.renderings() {
		if renderedKey(r) == key {
			return r.RevisionIn(cluster)
		}
	}
	return ""
}

// waypointProblem returns the reason why connections through the waypoint of the resource are refused in a member, or may be decided by an earlier
// version of its policies, or zero.
func (f *facts) waypointProblem(cluster string) message.Message {
	if !f.enforcedBy(v1alpha1.EnforcerIstio) {
		return message.Message{} // its objects may stay until another enforcer has taken over
	}
	if d := f.Waypoints[cluster]; d.Refused {
		return message.StateWaypointUnused(d.Unused)
	} else if !d.Unused.IsZero() {
		return message.StateWaypointUnknown(d.Unused)
	}
	gateway := f.waypointIn(cluster).Gateway
	if gateway == "" {
		return message.Message{}
	}
	in := f.Enforcement[cluster]
	if !in.GatewayProblem.IsZero() {
		return message.StateWaypointUnsuited(gateway, in.GatewayProblem)
	}
	for i := range f.Rendered {
		r := &f.Rendered[i]
		seen := f.Observed.of(cluster, renderedKey(r)).Object
		if r.Object.Spec["targetRefs"] == nil || seen == nil {
			continue
		}
		switch label := objectLabel(renderedKey(r)); {
		case seen.Waypoint.Problem != "":
			return message.StateWaypointUnbound(label, message.Verbatim(seen.Waypoint.Problem))
		case !seen.Waypoint.Bound:
			return message.StateWaypointHeld(gateway, label)
		case !seen.Waypoint.Current && f.WaypointNotAccepted[cluster].IsZero():
			return message.StateWaypointUnreported(gateway, label)
		}
	}
	if !in.GatewayRead && f.WaypointNotAccepted[cluster].IsZero() {
		return message.StateWaypointUnread(gateway)
	}
	return f.WaypointNotAccepted[cluster]
}

// restrictsWaypoint reports whether an object has to stay in a member because it restricts a waypoint that pods may still accept there: istiod has
// not reported that ztunnel gets the policies of the pods as they are now, or the member may have a policy of the pods that is not rendered any more.
// This does not depend on what the member declares, because ztunnel keeps what it has when the declaration is removed or cannot be parsed.
func (f *facts) restrictsWaypoint(e *federation.Object, cluster string) bool {
	if e.SpecIn(cluster)["targetRefs"] == nil {
		return false
	}
	rendered := map[string]bool{}
	for _, r := range f.renderings() {
		key := renderedKey(r)
		rendered[key] = true
		if _, accepted := f.ztunnelStatus(cluster, key); !accepted {
			return true
		}
	}
	return slices.ContainsFunc(f.Existing, func(o *federation.Object) bool {
		return o.Kind == e.Kind && !rendered[o.Key()] && o.TemplateSpec["targetRefs"] == nil && o.WasPlacedIn(cluster) &&
			(o.IsPlacedIn(cluster) || !o.SeenWithout(cluster, f.Observed.of(cluster, o.Key())))
	})
}

package protectedresource

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/internal/enforcer/istio"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

const (
	waypointResource = "trnv1:rsc:trip-com:web:sites:shop"
	ambientDeclared  = `{"dataplane": "ambient", "version": "1.31", "strictMTLS": true}`
	waypointDeclared = `{"dataplane": "ambient", "version": "1.31", "strictMTLS": true, "waypoints": [{"resource": "` + waypointResource +
		`", "gateway": "shop-waypoint", "port": 8080}]}`
	waypointMark = "*/ns/istio-system/sa/shop-waypoint"
	podsKey      = "istio-system/acp-x"
	atWaypoint   = "istio-system/acp-x-waypoint-8080.shop-waypoint"
	deniesAt     = "istio-system/acp-x-waypoint-8080-deny.shop-waypoint"
	// otherPort is the policy for another port.
	otherPort = "istio-system/acp-x-waypoint-9090.shop-waypoint"
)

// waypointScene is a resource with a waypoint, whose objects are written to one member.
type waypointScene struct {
	t        *testing.T
	existing []*federation.Object
	seen     map[string]*federation.Observed
	declared string
	mode     v1alpha1.Mode // Enforce if it is ""
	app      string
	more     int // allows of whole connections to other ports, each of which is a rule of its own
	bound    bool
	// deniesBound is what istiod reports about the denies of the waypoint, and outdated that its reports are about earlier versions.
	deniesBound, outdated bool
	problem               string
	unread                bool // the Gateways of the member
	gone                  bool
	// others are the objects of other resources on the host, and othersSeen are those that the member has.
	others     []*federation.Object
	othersSeen map[string]bool
}

// recordedObjects are objects on the host.
type recordedObjects struct {
	federation.Host
	list []*federation.Object
}

func (r recordedObjects) List() []*federation.Object { return r.list }

// facts returns the facts about the resource as they are now.
func (s *waypointScene) facts() *facts {
	s.t.Helper()
	mode := cmp.Or(s.mode, v1alpha1.ModeEnforce)
	config := istio.Declared(map[string]istio.Declaration{"m1": {Text: s.declared}})
	e, err := istio.New(config)
	if err != nil {
		s.t.Fatal(err)
	}
	in := policy.Input{
		ResourceClasses: []*v1alpha1.ResourceClass{{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: v1alpha1.ResourceClassSpec{
			Pattern: "trnv1:rsc:trip-com:web:sites:*", LabelKey: "k",
			Actions: []v1alpha1.ClassAction{{Name: "web:read", Ports: []v1alpha1.Port{{Port: 8080}}}}}}},
		Resources: []*v1alpha1.ProtectedResource{{ObjectMeta: metav1.ObjectMeta{Name: "shop"},
			Spec: v1alpha1.ProtectedResourceSpec{Resource: waypointResource, Mode: mode}}},
	}
	f := &facts{
		Resource: waypointResource, Wanted: true, Placement: []string{"m1"}, Clusters: []federation.Cluster{{Name: "m1", Istio: s.declared}},
		Waypoints:    config.Dedications(waypointResource),
		View:         &policycache.View{Snapshot: policy.NewSnapshot(in)},
		NotEnforcing: map[v1alpha1.EnforcerName]map[string]message.Message{}, RenderedIn: map[string][]string{}, Observed: observations{}, Existing: s.existing,
		Unit: policy.Unit{ID: "x", Resource: waypointResource, LabelKey: "k", LabelValue: "v", Mode: mode,
			Enforcers: []v1alpha1.EnforcerName{v1alpha1.EnforcerIstio},
			Statements: []policy.UnitStatement{{Ref: policy.Ref{Policy: "p", SID: "s"}, Effect: policy.Allow,
				Subjects: []policy.UnitSubject{{Name: "n", ServiceAccount: s.app}},
				Actions: []policy.UnitAction{{Name: "web:read", Ports: []v1alpha1.Port{{Port: 8080, Protocol: v1alpha1.ProtocolTCP}},
					HTTP: []v1alpha1.HTTPMatch{{Method: "GET"}}}}},
				{Ref: policy.Ref{Policy: "p", SID: "admin"}, Effect: policy.Allow, Subjects: []policy.UnitSubject{{Name: "n", ServiceAccount: "app-9"}},
					Actions: []policy.UnitAction{{Name: "web:admin", Ports: []v1alpha1.Port{{Port: 9090, Protocol: v1alpha1.ProtocolTCP}}}}}}},
		Enforcement: map[string]enforcement{"m1": {GatewayProblem: message.Verbatim(s.problem), GatewayRead: !s.unread,
			Foreign: map[v1alpha1.EnforcerName]foreignPolicies{v1alpha1.EnforcerIstio: {}}}},
	}
	for i := range int32(s.more) {
		f.Unit.Statements = append(f.Unit.Statements, policy.UnitStatement{Ref: policy.Ref{Policy: "p", SID: fmt.Sprint(i)}, Effect: policy.Allow,
			Subjects: []policy.UnitSubject{{Name: "n", ServiceAccount: "app-9"}},
			Actions:  []policy.UnitAction{{Name: "web:more", Ports: []v1alpha1.Port{{Port: 10000 + i, Protocol: v1alpha1.ProtocolTCP}}}}})
	}
	out, err := e.Render(f.Unit)
	if err != nil {
		s.t.Fatal(err)
	}
	f.Rendered = out.Objects
	for i := range out.Objects {
		if o := &out.Objects[i]; o.Only != nil {
			f.RenderedIn[renderedKey(o)] = o.Only
		}
	}
	for _, key := range []string{podsKey, podsKey + "-2", podsKey + "-deny", atWaypoint, deniesAt, otherPort,
		strings.Replace(otherPort, "9090", "9090-deny", 1)} {
		o := federation.Observation{Registered: true, Reachable: !s.gone}
		if seen := s.seen[key]; seen != nil && !s.gone {
			copied := *seen
			copied.Waypoint.Bound = s.bound && (key == atWaypoint || key == otherPort) || s.deniesBound && strings.Contains(key, "-deny.")
			copied.Waypoint.Current = copied.Waypoint.Bound && !s.outdated
			o.Object = &copied
		}
		f.Observed[key] = map[string]federation.Observation{"m1": o}
	}
	f.GatewayUsers = f.gatewayUsers(recordedObjects{list: slices.Concat(s.existing, s.others)}, func(_, key string) federation.Observation {
		o := federation.Observation{Registered: true, Reachable: !s.gone}
		if s.othersSeen[key] || s.seen[key] != nil {
			o.Object = &federation.Observed{}
		}
		return o
	})
	f.useInterimSpecs()
	return f
}

// step carries out one plan, and returns what it wrote to the member, by key. The member has it afterwards.
func (s *waypointScene) step() map[string]string {
	s.t.Helper()
	f := s.facts()
	p, err := newPlan(f)
	if err != nil {
		s.t.Fatal(err)
	}
	out := map[string]string{}
	for _, w := range p.Writes {
		spec := w.SpecIn("m1")
		out[w.Key()] = fmt.Sprint(spec)
		s.existing = slices.DeleteFunc(slices.Clone(s.existing), func(o *federation.Object) bool { return o.Key() == w.Key() })
		w.Meta.ResourceVersion, w.Propagation.Seen = "1", true
		s.existing = append(s.existing, w)
		if spec == nil {
			delete(s.seen, w.Key())
			continue
		}
		revision := w.RevisionIn("m1")
		s.seen[w.Key()] = &federation.Observed{Name: w.Meta.Name, Revision: revision, Label: revision, Ztunnel: istio.ZtunnelStatus{Reported: true}}
	}
	return out
}

// accepts reports whether pods of the member accept the waypoint.
func (s *waypointScene) accepts() bool {
	for _, o := range s.existing {
		if spec := o.SpecIn("m1"); o.Key() == podsKey && spec["action"] == "ALLOW" {
			return strings.Contains(fmt.Sprint(spec), waypointMark)
		}
	}
	return false
}

// has reports whether the member has the policy of the waypoint.
func (s *waypointScene) has() bool { return s.seen[atWaypoint] != nil }

package protectedresource

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/dataplane"
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/cilium"
	"github.com/acp-io/acp/internal/enforcer/istio"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

const (
	sceneResource = "trnv1:rsc:o:redis:clusters:x"
	sceneApps     = "trnv1:rsc:o:iam:sa:app/"
	redisKey      = "com.trip/redis"
	appKey        = "com.trip/appid"
)

// scene is one resource of a class in a few members, with the real compiler and the real enforcers, and with KubeFed played:
// what a plan writes is in every placed member at once.
type scene struct {
	testing.TB
	enforcers []v1alpha1.EnforcerName
	spec      v1alpha1.ProtectedResourceSpec
	other     v1alpha1.OtherPorts
	allowed   []string // applications
	denied    []string
	requests  []v1alpha1.HTTPMatch // of the action
	placement []v1alpha1.ClusterName
	clusters  []federation.Cluster
	members   Members
	lacking   map[string]string // of Istio
	existing  []*federation.Object
	// dataplanes are what members report.
	dataplanes map[string]*v1alpha1.MemberDataplane
	// away are the members that do not answer.
	away []string
	// odd changes what is found in a member.
	odd map[string]func(*federation.Observation)
	// waves are those of the class, rollout is the stored status, and last are the last reported states.
	waves   []v1alpha1.Wave
	rollout *v1alpha1.RolloutStatus
	last    map[string]v1alpha1.ClusterState
	// elapsed is the time since the beginning.
	elapsed time.Duration
}

func newScene(t testing.TB, members ...string) *scene {
	s := &scene{TB: t, members: sound{}, spec: v1alpha1.ProtectedResourceSpec{Mode: v1alpha1.ModeEnforce}, allowed: []string{"1"},
		enforcers: []v1alpha1.EnforcerName{v1alpha1.EnforcerCilium}}
	for _, m := range members {
		s.join(m)
	}
	return s
}

func (s *scene) join(member string) {
	s.clusters = append(s.clusters, federation.Cluster{Name: member})
	s.placement = append(s.placement, v1alpha1.ClusterName(member))
}

// enforcersOf are all enforcers, whatever the members can do.
type enforcersOf map[string]string

func (enforcersOf) Of(name v1alpha1.EnforcerName, _ *policycache.View, clusters []federation.Cluster, _ time.Time) (enforcer.Enforcer, *dataplane.Reason) {
	if name == v1alpha1.EnforcerCilium {
		return cilium.Enforcer{}, nil
	}
	e, err := istio.New(istio.Config{Default: istio.Capabilities{Dataplane: istio.Sidecar, Version: "1.31", StrictMTLS: true}})
	if err != nil {
		return nil, &dataplane.Reason{Message: message.Of(err)}
	}
	return e, nil
}

func (e enforcersOf) NotEnforcing(name v1alpha1.EnforcerName, _ []federation.Cluster) map[string]message.Message {
	if name == v1alpha1.EnforcerIstio {
		out := map[string]message.Message{}
		for member, why := range e {
			out[member] = message.Verbatim(why)
		}
		return out
	}
	return nil
}

func (enforcersOf) Dedications(string, []federation.Cluster) map[string]istio.Dedication { return nil }

func (s *scene) facts() *facts {
	s.Helper()
	statement := func(sid string, effect v1alpha1.Effect, apps []string) (out []v1alpha1.Statement) {
		for _, a := range apps {
			out = append(out, v1alpha1.Statement{SID: sid + a, Effect: effect, Subjects: []v1alpha1.Subject{v1alpha1.Subject(sceneApps + a)},
				Actions: []v1alpha1.Action{"redis:connect"}, Resources: []v1alpha1.ResourceName{sceneResource}})
		}
		return out
	}
	spec := s.spec
	spec.Resource = sceneResource
	placement := slices.Clone(s.placement)
	in := policy.Input{
		ResourceClasses: []*v1alpha1.ResourceClass{{ObjectMeta: metav1.ObjectMeta{Name: "redis"}, Spec: v1alpha1.ResourceClassSpec{
			Pattern: "trnv1:rsc:o:redis:clusters:*", LabelKey: redisKey, Enforcers: s.enforcers, Placement: v1alpha1.Placement{Clusters: &placement},
			OtherPorts: s.other,
			Actions:    []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379}}, HTTP: s.requests}}}}},
		SubjectClasses: []*v1alpha1.SubjectClass{{ObjectMeta: metav1.ObjectMeta{Name: "app"}, Spec: v1alpha1.SubjectClassSpec{
			Pattern: sceneApps + "*", LabelKey: appKey, ServiceAccountTemplate: "app-{id}"}}},
		Resources: []*v1alpha1.ProtectedResource{{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: spec,
			Status: v1alpha1.ProtectedResourceStatus{Rollout: s.rollout}}},
		Policies: []*v1alpha1.AccessControlPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.AccessControlPolicySpec{
			Statements: slices.Concat(statement("allow", v1alpha1.EffectAllow, s.allowed), statement("deny", v1alpha1.EffectDeny, s.denied))}}},
	}
	if s.waves != nil {
		in.ResourceClasses[0].Spec.Rollout = &v1alpha1.ClassRollout{Waves: s.waves}
	}
	for _, c := range s.clusters {
		in.Clusters = append(in.Clusters, policy.Cluster{Name: c.Name, Labels: map[string]string{}, Dataplane: s.dataplanes[c.Name]})
	}
	var last []v1alpha1.ClusterState
	for _, c := range s.last {
		last = append(last, c)
	}
	f := &facts{
		Resource:     sceneResource,
		Now:          time.Unix(1e9, 0).Add(s.elapsed),
		LastReport:   statuscache.Report{Clusters: last},
		LastStates:   s.last,
		View:         &policycache.View{Snapshot: policy.NewSnapshot(in)},
		Objects:      in.Resources,
		Clusters:     s.clusters,
		Existing:     s.existing,
		NotEnforcing: map[v1alpha1.EnforcerName]map[string]message.Message{},
	}
	if f.Unit, f.Wanted = f.View.CompileResource(sceneResource, f.Now); !f.Wanted {
		s.Fatal("nothing is wanted")
	}
	f.foldWildcards()
	r := s.reconciler()
	r.render(f)
	if f.Problem != nil {
		s.Fatal(f.Problem)
	}
	r.observe(f)
	return f
}

// reconciler returns a reconciler that reads the scene.
func (s *scene) reconciler() *Reconciler {
	return &Reconciler{Enforcers: enforcersOf(s.lacking), Members: s.members, Fleet: sceneFleet{scene: s},
		OpenedBy:       func(v1alpha1.EnforcerName, string, string, string) string { return "" },
		ForeignUnknown: func(v1alpha1.EnforcerName, string) (none message.Message) { return none }}
}

// sceneFleet are the members of a scene, which have what the Federated objects place there.
type sceneFleet struct {
	federation.Members
	scene *scene
}

func (f sceneFleet) Observe(cluster, key string) federation.Observation {
	s := f.scene
	o := federation.Observation{Registered: true, Reachable: !slices.Contains(s.away, cluster)}
	for _, e := range s.existing {
		if e.Key() == key && o.Reachable && slices.Contains(e.Placement, cluster) {
			revision := enforcer.Revision(e.SpecIn(cluster))
			o.Object = &federation.Observed{Name: e.Meta.Name, Revision: revision, Label: revision}
		}
	}
	if change := s.odd[cluster]; change != nil {
		change(&o)
	}
	return o
}

// settle decides and carries out what is decided until nothing is left to do, and returns the last decision's states.
func (s *scene) settle() map[string]v1alpha1.ClusterState {
	s.Helper()
	for range 10 {
		f := s.facts()
		p, err := newPlan(f)
		if err != nil {
			s.Fatal(err)
		}
		for _, w := range p.Writes {
			w.Meta.ResourceVersion, w.Propagation.Seen = "1", true
			s.existing = replace(s.existing, w)
		}
		for _, d := range p.Deletes {
			s.existing = slices.DeleteFunc(s.existing, func(e *federation.Object) bool { return e.Key() == d.Key() })
		}
		if len(p.Writes)+len(p.Deletes) > 0 {
			continue
		}
		out := map[string]v1alpha1.ClusterState{}
		states, _ := f.clusterStates(&outcome{Step: stepApplied, Plan: p, Existing: s.existing}, objectNames(f, &p, s.existing))
		for _, c := range states {
			out[string(c.Name)] = c
		}
		return out
	}
	s.Fatal("it does not settle")
	return nil
}

// closed are the members that an object of a kind closes.
func (s *scene) closed(kind federation.Kind) []string {
	var out []string
	for _, c := range s.clusters {
		for _, e := range s.existing {
			if e.Kind == kind && slices.Contains(e.Placement, c.Name) && closes(kind, e.SpecIn(c.Name)) {
				out = append(out, c.Name)
				break
			}
		}
	}
	return out
}

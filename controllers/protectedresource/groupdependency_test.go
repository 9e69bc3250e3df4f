package protectedresource

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/externalgroup"
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/controllers/writequeue"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/cilium"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/testenv"
)

// writtenHost is a host whose API server takes every object, or refuses it with err. It records the order of the writes in log.
type writtenHost struct {
	federation.Host
	objects map[string]*federation.Object
	err     error
	log     *[]string
}

func (h writtenHost) Get(key string) (*federation.Object, bool) {
	o, ok := h.objects[key]
	return o, ok
}

func (h writtenHost) Apply(_ context.Context, o *federation.Object) (*federation.Object, error) {
	*h.log = append(*h.log, o.Key())
	if h.err != nil {
		return nil, h.err
	}
	h.objects[o.Key()] = o
	return o, nil
}

// twoMembers are members that have nothing.
type twoMembers struct{ federation.Members }

func (twoMembers) Clusters() []federation.Cluster {
	return []federation.Cluster{{Name: "m1"}, {Name: "m2"}}
}

func (twoMembers) Observe(string, string) federation.Observation {
	return federation.Observation{Registered: true, Reachable: true}
}

// TestRevocationsDoNotWaitForGroups checks what is written of a unit whose group cannot be written: whatever only refuses a client, and nothing that
// lets one in because of what is in the group.
func TestRevocationsDoNotWaitForGroups(t *testing.T) {
	const subject = sceneApps + "1"
	group := v1alpha1.ObjectPrefix + policy.UnitID(subject)
	refused := errors.New("the group is refused")
	ports := []v1alpha1.Port{{Port: 6379, Protocol: v1alpha1.ProtocolTCP}}
	spec := func(mode v1alpha1.Mode, external []string, apps ...string) map[string]any {
		u := policy.Unit{ID: "x", Resource: sceneResource, LabelKey: redisKey, LabelValue: "x", Mode: mode, Rules: []policy.Rule{
			{Effect: policy.Allow, Subjects: []policy.SubjectSelector{{LabelKey: appKey, Values: apps}}, External: external, Ports: ports}}}
		r, err := cilium.Enforcer{}.Render(u)
		if err != nil {
			t.Fatal(err)
		}
		return r.Objects[0].Object.Spec
	}
	object := func(of map[string]any, placement ...string) *federation.Object {
		return &federation.Object{Kind: federation.CiliumPolicy, Meta: metav1.ObjectMeta{Name: "acp-x"}, TemplateSpec: of, Placement: placement,
			TemplateLabels: map[string]string{v1alpha1.LabelRevision: enforcer.Revision(of)}}
	}
	addresses := func(texts ...any) *federation.Object {
		annotations := map[string]string{federation.AnnotationResource: subject, federation.AnnotationRevision: "former"}
		return &federation.Object{
			Kind:         federation.CiliumGroup,
			Meta:         metav1.ObjectMeta{Name: group, Annotations: annotations},
			TemplateSpec: map[string]any{"externalCIDRs": texts},
			Placement:    []string{"m1", "m2"},
		}
	}
	external, enforce, audit := []string{policy.UnitID(subject)}, v1alpha1.ModeEnforce, v1alpha1.ModeAudit
	former, revoked := spec(enforce, nil, "2", "3"), spec(enforce, nil, "2")
	granted := spec(enforce, external, "2")
	for name, tc := range map[string]struct {
		reason   string
		was, is  *federation.Object
		had      *federation.Object // the group on the host
		taken    bool               // whether the host takes the group
		priority writequeue.Priority
		// first is what is written first, and want the specs of the unit afterwards.
		first string
		want  map[string]map[string]any
	}{
		"Revoked": {"nothing is opened", object(former, "m1", "m2"), object(revoked, "m1", "m2"), nil, false, writequeue.Revocation,
			"acp-x", map[string]map[string]any{"m1": revoked, "m2": revoked}},
		"Granted": {"the client in the group would be refused for now, but nothing is urgent", object(former, "m1", "m2"), object(granted, "m1", "m2"),
			nil, false, writequeue.Grant, group, map[string]map[string]any{"m1": former, "m2": former}},
		"WithGrant": {"the group does not exist, so its allow lets nobody in", object(former, "m1", "m2"), object(granted, "m1", "m2"), nil, false,
			writequeue.Revocation, "acp-x", map[string]map[string]any{"m1": granted, "m2": granted}},
		"WithGrantOfSmaller": {"the group lacks an address", object(former, "m1", "m2"), object(granted, "m1", "m2"), addresses(), false,
			writequeue.Revocation, "acp-x", map[string]map[string]any{"m1": granted, "m2": granted}},
		"WithGrantOfStale": {"the group has an address that is not the subject's any more", object(former, "m1", "m2"), object(granted, "m1", "m2"),
			addresses("10.9.0.1/32", "10.9.0.2/32"), false, writequeue.Revocation, group, map[string]map[string]any{"m1": former, "m2": former}},
		"WithGrantTaken": {"the group is written first", object(former, "m1", "m2"), object(granted, "m1", "m2"),
			addresses("10.9.0.1/32", "10.9.0.2/32"), true, writequeue.Revocation, group, map[string]map[string]any{"m1": granted, "m2": granted}},
		"JoinedMember": {"the member that joins would refuse the clients in the group", object(spec(enforce, external, "2", "3"), "m1"),
			object(granted, "m1", "m2"), nil, false, writequeue.Revocation, group, map[string]map[string]any{"m1": granted, "m2": nil}},
		"ClosedMember": {"the member that is closed now would refuse the clients in the group", with(object(spec(enforce, external, "2", "3"), "m1", "m2"),
			"m2", spec(audit, external, "2", "3")), object(granted, "m1", "m2"), nil, false, writequeue.Revocation, group,
			map[string]map[string]any{"m1": granted, "m2": spec(audit, external, "2", "3")}},
		"Opened": {"everybody is let in", object(spec(enforce, external, "2"), "m1", "m2"), object(spec(audit, external, "2"), "m1", "m2"),
			addresses("10.9.0.2/32"), false, writequeue.Opening, "acp-x",
			map[string]map[string]any{"m1": spec(audit, external, "2"), "m2": spec(audit, external, "2")}},
	} {
		t.Run(name, func(t *testing.T) {
			index, informers := policycache.New(policycache.NewQueues(clock.RealClock{})), &testenv.Objects{}
			if _, err := index.Listen(t.Context(), informers); err != nil {
				t.Fatal(err)
			}
			for _, o := range []client.Object{
				&v1alpha1.SubjectClass{ObjectMeta: metav1.ObjectMeta{Name: "app"}, Spec: v1alpha1.SubjectClassSpec{Pattern: sceneApps + "*", LabelKey: appKey}},
				&v1alpha1.ExternalWorkload{ObjectMeta: metav1.ObjectMeta{Name: "machine"},
					Spec: v1alpha1.ExternalWorkloadSpec{Subject: subject, Addresses: []string{"10.9.0.1"}}},
			} {
				if err := informers.Change(nil, o); err != nil {
					t.Fatal(err)
				}
			}
			index.SetGroupsSupported(true)
			var writes []string
			groups := writtenHost{objects: map[string]*federation.Object{}, log: &writes}
			if !tc.taken {
				groups.err = refused
			}
			if tc.had != nil {
				groups.objects[group] = tc.had
			}
			policies := writtenHost{objects: map[string]*federation.Object{"acp-x": tc.was}, log: &writes}
			r := &Reconciler{Federated: policies, UpdatePending: func(string) {}, Groups: &externalgroup.Reconciler{Cache: index, Fleet: twoMembers{},
				Federated: groups, Render: cilium.RenderGroup, Effect: cilium.GroupEffectOf, PendingWrites: func(string) {}, Clock: clock.RealClock{}}}
			try := func(was *federation.Object) outcome {
				f := &facts{
					Resource: sceneResource,
					Now:      time.Unix(1e9, 0),
					View:     index.View(),
					Subjects: []string{subject},
					Existing: []*federation.Object{was},
				}
				var err error
				if f.Groups, err = r.Groups.Of(f.View, subject); err != nil || len(f.Groups) != 1 {
					t.Fatal(f.Groups, err)
				}
				f.ObservedGroups = r.observeGroups(f, []string{"m1", "m2"})
				out := outcome{Facts: f, Existing: f.Existing, Plan: plan{Writes: []*federation.Object{tc.is}}}
				out.Err = r.apply(t.Context(), &out, tc.priority)
				return out
			}
			out := try(tc.was)
			if tc.taken != (out.Err == nil) || !tc.taken && !errors.Is(out.Err, refused) || !tc.taken && out.Problem == nil {
				t.Fatalf("%s: %v, problem %v", tc.reason, out.Err, out.Problem)
			}
			got := policies.objects["acp-x"]
			for _, c := range slices.Sorted(maps.Keys(tc.want)) {
				if enforcer.Revision(got.SpecIn(c)) != enforcer.Revision(tc.want[c]) {
					t.Errorf("%s: %s has %v", tc.reason, c, got.SpecIn(c))
				}
				if got.IsPlacedIn(c) && got.RevisionIn(c) != enforcer.Revision(got.SpecIn(c)) {
					t.Errorf("%s: the revision of %s is that of another spec", tc.reason, c)
				}
			}
			if writes[0] != tc.first {
				t.Errorf("%s: written in the order %v", tc.reason, writes)
			}
			if out.Err != nil && tc.priority >= writequeue.Revocation && tc.first == group {
				if writes = nil; try(got).Err == nil || slices.Contains(writes, "acp-x") {
					t.Errorf("%s: a repetition without a change writes %v", tc.reason, writes)
				}
			}
		})
	}
}

// with returns an object with another spec in a member.
func with(o *federation.Object, cluster string, spec map[string]any) *federation.Object {
	o.Overrides = map[string]federation.Override{cluster: {Spec: spec, Labels: map[string]string{v1alpha1.LabelRevision: enforcer.Revision(spec)}}}
	return o
}

package propagation_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/propagation"
	"github.com/acp-io/acp/internal/propagation/kubefed"
)

// registry is a fixed list of members.
type registry []federation.Cluster

func (r registry) Clusters() []federation.Cluster { return r }

func (r registry) Cluster(name string) (federation.Cluster, bool) {
	for _, c := range r {
		if c.Name == name {
			return c, true
		}
	}
	return federation.Cluster{}, false
}

// engine is a direct engine with a fixed report.
type engine struct {
	propagation.Engine
	report federation.Report
}

func (engine) Name() federation.Engine { return federation.EngineDirect }

func (engine) Capabilities() propagation.Capabilities {
	return propagation.Capabilities{Prioritizes: true}
}

func (e engine) Report(*federation.Object, string) federation.Report { return e.report }

// former is an engine that retains what it wrote into one member.
type former struct{ engine }

func (former) Name() federation.Engine { return federation.EngineOCM }

func (former) Retains(_ *federation.Object, cluster string) bool { return cluster == "pulled" }

var fleet = registry{
	{Name: "fed", Engine: federation.EngineKubeFed, Secret: "acp-pusher-fed"},
	{Name: "direct", Engine: federation.EngineDirect, Secret: federation.DirectSecretName("direct")},
	{Name: "moving", Engine: federation.EngineDirect, Secret: "acp-pusher-moving"},
	{Name: "leaving", Engine: federation.EngineDirect, Secret: federation.DirectSecretName("leaving"), ReadyForKubeFed: true},
	{Name: "pulled", Engine: federation.EngineDirect, FormerEngine: federation.EngineOCM, Secret: federation.DirectSecretName("pulled")},
	{Name: "released", Engine: federation.EngineDirect, FormerEngine: federation.EngineOCM, Secret: federation.DirectSecretName("released")},
	{Name: "odd", Engine: "odd", Secret: "acp-pusher-odd"},
}

func object(seen bool, placement ...string) *federation.Object {
	return &federation.Object{Kind: federation.CiliumPolicy, Meta: metav1.ObjectMeta{Name: "acp-x"}, Placement: placement,
		Propagation: federation.Propagation{Seen: seen, Clusters: map[string]string{}}}
}

// TestReport checks which engine is asked about a member, and that a member that KubeFed can still write to is not handled before
// KubeFed has handled the object.
func TestReport(t *testing.T) {
	done := federation.Report{Handled: true, Applied: true}
	engines := propagation.NewEngines(fleet, kubefed.Engine{}, engine{report: done}, former{})
	for _, c := range []struct {
		reason, member string
		seen           bool
		want           federation.Report
	}{
		{"KubeFed has not handled it", "fed", false, federation.Report{}},
		{"KubeFed has handled it", "fed", true, federation.Report{Handled: true}},
		{"another engine", "direct", false, done},
		{"KubeFed may still write there", "moving", false, federation.Report{SharedWith: federation.EngineKubeFed, Applied: true}},
		{"both have handled it", "moving", true, federation.Report{Handled: true, SharedWith: federation.EngineKubeFed, Applied: true}},
		{"KubeFed has not noticed that it lost the member", "leaving", false, federation.Report{SharedWith: federation.EngineKubeFed, Applied: true}},
		{"a work agent may still write there", "pulled", true, federation.Report{SharedWith: federation.EngineOCM, Applied: true}},
		{"a work agent has given up everything", "released", true, done},
		{"an engine that does not exist handles nothing", "odd", true, federation.Report{Reason: propagation.ReasonUnknownEngine}},
		{"a member that is not registered", "gone", true, federation.Report{Handled: true}},
	} {
		if got := engines.Report(object(c.seen), c.member); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.reason, got, c.want)
		}
	}
}

// TestHandled checks that KubeFed is waited for only where it may write.
func TestHandled(t *testing.T) {
	for _, c := range []struct {
		reason    string
		fleet     registry
		placement []string
		seen      bool
		want      bool
	}{
		{"only a direct member has it", fleet, []string{"direct"}, false, true},
		{"a member of KubeFed has it", fleet, []string{"direct", "fed"}, false, false},
		{"a member of KubeFed has it, and KubeFed has handled it", fleet, []string{"direct", "fed"}, true, true},
		{"KubeFed may still write into a member that moves", fleet, []string{"moving"}, false, false},
		{"a member that is not registered may be KubeFed's", fleet, []string{"gone"}, false, false},
		{"no member has it, and KubeFed has members", fleet, nil, false, false},
		{"no member has it, and KubeFed has none", fleet[1:2], nil, false, true},
		{"a fleet without members", nil, nil, false, false},
		{"a fleet that left KubeFed, and a member that is not registered any more", fleet[1:2], []string{"direct", "gone"}, false, true},
	} {
		engines := propagation.NewEngines(c.fleet, kubefed.Engine{}, engine{})
		if got := engines.Handled(object(c.seen, c.placement...)); got != c.want {
			t.Errorf("%s: got %v, want %v", c.reason, got, c.want)
		}
	}
}

// TestStatusOfAFleetThatLeftKubeFed checks that KubeFed's last status of a record, which nothing updates any more, names no member that
// may have the object when no member depends on KubeFed, and that it counts otherwise.
func TestStatusOfAFleetThatLeftKubeFed(t *testing.T) {
	o := object(false, "direct")
	o.Propagation.Clusters["left"] = ""
	for _, c := range []struct {
		reason string
		fleet  registry
		want   []string
	}{
		{"KubeFed may have written there", fleet, []string{"direct", "left"}},
		{"nobody depends on KubeFed", fleet[1:2], []string{"direct"}},
	} {
		store := propagation.Store{Host: records{o: o}, Engines: propagation.NewEngines(c.fleet, kubefed.Engine{}, engine{})}
		got, _ := store.Get("acp-x")
		if ever := got.EverPlaced(); !slices.Equal(ever, c.want) {
			t.Errorf("Get: %s: got %v, want %v", c.reason, ever, c.want)
		}
		if ever := store.List()[0].EverPlaced(); !slices.Equal(ever, c.want) {
			t.Errorf("List: %s: got %v, want %v", c.reason, ever, c.want)
		}
	}
	if len(o.Propagation.Clusters) != 1 {
		t.Error("the shared object was changed")
	}
}

// records is a host with one record.
type records struct {
	federation.Host
	o *federation.Object
}

func (r records) Get(string) (*federation.Object, bool) { return r.o, true }

func (r records) List() []*federation.Object { return []*federation.Object{r.o} }

// TestWithoutPriorities checks for which members the write queue has to hold back objects.
func TestWithoutPriorities(t *testing.T) {
	engines := propagation.NewEngines(fleet, kubefed.Engine{}, engine{})
	got := engines.WithoutPriorities([]string{"direct", "fed", "gone", "odd"})
	if want := []string{"fed", "gone", "odd"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestUsesKubeFedFollowsRegistrations checks that the answer, which is kept, is that about the present registrations.
func TestUsesKubeFedFollowsRegistrations(t *testing.T) {
	direct := federation.Cluster{Name: "m1", Engine: federation.EngineDirect, Secret: federation.DirectSecretName("m1")}
	fleet := &changing{}
	e := propagation.NewEngines(fleet)
	for _, tc := range []struct {
		members registry
		want    bool
	}{
		{nil, true},
		{registry{direct}, false},
		{registry{direct, {Name: "m2"}}, true},
		{registry{{Name: "m2"}}, true},
		{registry{direct}, false},
	} {
		fleet.registry = tc.members
		for range 2 {
			if got := e.UsesKubeFed(); got != tc.want {
				t.Errorf("with %d members: %v, want %v", len(tc.members), got, tc.want)
			}
		}
		if n := testing.AllocsPerRun(10, func() { e.UsesKubeFed() }); n > 0 {
			t.Errorf("with %d members, the answer allocates %v times", len(tc.members), n)
		}
	}
}

// changing is a fleet whose registrations change.
type changing struct{ registry }

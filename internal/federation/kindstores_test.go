package federation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/internal/message"
)

// shelf holds objects of one kind on the host, and records the calls in its log.
type shelf struct {
	kind    Kind
	objects map[string]*Object
	log     []string
	err     error
}

func (s *shelf) State() (bool, error)            { return s.err == nil, s.err }
func (s *shelf) Get(name string) (*Object, bool) { o, ok := s.objects[name]; return o, ok }
func (s *shelf) Of(string) []*Object             { return s.List() }
func (s *shelf) List() []*Object {
	var out []*Object
	for _, o := range s.objects {
		out = append(out, o)
	}
	return out
}
func (s *shelf) Apply(_ context.Context, o *Object) (*Object, error) {
	s.log = append(s.log, "apply "+o.Meta.Name)
	return o, nil
}
func (s *shelf) Delete(_ context.Context, o *Object) error {
	s.log = append(s.log, "delete "+o.Meta.Name)
	return nil
}
func (s *shelf) Registry() (bool, error) { return s.err == nil, s.err }
func (s *shelf) Clusters() []Cluster     { return []Cluster{{Name: s.kind.Target.Kind}} }
func (s *shelf) Observe(cluster, object string) Observation {
	return Observation{Message: message.Verbatim(fmt.Sprintf("%s of %s in %s", s.kind.Target.Kind, object, cluster))}
}
func (s *shelf) Absent(_ context.Context, cluster, object string) (bool, error) {
	s.log = append(s.log, "absent "+object+" in "+cluster)
	return true, nil
}

// Objects of two kinds may have one name; each is found, written and read where its kind is.
func TestKindStoresSeparateKinds(t *testing.T) {
	ctx := t.Context()
	object := func(k Kind) *Object { return &Object{Kind: k, Meta: metav1.ObjectMeta{Name: "acp-one"}} }
	cilium := &shelf{kind: CiliumPolicy, objects: map[string]*Object{"acp-one": object(CiliumPolicy)}}
	mesh := &shelf{kind: IstioPolicy, objects: map[string]*Object{"acp-one": object(IstioPolicy)}, err: errors.New("not installed")}
	c := KindStores{{CiliumPolicy, cilium, cilium}, {IstioPolicy, mesh, mesh}}

	for key, want := range map[string]Kind{"acp-one": CiliumPolicy, "istio-system/acp-one": IstioPolicy} {
		o, ok := c.Get(key)
		if !ok || o.Kind != want || o.Key() != key {
			t.Errorf("%s is %+v", key, o)
		}
		if got, wanted := c.Observe("m1", key).Message.Text, want.Target.Kind+" of acp-one in m1"; got != wanted {
			t.Errorf("%s: observed %q, want %q", key, got, wanted)
		}
	}
	for _, k := range []Kind{CiliumPolicy, IstioPolicy} {
		if _, err := c.Apply(ctx, object(k)); err != nil {
			t.Error(err)
		}
		if err := DeleteAbsent(ctx, c, c, object(k), []string{"m2"}); err != nil {
			t.Error(err)
		}
	}
	want := []string{"apply acp-one", "absent acp-one in m2", "delete acp-one"}
	for _, s := range []*shelf{cilium, mesh} {
		if diff := cmp.Diff(want, s.log); diff != "" {
			t.Errorf("%s: -want +got\n%s", s.kind.Target.Kind, diff)
		}
	}
	if _, err := c.Apply(ctx, object(CiliumGroup)); err == nil {
		t.Error("a kind that nobody carries was written")
	}
	if err := c.Delete(ctx, object(CiliumGroup)); err == nil {
		t.Error("a kind that nobody carries was deleted")
	}
	if n := len(c.List()); n != 2 || len(c.Of("any")) != 2 {
		t.Errorf("%d objects", n)
	}
	if listed, err := c.State(); !listed || err != nil {
		t.Errorf("a host without Istio's kind counts as not listed: %v, %v", listed, err)
	}
	if listed, _ := c.Registry(); !listed || !slices.ContainsFunc(c.Clusters(), func(c Cluster) bool { return c.Name == CiliumPolicy.Target.Kind }) {
		t.Error("the registry is not that of the first kind")
	}
}

// registered is a registry that can look members up.
type registered struct {
	*shelf
	lists int
}

func (r *registered) Clusters() []Cluster {
	r.lists++
	return []Cluster{{Name: "m1"}}
}

func (r *registered) Cluster(name string) (Cluster, bool) { return Cluster{Name: name}, name == "m1" }

// TestKindStoresLookUpMembers checks that looking a member up does not list all of them: every event in one of 100 members looks up all
// 100, so that the time of an event would grow with the square of the members.
func TestKindStoresLookUpMembers(t *testing.T) {
	members := &registered{shelf: &shelf{kind: CiliumPolicy}}
	stores := KindStores{{CiliumPolicy, members.shelf, members}}
	for name, want := range map[string]bool{"m1": true, "m2": false} {
		if c, ok := stores.Cluster(name); ok != want || ok && c.Name != name {
			t.Errorf("%s is found: %t, as %q", name, ok, c.Name)
		}
	}
	if members.lists != 0 {
		t.Errorf("the members were listed %d times", members.lists)
	}
}

package ocm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/acp-io/acp/internal/federation"
)

// movedMember is a registry in which m1 uses another engine now.
type movedMember struct {
	oneMember
	engine federation.Engine
}

func (m movedMember) Clusters() []federation.Cluster {
	return []federation.Cluster{{Name: "m1", Engine: m.engine, FormerEngine: federation.EngineOCM}}
}

func (m movedMember) Cluster(name string) (federation.Cluster, bool) {
	return m.Clusters()[0], name == "m1"
}

// oneRecord is a host with one record.
type oneRecord struct {
	federation.Host
	object *federation.Object
}

func (h oneRecord) Get(string) (*federation.Object, bool) { return h.object, h.object != nil }

// oneObservation is what was read of an object in a member.
type oneObservation struct{ seen *federation.Observation }

func (o oneObservation) Observe(string, string) federation.Observation { return *o.seen }

// TestReleasedWorkNeverCreatesWhatIsToBeAbsent checks what an agent of a member that has moved to another engine may do with an object: it may create
// one that is placed there, if it is missing, because it has to give up that it owns it. It must not create one that is not placed there, with the
// content that the ManifestWork happens to have, and the ManifestWork goes only when the other engine has removed the object.
func TestReleasedWorkNeverCreatesWhatIsToBeAbsent(t *testing.T) {
	there := federation.Observation{Reachable: true, Object: &federation.Observed{}}
	gone, away := federation.Observation{Reachable: true}, federation.Observation{}
	const released, suspended, deleted = createOnly, readOnly, "deleted"
	for _, c := range []struct {
		reason  string
		engine  federation.Engine
		placed  bool
		now     string // the strategy that the ManifestWork has
		handled bool
		seen    federation.Observation
		want    string
	}{
		{"placed, and the agent owns it", federation.EngineDirect, true, "Update", true, there, released},
		{"placed, and the agent has not handled the release", federation.EngineDirect, true, released, false, there, ""},
		{"placed, and released", federation.EngineDirect, true, released, true, there, deleted},
		{"placed again", federation.EngineDirect, true, suspended, true, gone, released},
		{"removed while the agent owns it", federation.EngineDirect, false, "Update", true, there, suspended},
		{"removed before the agent has handled the release", federation.EngineDirect, false, released, false, there, suspended},
		{"the same, and the object is gone", federation.EngineDirect, false, released, false, gone, suspended},
		{"released, and removed before the ManifestWork is", federation.EngineKubeFed, false, released, true, gone, suspended},
		{"the agent may still write", federation.EngineDirect, false, suspended, false, gone, ""},
		{"the member has it still", federation.EngineDirect, false, suspended, true, there, ""},
		{"the member was not read", federation.EngineDirect, false, suspended, true, away, ""},
		{"the member was read without it", federation.EngineDirect, false, suspended, true, gone, deleted},
		{"the member leaves and keeps its objects", federation.EngineNone, false, "Update", true, there, released},
	} {
		t.Run(c.reason, func(t *testing.T) {
			s := newScene(t)
			s.works.config.Members = movedMember{engine: c.engine}
			o := recorded()
			d := desiredOf(t, o, purposeApply)
			u := d.unstructured("n1")
			as := map[string]purpose{released: purposeRelease, suspended: purposeHold, "Update": purposeApply}[c.now]
			u.SetAnnotations(federation.Overlay(u.GetAnnotations(), map[string]string{annotationPurpose: string(as)}))
			spec := u.Object["spec"].(map[string]any)
			spec["manifestConfigs"].([]any)[0].(map[string]any)["updateStrategy"] = map[string]any{"type": c.now}
			if c.now == released {
				spec["deleteOption"] = map[string]any{"propagationPolicy": "Orphan"}
			}
			w := parseWork(u)
			w.applied = c.handled
			s.put(w)
			if !c.placed {
				o.Placement = nil
			}
			var requests []string
			s.host.PrependReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
				switch a := a.(type) {
				case clienttesting.PatchAction:
					var changes []struct {
						Path  string
						Value any
					}
					if err := json.Unmarshal(a.GetPatch(), &changes); err != nil {
						t.Fatal(err)
					}
					for _, p := range changes {
						if strings.HasSuffix(p.Path, "/updateStrategy") {
							requests = append(requests, fmt.Sprint(p.Value.(map[string]any)["type"]))
						}
					}
				case clienttesting.DeleteAction:
					requests = append(requests, deleted)
				}
				return true, &unstructured.Unstructured{}, nil
			})
			e, err := New(Config{Host: oneRecord{object: o}, Works: s.works, Read: oneObservation{&c.seen}, Log: logr.Discard(),
				Revision: func(map[string]any) string { return "r1" }})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := e.handle(t.Context(), place{"m1", o.Key()}); err != nil {
				t.Fatal(err)
			}
			var want []string
			if c.want != "" {
				want = []string{c.want}
			}
			if !slices.Equal(requests, want) {
				t.Errorf("%q, want %q", requests, want)
			}
			if !e.Retains(o, "m1") {
				t.Error("the ManifestWork exists, and the agent does not count as able to write the object")
			}
		})
	}
}

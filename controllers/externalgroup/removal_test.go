package externalgroup

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/internal/federation"
)

// host is a host cluster that records the writes.
type host struct {
	federation.Host
	applied []*federation.Object
	deleted int
}

func (h *host) Apply(_ context.Context, o *federation.Object) (*federation.Object, error) {
	h.applied = append(h.applied, o)
	return o, nil
}

func (h *host) Delete(context.Context, *federation.Object) error {
	h.deleted++
	return nil
}

// uniformMembers is a fleet in which all members have the same observation.
type uniformMembers struct {
	federation.Members
	seen   federation.Observation
	absent bool
}

func (m uniformMembers) Observe(string, string) federation.Observation { return m.seen }

func (m uniformMembers) Absent(context.Context, string, string) (bool, error) { return m.absent, nil }

// TestRemovalWaitsForMembersThatHadTheGroup checks that the object stays on the host until every member that had the group was read
// without it.
func TestRemovalWaitsForMembersThatHadTheGroup(t *testing.T) {
	without := federation.Observation{Registered: true, Reachable: true}
	with := federation.Observation{Registered: true, Reachable: true, Object: &federation.Observed{}}
	unreachable := federation.Observation{Registered: true}
	var unregistered federation.Observation
	for _, c := range []struct {
		reason    string
		placement []string
		ever      string
		forget    string
		handled   bool
		seen      federation.Observation
		absent    bool
		writes    int
		deletes   int
		fails     bool
	}{
		{"first it is placed nowhere", []string{"m1"}, "m1", "", true, with, false, 1, 0, false},
		{"KubeFed has not handled the empty placement", nil, "m1", "", false, without, true, 0, 0, false},
		{"a member still has it", nil, "m1", "", true, with, false, 0, 0, false},
		{"a member is unreachable", nil, "m1", "", true, unreachable, false, 0, 0, false},
		{"a member that is no longer registered was not read", nil, "m1", "", true, unregistered, false, 0, 0, false},
		{"a member whose removal is confirmed", nil, "m1", "m1", true, unregistered, false, 0, 1, false},
		{"a member whose removal is confirmed, and that is registered", nil, "m1", "m1", true, unreachable, false, 0, 0, false},
		{"the cache is stale", nil, "m1", "", true, without, false, 0, 0, true},
		{"no member has it", nil, "m1", "", true, without, true, 0, 1, false},
	} {
		t.Run(c.reason, func(t *testing.T) {
			h := &host{}
			r := &Reconciler{Federated: h, Fleet: uniformMembers{seen: c.seen, absent: c.absent}}
			e := &federation.Object{Kind: federation.CiliumGroup, Placement: c.placement, Propagation: federation.Propagation{Seen: c.handled},
				Meta: metav1.ObjectMeta{Name: "acp-x", Annotations: map[string]string{
					federation.AnnotationEverPlaced: c.ever, federation.AnnotationForget: c.forget}}}
			err := r.remove(t.Context(), e)
			if (err != nil) != c.fails || len(h.applied) != c.writes || h.deleted != c.deletes {
				t.Fatalf("%d writes, %d deletes, %v", len(h.applied), h.deleted, err)
			}
			for _, o := range h.applied {
				if len(o.Placement) > 0 || o.Meta.Annotations[federation.AnnotationEverPlaced] != c.ever {
					t.Errorf("placed in %v, with the former members %q", o.Placement, o.Meta.Annotations[federation.AnnotationEverPlaced])
				}
			}
		})
	}
}

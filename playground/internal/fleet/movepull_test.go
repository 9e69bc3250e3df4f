//go:build ocmagent

package fleet

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/acp-io/acp/internal/federation"
)

var manifestWorks = schema.GroupVersionResource{Group: "work.open-cluster-management.io", Version: "v1", Resource: "manifestworks"}

// TestMoveFromAndToWorkAgent moves a member from the real work agent of Open Cluster Management to the real KubeFed and back, to the direct engine
// and back, and to KubeFed again, while the other member stays with KubeFed. The command and the adapter are killed in the middle of the moves,
// and the agent and KubeFed continue to run in all of them. It probes the same as TestMoveBetweenEngines.
func TestMoveFromAndToWorkAgent(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), moveLimit)
	defer cancel()
	m := startMoving(t, ctx, Config{Guarded: true, Pull: []string{"m1"}})
	m.isMoved("m1", federation.EngineOCM)
	m.hasWorks("m1", true)
	endChurn := m.churn()

	m.moveInPieces("m1", federation.EngineKubeFed)
	m.isMoved("m1", federation.EngineKubeFed)
	m.hasWorks("m1", false)
	m.retain(keptApp)

	m.moveInPieces("m1", federation.EngineOCM)
	m.isMoved("m1", federation.EngineOCM)
	m.hasWorks("m1", true)

	m.moveInPieces("m1", federation.EngineDirect)
	m.isMoved("m1", federation.EngineDirect)
	m.hasWorks("m1", false)

	m.moveInPieces("m1", federation.EngineOCM)
	m.isMoved("m1", federation.EngineOCM)
	m.hasWorks("m1", true)

	m.join("m1", federation.EngineKubeFed)
	m.isMoved("m1", federation.EngineKubeFed)
	m.hasWorks("m1", false)
	endChurn()
	for _, end := range m.ends {
		end()
	}
}

// hasWorks checks whether the host has ManifestWorks for a member, one for each of its policies at least, or none.
func (m *moving) hasWorks(member string, want bool) {
	m.Helper()
	if want {
		m.until("the work agent has every policy", func() error {
			if n := m.works(member); n < m.n {
				return fmt.Errorf("there are %d ManifestWorks for %d policies", n, m.n)
			}
			return nil
		})
		return
	}
	if n := m.works(member); n > 0 {
		m.Errorf("%d ManifestWorks of %s remain on the host", n, member)
	}
}

func (m *moving) works(member string) int {
	m.Helper()
	list, err := m.host.Resource(manifestWorks).Namespace(member).List(m.ctx, metav1.ListOptions{})
	if err != nil {
		m.Fatal(err)
	}
	return len(list.Items)
}

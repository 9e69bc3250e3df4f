package controllers_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/nodereport"
)

// runNodes lets m1 have nodes and acp-node's kind for one test.
func runNodes(s *scenario, names ...string) {
	s.Helper()
	m1 := s.members["m1"].client
	if err := apply(m1, "deploy/node"); err != nil && !apierrors.IsAlreadyExists(err) {
		s.Fatal(err)
	}
	for _, name := range names {
		n := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cilium.io/v2", "kind": "CiliumNode", "metadata": map[string]any{"name": name}}}
		s.until("the node is made", func() string { // the kinds were installed a moment ago
			if err := m1.Create(s.ctx, n); err != nil && !apierrors.IsAlreadyExists(err) {
				return err.Error()
			}
			return ""
		})
		s.Cleanup(func() { _ = m1.Delete(s.ctx, n) })
	}
}

// reportNode writes what acp-node would.
func reportNode(s *scenario, node string, change func(*nodereport.Report)) {
	s.Helper()
	_, o := s.federated()
	r := nodereport.Report{Node: node, Time: s.clock.Now(), Healthy: true,
		Policies: map[string]nodereport.Policy{s.object(): {Revision: o.TemplateLabels[v1alpha1.LabelRevision], Realized: true}}}
	change(&r)
	m1 := s.members["m1"].client
	s.until("the report is written", func() string {
		next, have := r.Object(), &unstructured.Unstructured{}
		have.SetGroupVersionKind(nodereport.Kind)
		err := m1.Get(s.ctx, client.ObjectKey{Name: node}, have)
		switch {
		case apierrors.IsNotFound(err):
			err = m1.Create(s.ctx, next)
			s.Cleanup(func() { _ = m1.Delete(s.ctx, next) })
		case err == nil:
			next.SetResourceVersion(have.GetResourceVersion())
			err = m1.Update(s.ctx, next)
		}
		if err != nil {
			return err.Error()
		}
		return ""
	})
}

func (s *scenario) untilNodes(what string, want v1alpha1.NodeCounts, lagging, unknown []string) {
	s.Helper()
	s.until(what, func() string {
		n := s.protected().Status.Nodes
		if n == nil {
			return "the status has no nodes"
		}
		if n.NodeCounts != want || n.Members != 1 {
			return fmt.Sprintf("%+v", n)
		}
		if want.Realized == want.Total {
			if len(n.Clusters) > 0 {
				return fmt.Sprintf("members %+v", n.Clusters)
			}
			return ""
		}
		if len(n.Clusters) != 1 || n.Clusters[0].Name != "m1" || !slices.Equal(n.Clusters[0].LaggingNodes, lagging) ||
			!slices.Equal(n.Clusters[0].UnknownNodes, unknown) {
			return fmt.Sprintf("members %+v", n.Clusters)
		}
		return ""
	})
}

// m1 runs acp-node, and m2 does not. The reports are written by the test.
func TestNodesAreCounted(t *testing.T) {
	s := enforced(t, "nodes")
	if n := s.protected().Status.Nodes; n != nil {
		t.Fatalf("without acp-node, the status says of nodes %+v", n)
	}
	runNodes(s, "n1", "n2")
	s.untilNodes("no node has reported", v1alpha1.NodeCounts{Total: 2, Unknown: 2}, nil, []string{"n1", "n2"})
	reportNode(s, "n1", func(*nodereport.Report) {})
	s.untilNodes("one node enforces it", v1alpha1.NodeCounts{Total: 2, Realized: 1, Unknown: 1}, nil, []string{"n2"})
	reportNode(s, "n2", func(r *nodereport.Report) {
		r.Policies[s.object()] = nodereport.Policy{Revision: "of-before", Realized: true}
	})
	s.untilNodes("the other has an older revision", v1alpha1.NodeCounts{Total: 2, Realized: 1, Lagging: 1}, []string{"n2"}, nil)
	reportNode(s, "n2", func(*nodereport.Report) {})
	s.untilNodes("both enforce it", v1alpha1.NodeCounts{Total: 2, Realized: 2}, nil, nil)
	reportNode(s, "n2", func(r *nodereport.Report) { r.Healthy, r.Message = false, "the agent is not healthy" })
	s.untilNodes("an agent is not healthy", v1alpha1.NodeCounts{Total: 2, Realized: 1, Unknown: 1}, nil, []string{"n2"})
	s.untilMemberStatus("the MemberCluster names the node", "m1", func(m v1alpha1.MemberClusterStatus) bool {
		n := m.Nodes
		return n != nil && n.Total == 2 && n.Reporting == 1 && n.Unhealthy == 1 && n.Silent == 0 && slices.Equal(n.UnhealthyNodes, []string{"n2"})
	})
	if m := s.memberCluster("m2"); m == nil || m.Status.Nodes != nil {
		t.Errorf("m2 runs no acp-node, and its MemberCluster is %+v", m)
	}
	reportNode(s, "gone", func(*nodereport.Report) {})
	reportNode(s, "n2", func(r *nodereport.Report) { r.Time = r.Time.Add(-nodereport.StaleAfter) })
	s.untilNodes(
		"a report is too old, and that of a node that does not exist does not count",
		v1alpha1.NodeCounts{Total: 2, Realized: 1, Unknown: 1},
		nil,
		[]string{"n2"},
	)
	s.untilStates("the states of the members do not depend on nodes", bothRealized)
}

// A report that is not renewed says nothing any more, although no event comes.
func TestReportOfNodeBecomesOld(t *testing.T) {
	s := enforced(t, "oldreports")
	runNodes(s, "n1")
	reportNode(s, "n1", func(*nodereport.Report) {})
	s.untilNodes("the node enforces it", v1alpha1.NodeCounts{Total: 1, Realized: 1}, nil, nil)
	s.clock.Step(nodereport.StaleAfter + time.Minute)
	s.untilNodes("the report is too old", v1alpha1.NodeCounts{Total: 1, Unknown: 1}, nil, []string{"n1"})
}

package faults

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
)

// These are the names of a resource that is placed in a member whose flows no collector reads.
const (
	uncollected       = "unwatched"
	uncollectedStem   = "trnv1:rsc:trip-com:unwatched:things:"
	uncollectedMember = "m9"
)

// catalogWithUncollected copies the demo's catalog and adds the resource, so that the portal computes its evidence score.
func catalogWithUncollected(from, to string) error {
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return fmt.Errorf("copy the catalog: %w", err)
	}
	entry := fmt.Sprintf(`apiVersion: backstage.io/v1alpha1
kind: Resource
metadata:
  name: %s
  title: Unwatched
  annotations:
    acp.io/resource-name: %s%s
spec:
  type: redis
  owner: user:bob
`, uncollected, uncollectedStem, uncollected)
	if err := os.WriteFile(filepath.Join(to, uncollected+".yaml"), []byte(entry), 0o600); err != nil {
		return fmt.Errorf("add to the catalog: %w", err)
	}
	return nil
}

// placeUncollected places a resource in a member whose flows are collected and in one whose flows are not. The resource is in Observe,
// so nothing is propagated, but the portal must not report enough evidence for it during the outage.
func placeUncollected(ctx context.Context, d *drill) (*outage, string, error) {
	clusters := []v1alpha1.ClusterName{v1alpha1.ClusterName(pick(d.Rand, []string{"m1", "m2"})), uncollectedMember}
	c := &v1alpha1.ResourceClass{ObjectMeta: metav1.ObjectMeta{Name: uncollected}, Spec: v1alpha1.ResourceClassSpec{
		Pattern: uncollectedStem + "*", LabelKey: "com.trip/unwatched", Placement: v1alpha1.Placement{Clusters: &clusters},
		Actions: []v1alpha1.ClassAction{{Name: "unwatched:connect", Ports: []v1alpha1.Port{{Port: 7070, Protocol: v1alpha1.ProtocolTCP}}}},
	}}
	o := &outage{uncollected: true, remaining: 1 + d.IntN(3), end: func(ctx context.Context) error { return d.remove(ctx, c) }}
	return o, fmt.Sprintf("a class in %v", clusters), d.apply(ctx, c)
}

// checkUncollectedEvidence returns an error unless the evidence of the resource is insufficient for Enforce and names the member.
func (d *drill) checkUncollectedEvidence(ctx context.Context) error {
	if d.outage == nil || !d.outage.uncollected {
		return nil
	}
	sessions, err := d.portalSessions(ctx)
	if err != nil {
		return err
	}
	var score struct {
		Value     int  `json:"value"`
		Threshold int  `json:"threshold"`
		Enough    bool `json:"enough"`
		Parts     []struct {
			Points  int `json:"points"`
			Missing struct {
				Text string `json:"text"`
			} `json:"missing"`
		} `json:"parts"`
	}
	if err := sessions[auditor].Call(ctx, http.MethodGet, "/resources/"+uncollected+"/evidence", nil, &score); err != nil {
		return fmt.Errorf("read the evidence of a resource in a member without collected flows: %w", err)
	}
	if score.Enough || score.Value >= score.Threshold {
		err := fmt.Errorf("a resource in a member without collected flows has enough evidence for Enforce: %+v", score)
		d.recordViolation(err.Error())
		return err
	}
	for _, p := range score.Parts {
		if p.Points == 0 && strings.Contains(p.Missing.Text, uncollectedMember) {
			return nil
		}
	}
	return fmt.Errorf("the evidence of a resource does not name the member without collected flows: %+v", score)
}

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

// Names of a resource that is placed in a member whose flows no collector follows.
const (
	unwatched       = "unwatched"
	unwatchedStem   = "trnv1:rsc:trip-com:unwatched:things:"
	unwatchedMember = "m9"
)

// catalogWithUnwatched copies the demo's catalog and adds the resource, so that the portal scores it.
func catalogWithUnwatched(from, to string) error {
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
`, unwatched, unwatchedStem, unwatched)
	if err := os.WriteFile(filepath.Join(to, unwatched+".yaml"), []byte(entry), 0o600); err != nil {
		return fmt.Errorf("add to the catalog: %w", err)
	}
	return nil
}

// placeUnwatched places a resource in a watched member and in one that is not. Nothing of it is pushed, because it is in Observe,
// but for as long as it is placed there the portal must not have full evidence of it.
func placeUnwatched(ctx context.Context, d *drill) (*outage, string, error) {
	clusters := []v1alpha1.ClusterName{v1alpha1.ClusterName(pick(d.Rand, []string{"m1", "m2"})), unwatchedMember}
	c := &v1alpha1.ResourceClass{ObjectMeta: metav1.ObjectMeta{Name: unwatched}, Spec: v1alpha1.ResourceClassSpec{
		Pattern: unwatchedStem + "*", LabelKey: "com.trip/unwatched", Placement: v1alpha1.Placement{Clusters: &clusters},
		Actions: []v1alpha1.ClassAction{{Name: "unwatched:connect", Ports: []v1alpha1.Port{{Port: 7070, Protocol: v1alpha1.ProtocolTCP}}}},
	}}
	o := &outage{unwatched: true, lasts: 1 + d.IntN(3), end: func(ctx context.Context) error { return d.drop(ctx, c) }}
	return o, fmt.Sprintf("a class in %v", clusters), d.put(ctx, c)
}

// unwatchedHonest is an error unless the evidence of the resource is too little for Enforce, and names the member.
func (d *drill) unwatchedHonest(ctx context.Context) error {
	if d.outage == nil || !d.outage.unwatched {
		return nil
	}
	people, err := d.people(ctx)
	if err != nil {
		return err
	}
	var score struct {
		Value     int  `json:"value"`
		Threshold int  `json:"threshold"`
		Enough    bool `json:"enough"`
		Parts     []struct {
			Points  int    `json:"points"`
			Missing string `json:"missing"`
		} `json:"parts"`
	}
	if err := people[auditor].Call(ctx, http.MethodGet, "/resources/"+unwatched+"/evidence", nil, &score); err != nil {
		return fmt.Errorf("read the evidence of a resource in a member that is not watched: %w", err)
	}
	if score.Enough || score.Value >= score.Threshold {
		err := fmt.Errorf("a resource in a member that is not watched has the evidence that Enforce needs: %+v", score)
		d.violated(err.Error())
		return err
	}
	for _, p := range score.Parts {
		if p.Points == 0 && strings.Contains(p.Missing, unwatchedMember) {
			return nil
		}
	}
	return fmt.Errorf("the evidence of a resource does not name the member that is not watched: %+v", score)
}

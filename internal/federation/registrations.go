package federation

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/acp-io/acp/internal/federation/guard"
)

// heldSecret is the Secret of a member that is held. There is none of that name, and nobody may make one.
const heldSecret = "acp-quarantined"

// Registrations keep KubeFed from members, and let it back. A ready member whose kinds KubeFed cannot list stops those kinds
// for all members and ends the process after five minutes; a member that is not ready does not. KubeFed has no switch for
// that, and writes the status itself; but without a Secret it has no client for the member, stops its informers at once,
// and its next health check, which a changed registration begins anew, does not find it ready. Objects in the member stay
// as they are: KubeFed neither updates nor removes anything in a member that is not ready. The adapter has a Secret
// of its own, and goes on reading the member.
type Registrations struct {
	// Host is a client of the host cluster.
	Host dynamic.Interface
	// Namespace holds the KubeFedClusters.
	Namespace string
}

// Suspend keeps KubeFed from a member, and notes why.
func (r Registrations) Suspend(ctx context.Context, cluster, why string) error {
	return r.change(ctx, cluster, func(c Cluster) (secret string, annotations map[string]any, needed bool) {
		return heldSecret, map[string]any{AnnotationHeld: c.Secret, AnnotationHeldBecause: why, AnnotationDowngraded: nil}, !c.Held || c.Why != why || c.Downgrade != nil
	})
}

// SuspendDowngraded keeps KubeFed from a member that is downgraded. Where the member has a guard, KubeFed is refused there,
// object by object and again and again, which takes its time from the other members; without one it would close what was opened.
func (r Registrations) SuspendDowngraded(ctx context.Context, cluster string, mark guard.Downgrade) error {
	text, err := json.Marshal(mark)
	if err != nil {
		return fmt.Errorf("encode the mark of member %s: %w", cluster, err)
	}
	return r.change(ctx, cluster, func(c Cluster) (secret string, annotations map[string]any, needed bool) {
		return heldSecret, map[string]any{AnnotationHeld: c.Secret, AnnotationHeldBecause: mark.String(), AnnotationDowngraded: string(text)},
			!c.Held || c.Downgrade == nil || !c.Downgrade.Same(mark)
	})
}

// Resume lets KubeFed back to a member.
func (r Registrations) Resume(ctx context.Context, cluster string) error {
	return r.change(ctx, cluster, func(c Cluster) (secret string, annotations map[string]any, needed bool) {
		return c.Secret, map[string]any{AnnotationHeld: nil, AnnotationHeldBecause: nil, AnnotationDowngraded: nil}, c.Held
	})
}

// Announce tells KubeFed of a new token: it has another client for the member at once, and lists the member again.
func (r Registrations) Announce(ctx context.Context, cluster, fingerprint string) error {
	return r.change(ctx, cluster, func(c Cluster) (secret string, annotations map[string]any, needed bool) {
		if secret = c.Secret; c.Held {
			secret = heldSecret
		}
		return secret, map[string]any{AnnotationRenewed: fingerprint}, c.Told != fingerprint
	})
}

// change writes exactly the version that was read: nobody's hand in between is undone.
func (r Registrations) change(ctx context.Context, cluster string, decide func(Cluster) (string, map[string]any, bool)) error {
	client := r.Host.Resource(clusterResource).Namespace(r.Namespace)
	u, err := client.Get(ctx, cluster, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read KubeFedCluster %s: %w", cluster, err)
	}
	c, err := ParseCluster(u)
	if err != nil {
		return err
	}
	secret, annotations, needed := decide(c)
	if !needed {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": u.GetResourceVersion(), "annotations": annotations},
		"spec":     map[string]any{"secretRef": map[string]any{"name": secret}},
	})
	if err != nil {
		return fmt.Errorf("encode the change of KubeFedCluster %s: %w", cluster, err)
	}
	if _, err := client.Patch(ctx, cluster, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("change KubeFedCluster %s: %w", cluster, err)
	}
	return nil
}

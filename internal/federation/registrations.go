package federation

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/acp-io/acp/internal/federation/guard"
	"github.com/acp-io/acp/internal/message"
)

// quarantineSecret is the Secret name of a quarantined member. No Secret of that name exists, and none may be created.
const quarantineSecret = "acp-quarantined"

// Registrations quarantine members, which suspends propagation to them, and release them. Every engine reads the quarantine from the registration.
// KubeFed cannot, so that the quarantine also removes its access to the member: a ready member whose kinds
// KubeFed cannot list stops those kinds for all members and ends KubeFed's process after five minutes; a member that is
// not ready does not. KubeFed has no setting for that, and writes the ready status itself. Without a Secret, however, it has
// no client for the member, stops its informers at once, and its next health check, which a changed registration starts
// again, reports the member as not ready. Objects in the member stay as they are, because KubeFed neither updates nor
// removes anything in a member that is not ready. The adapter has a Secret of its own and continues to read the member.
type Registrations struct {
	// Host is a client of the host cluster.
	Host dynamic.Interface
	// Namespace holds the KubeFedClusters.
	Namespace string
}

// Suspend quarantines a member and records the reason.
func (r Registrations) Suspend(ctx context.Context, cluster string, why message.Message) error {
	return r.change(ctx, cluster, func(c Cluster) (secret string, annotations map[string]any, needed bool) {
		return quarantineSecret, map[string]any{
				AnnotationQuarantinedSecret: c.Secret,
				AnnotationQuarantineReason:  why.Text,
				AnnotationQuarantineMessage: why.Encode(),
				AnnotationDowngraded:        nil,
			}, !c.Quarantined || c.QuarantineReason != why ||
				c.DowngradeMark != nil
	})
}

// SuspendDowngraded quarantines a member that is downgraded. If the member has a guard, it refuses every write of
// KubeFed, and the retries would take time from other members; without a guard, KubeFed would close what the downgrade
// opened.
func (r Registrations) SuspendDowngraded(ctx context.Context, cluster string, mark guard.DowngradeMark) error {
	text, err := json.Marshal(mark)
	if err != nil {
		return fmt.Errorf("encode the mark of member %s: %w", cluster, err)
	}
	return r.change(ctx, cluster, func(c Cluster) (secret string, annotations map[string]any, needed bool) {
		return quarantineSecret, map[string]any{
				AnnotationQuarantinedSecret: c.Secret,
				AnnotationQuarantineReason:  mark.String(),
				AnnotationQuarantineMessage: mark.Message().Encode(),
				AnnotationDowngraded:        string(text),
			},
			!c.Quarantined || c.DowngradeMark == nil ||
				!c.DowngradeMark.Same(mark)
	})
}

// Resume ends the quarantine of a member.
func (r Registrations) Resume(ctx context.Context, cluster string) error {
	return r.change(ctx, cluster, func(c Cluster) (secret string, annotations map[string]any, needed bool) {
		return c.Secret, map[string]any{
			AnnotationQuarantinedSecret: nil,
			AnnotationQuarantineReason:  nil,
			AnnotationQuarantineMessage: nil,
			AnnotationDowngraded:        nil,
		}, c.Quarantined
	})
}

// AnnounceToken makes KubeFed read a new token: it creates another client for the member at once, and lists the member
// again.
func (r Registrations) AnnounceToken(ctx context.Context, cluster, fingerprint string) error {
	return r.change(ctx, cluster, func(c Cluster) (secret string, annotations map[string]any, needed bool) {
		if secret = c.Secret; c.Quarantined {
			secret = quarantineSecret
		}
		return secret, map[string]any{AnnotationRenewed: fingerprint}, c.AnnouncedToken != fingerprint
	})
}

// change writes with the resource version that was read, so that no concurrent change is overwritten.
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

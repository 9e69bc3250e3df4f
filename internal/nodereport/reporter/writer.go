package reporter

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"

	"github.com/acp-io/acp/internal/nodereport"
)

// writeTimeout bounds one write.
const writeTimeout = 10 * time.Second

// ObjectWriter writes reports as NodeReports.
type ObjectWriter struct {
	Client dynamic.Interface
	// NodeUID is the UID of the node, which owns the report, so that the report is deleted with it; empty if it is unknown.
	NodeUID types.UID
}

// Write creates or replaces the report of a node.
func (w ObjectWriter) Write(ctx context.Context, r *nodereport.Report) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	reports := w.Client.Resource(nodereport.Resource)
	next := r.Object()
	if w.NodeUID != "" {
		next.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: r.Node, UID: w.NodeUID}})
	}
	have, err := reports.Get(ctx, r.Node, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = reports.Create(ctx, next, metav1.CreateOptions{})
	case err == nil:
		next.SetResourceVersion(have.GetResourceVersion())
		_, err = reports.Update(ctx, next, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("write NodeReport %s: %w", r.Node, err)
	}
	return nil
}

// uidKey is the key of the UID of the node in the claims of a pod's token.
const uidKey = "authentication.kubernetes.io/node-uid"

// NodeUID returns the UID of the node that the API server reads from the pod's own token, or "" if the token does not say.
func NodeUID(ctx context.Context, client authentication.SelfSubjectReviewInterface) (types.UID, error) {
	review, err := client.Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("ask the API server for the pod's node: %w", err)
	}
	if values := review.Status.UserInfo.Extra[uidKey]; len(values) == 1 {
		return types.UID(values[0]), nil
	}
	return "", nil
}

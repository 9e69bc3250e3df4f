package membership

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/internal/federation/preflight"
)

// ErrIsHostCluster is returned by Join.Run and Leave.Run if the cluster that should join or leave is the host cluster itself.
var ErrIsHostCluster = errors.New("the cluster is the host cluster, or was made from a copy of its data")

// refuseHostCluster returns ErrIsHostCluster if a cluster is the host cluster. Accounts and roles of a member have the same names as those of ACP's
// programs on the host, which would be overwritten or removed. A cluster is identified by its namespace kube-system, as its address may
// have several forms.
func (h *Host) refuseHostCluster(ctx context.Context, member *rest.Config) error {
	bounded := rest.CopyConfig(member)
	bounded.Timeout = preflight.Timeout
	client, err := kubernetes.NewForConfig(bounded)
	if err != nil {
		return fmt.Errorf("the member's configuration cannot be used: %w", err)
	}
	own, err := clusterID(ctx, h.core)
	if err != nil {
		return fmt.Errorf("identify the host cluster: %w", err)
	}
	other, err := clusterID(ctx, client)
	if err != nil {
		return fmt.Errorf("identify the member cluster: %w", err)
	}
	if own == other {
		return ErrIsHostCluster
	}
	return nil
}

// clusterID returns the UID of the namespace kube-system, which every API server creates.
func clusterID(ctx context.Context, client kubernetes.Interface) (string, error) {
	namespace, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return string(namespace.UID), nil
}

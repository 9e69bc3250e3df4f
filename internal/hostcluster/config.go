package hostcluster

import (
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Config reads the kubeconfig file of the host cluster; empty: the service account of the pod that the program runs in.
// The errors name the flag --kubeconfig, which every program calls it by.
func Config(kubeconfig string) (*rest.Config, error) {
	if kubeconfig != "" {
		c, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("--kubeconfig %s cannot be used: %w", kubeconfig, err)
		}
		return c, nil
	}
	c, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, errors.New("no --kubeconfig is given, and this is not a pod with a service account: give the host cluster's kubeconfig")
	}
	if err != nil {
		return nil, fmt.Errorf("the pod's service account cannot be used: %w", err)
	}
	return c, nil
}

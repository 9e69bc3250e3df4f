package hostcluster

import (
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Config reads a kubeconfig file of the host cluster; if the name is empty, it uses the service account of the pod in
// which the program runs. Errors name the flag --kubeconfig, which every program has.
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

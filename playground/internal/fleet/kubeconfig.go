package fleet

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	api "k8s.io/client-go/tools/clientcmd/api"
)

// writeKubeconfigs writes one file per program and one per cluster for its administrator.
func (f *Fleet) writeKubeconfigs() error {
	files := map[string]map[string]string{ // file -> cluster -> user
		KubeFed:       {Host: KubeFed},
		Adapter:       {Host: Adapter},
		Portal:        {Host: Portal},
		FlowCollector: {Host: FlowCollector},
		Dataplane:     {},
	}
	for _, c := range Clusters() {
		files[c] = map[string]string{c: Admin}
	}
	for _, m := range Members() {
		files[Dataplane][m] = Dataplane
	}
	for _, m := range f.pull {
		files[AgentOf(m)], files[AgentOf(m)+"-host"] = map[string]string{m: WorkAgent}, map[string]string{Host: WorkAgent}
	}
	for name, clusters := range files {
		config := api.NewConfig()
		for cluster, user := range clusters {
			config.Clusters[cluster] = &api.Cluster{Server: f.url(cluster), CertificateAuthority: f.PKI.ServerCA}
			config.AuthInfos[cluster] = &api.AuthInfo{Token: f.Tokens[cluster][user]}
			config.Contexts[cluster] = &api.Context{Cluster: cluster, AuthInfo: cluster}
			if len(clusters) == 1 {
				config.CurrentContext = cluster
			}
		}
		data, err := clientcmd.Write(*config)
		if err != nil {
			return fmt.Errorf("encode the kubeconfig of %s: %w", name, err)
		}
		if err := writeAtomically(f.Layout.Kubeconfig(name), data); err != nil {
			return fmt.Errorf("write the kubeconfig of %s: %w", name, err)
		}
	}
	return nil
}

// url returns the URL of the API server of a cluster.
func (f *Fleet) url(cluster string) string { return "https://" + f.Ports.Address("apiserver-"+cluster) }

// AdminConfig returns the client configuration of the administrator of a cluster, without a rate limit.
func (f *Fleet) AdminConfig(cluster string) *rest.Config {
	return &rest.Config{
		Host:            f.url(cluster),
		BearerToken:     f.Tokens[cluster][Admin],
		TLSClientConfig: rest.TLSClientConfig{CAFile: f.PKI.ServerCA},
		QPS:             -1, // the playground's setup may use its own servers without a limit
		UserAgent:       "acp-playground",
		// The warnings concern formats in the CRDs of Cilium and KubeFed, which cannot be changed here.
		WarningHandler: rest.NoWarnings{},
	}
}

package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/acp-io/acp/internal/federation/membership"
	"github.com/acp-io/acp/internal/federation/preflight"
	"github.com/acp-io/acp/internal/manifest"
)

// hostFlags name the host cluster and where things are in it.
type hostFlags struct {
	streams              Streams
	kubeconfig, context  string
	kubeFed, credentials string
}

func (h *hostFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&h.kubeconfig, "kubeconfig", "", "`FILE` to reach the host cluster with; empty: as kubectl does")
	f.StringVar(&h.context, "context", "", "`NAME` of the host cluster's context; empty: the current one")
	f.StringVar(&h.kubeFed, "kubefed-namespace", "kube-federation-system", "`NAMESPACE` of the KubeFedClusters on the host")
	f.StringVar(&h.credentials, "credentials-namespace", "acp-system", "`NAMESPACE` of the adapter's Secrets on the host")
}

// kubeconfig reads a context of a kubeconfig.
func kubeconfig(file, context string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = file
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: context}).ClientConfig()
	if err != nil {
		return nil, invalid(fmt.Errorf("read the kubeconfig: %w", err))
	}
	config.UserAgent = "kubectl-acp"
	return config, nil
}

func (h *hostFlags) host() (*membership.Host, *rest.Config, error) {
	config, err := kubeconfig(h.kubeconfig, h.context)
	if err != nil {
		return nil, nil, err
	}
	host, err := membership.NewHost(config, h.kubeFed, h.credentials)
	if err != nil {
		return nil, nil, invalid(err)
	}
	return host, config, nil
}

// keys are the labels that the host's classes select pods by.
func keys(cmd *cobra.Command, config *rest.Config) ([]preflight.Key, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, invalid(fmt.Errorf("the host cluster's configuration cannot be used: %w", err))
	}
	set, err := manifest.FromCluster(cmd.Context(), client)
	if err != nil {
		return nil, invalid(err)
	}
	return preflight.Keys(set.Input.ResourceClasses, set.Input.SubjectClasses), nil
}

func newCluster(s Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "cluster", Short: "Make clusters members, check them, and take them out", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(newClusterCheck(s), newClusterJoin(s), newClusterLeave(s))
	return cmd
}

// findings writes what preflight found.
func (o *output) findings(w io.Writer, found []preflight.Finding) error {
	if o.format != asTable {
		if found == nil {
			found = []preflight.Finding{}
		}
		return o.document(w, found)
	}
	if len(found) == 0 {
		return write(w, []byte("nothing speaks against it\n"))
	}
	rows := [][]string{{"SEVERITY", "CODE", "WHAT", "DO"}}
	for _, f := range found {
		rows = append(rows, []string{string(f.Severity), f.Code, f.Message, f.Do})
	}
	return table(w, rows)
}

// step writes one line for what was done.
func (s Streams) step(x membership.Step) {
	fmt.Fprintf(s.Out, "%s: %s %s\n", x.In, x.Object, x.Done)
}

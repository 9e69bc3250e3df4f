package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/acp-io/acp/internal/federation/membership"
	"github.com/acp-io/acp/internal/federation/preflight"
	"github.com/acp-io/acp/internal/manifest"
	"github.com/acp-io/acp/internal/propagation/ocm"
)

// hostFlags select the host cluster and the namespaces in it.
type hostFlags struct {
	streams              Streams
	kubeconfig, context  string
	kubeFed, credentials string
}

func (h *hostFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	hostClusterFlags(cmd, &h.kubeconfig, &h.context)
	f.StringVar(&h.kubeFed, "kubefed-namespace", "kube-federation-system", "`NAMESPACE` of the KubeFedClusters on the host")
	f.StringVar(&h.credentials, "credentials-namespace", "acp-system", "`NAMESPACE` of the adapter's Secrets on the host")
}

// Environment variables for the host cluster, used if the flags are not given. They do not apply to member clusters, so that a member
// is not changed by mistake.
const (
	envKubeconfig = "ACP_KUBECONFIG"
	envContext    = "ACP_CONTEXT"
)

// hostClusterFlags adds the flags that name the host cluster.
func hostClusterFlags(cmd *cobra.Command, file, context *string) {
	cmd.Flags().StringVar(file, "kubeconfig", "", "kubeconfig `FILE` of the host cluster (default: $"+envKubeconfig+", then that of kubectl)")
	cmd.Flags().StringVar(context, "context", "", "`NAME` of the host cluster's context (default: $"+envContext+", then the current context)")
}

// hostKubeconfig reads the configuration of the host cluster.
func hostKubeconfig(file, context string) (*rest.Config, error) {
	return kubeconfig(either(file, os.Getenv(envKubeconfig)), either(context, os.Getenv(envContext)))
}

// memberKubeconfig reads the configuration of a member cluster, whose context may be in the file of the host cluster.
func (h *hostFlags) memberKubeconfig(file, context string) (*rest.Config, error) {
	return kubeconfig(either(either(file, h.kubeconfig), os.Getenv(envKubeconfig)), context)
}

// kubeconfig loads a context of a kubeconfig.
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
	config, err := hostKubeconfig(h.kubeconfig, h.context)
	if err != nil {
		return nil, nil, err
	}
	host, err := membership.NewHost(config, h.kubeFed, h.credentials)
	if err != nil {
		return nil, nil, invalid(err)
	}
	return host, config, nil
}

// keys returns the labels by which the host's classes select pods.
func keys(cmd *cobra.Command, config *rest.Config) ([]preflight.Key, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, invalid(fmt.Errorf("the host cluster's configuration cannot be used: %w", err))
	}
	set, err := manifest.FromCluster(cmd.Context(), client)
	if errors.Is(err, manifest.ErrNoKinds) {
		return nil, invalid(
			fmt.Errorf("%w: choose the context of ACP's host cluster with --context, or install ACP there (docs/install.md)", manifest.ErrNoKinds),
		)
	}
	if err != nil {
		return nil, invalid(err)
	}
	return preflight.LabelKeys(set.Input.ResourceClasses, set.Input.SubjectClasses), nil
}

// withRemedy returns an error of package membership with the exit code and with what to do about it.
func withRemedy(name string, err error) error {
	switch {
	case errors.Is(err, membership.ErrIsHostCluster):
		return invalid(fmt.Errorf("%w: give --member-context with the context of the cluster that should be the member", err))
	case errors.Is(err, membership.ErrNameTaken):
		return invalid(
			fmt.Errorf("%w: if it is the same cluster, correct apiEndpoint or caBundle of KubeFedCluster %s; otherwise choose another name", err, name),
		)
	case errors.Is(err, membership.ErrProfileMismatch):
		return invalid(fmt.Errorf("%w: name the ClusterProfile of this cluster, or leave out --from-profile", err))
	case errors.Is(err, ocm.ErrUnknownCluster):
		return invalid(fmt.Errorf("%w: register %s with Open Cluster Management first, and accept it (clusteradm join, clusteradm accept)", err, name))
	case errors.Is(err, ocm.ErrNoAnswer):
		return invalid(fmt.Errorf("%w: check that the work agent runs in %s and reaches the host, and repeat the command", err, name))
	case errors.Is(err, membership.ErrReaderNeeded):
		return usage("%w: leave out --without-reader, or choose --engine ocm", err)
	case errors.Is(err, membership.ErrNotReleased):
		return &failure{code: ExitFindings, err: fmt.Errorf("%s: %w; then repeat the command", name, err)}
	case errors.Is(err, membership.ErrOtherAgent):
		return invalid(fmt.Errorf("%w: use the name of the ManagedCluster of this cluster", err))
	case errors.Is(err, membership.ErrUnread):
		return &failure{code: ExitFindings, err: fmt.Errorf("%s: %w: if it is gone, or ACP never reached it, repeat the command with --force", name, err)}
	case errors.Is(err, membership.ErrNotEmpty):
		return &failure{code: ExitFindings, err: fmt.Errorf("%s: %w", name, err)}
	}
	return invalid(err)
}

func newCluster(s Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "cluster", Short: "List the members, register clusters as members, check them, and remove them", Args: onlyCommands,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(newClusterCheck(s), newClusterJoin(s), newClusterLeave(s), newClusterList(s))
	return cmd
}

// findings prints the findings of the preflight.
func (o *output) findings(w io.Writer, found []preflight.Finding) error {
	if o.format != asTable {
		if found == nil {
			found = []preflight.Finding{}
		}
		return o.document(w, found)
	}
	if len(found) == 0 {
		return write(w, []byte("no findings\n"))
	}
	rows := [][]string{{"SEVERITY", "CODE", "WHAT", "DO"}}
	for _, f := range found {
		rows = append(rows, []string{string(f.Severity), f.Code, f.Message.Render(language()), f.Remedy.Render(language())})
	}
	return table(w, rows)
}

// step prints one line about a completed step.
func (s Streams) step(x membership.Step) {
	fmt.Fprintf(s.Out, "%s: %s %s\n", x.In, x.Object, x.Outcome)
}

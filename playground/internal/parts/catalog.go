package parts

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Part is one nested module and the programs that are built from it.
type Part struct {
	Name string
	// Dir is the module's folder below the repository root.
	Dir string
	// Programs maps the name of a binary to its package.
	Programs map[string]string
	// Expect tells a person how long the first build takes.
	Expect string
	// Stamp, when set, returns linker flags that tell the programs their version.
	Stamp func(ctx context.Context, moduleDir string) (string, error)
	// Local says that the module holds sources of its own, which then belong to the cache key.
	Local bool
	// After adds files beside the programs; it gets the module's folder and the folder to fill.
	After func(ctx context.Context, moduleDir, out string) error
	// Assets names the files that an externally provided folder (KUBEBUILDER_ASSETS) must hold to replace the build.
	Assets []string
}

// The names of the parts.
const (
	Kubernetes   = "kubernetes"
	KubeFed      = "kubefed"
	Dataplane    = "dataplane"
	Konnectivity = "konnectivity"
)

// The names of the programs and files that the parts provide.
const (
	KubeAPIServer = "kube-apiserver"
	Etcd          = "etcd"
	Hyperfed      = "hyperfed"
	KubeFedCRDs   = "kubefed-crds.yaml"
	ACPDataplane  = "acp-dataplane"
	ProxyServer   = "proxy-server"
	ProxyAgent    = "proxy-agent"
)

// ForTests lists the parts that no fleet needs, and some tests do.
func ForTests() []Part {
	return []Part{{
		Name:     Konnectivity,
		Dir:      "playground/parts/konnectivity",
		Programs: map[string]string{ProxyServer: "sigs.k8s.io/apiserver-network-proxy/cmd/server", ProxyAgent: "sigs.k8s.io/apiserver-network-proxy/cmd/agent"},
		Expect:   "about 1 min the first time",
	}}
}

// All lists the parts of a fleet in the order in which they are built: the longest first.
func All() []Part {
	return []Part{
		{
			Name:     Kubernetes,
			Dir:      "playground/parts/kubernetes",
			Programs: map[string]string{KubeAPIServer: "k8s.io/kubernetes/cmd/kube-apiserver", Etcd: "go.etcd.io/etcd/server/v3"},
			Expect:   "about 5 min the first time",
			Stamp:    stampKubernetes,
			Assets:   []string{KubeAPIServer, Etcd},
		},
		{
			Name:     Dataplane,
			Dir:      "playground/dataplane",
			Programs: map[string]string{ACPDataplane: "./cmd/acp-dataplane"},
			Expect:   "about 5 min the first time",
			Local:    true,
		},
		{
			Name:     KubeFed,
			Dir:      "playground/parts/kubefed",
			Programs: map[string]string{Hyperfed: "sigs.k8s.io/kubefed/cmd/hyperfed"},
			Expect:   "about 2 min the first time",
			After:    copyKubeFedCRDs,
		},
	}
}

// Select returns the named parts, or all when no name is given.
func Select(names ...string) ([]Part, error) {
	if len(names) == 0 {
		return All(), nil
	}
	var out []Part
	for _, name := range names {
		found := false
		for _, p := range All() {
			if p.Name == name {
				out, found = append(out, p), true
			}
		}
		if !found {
			return nil, fmt.Errorf("there is no part %q; there are %s, %s, %s", name, Kubernetes, Dataplane, KubeFed)
		}
	}
	return out, nil
}

// copyKubeFedCRDs takes KubeFed's own CRDs from the version of its module that is built.
func copyKubeFedCRDs(ctx context.Context, moduleDir, out string) error {
	dir, err := goOutput(ctx, moduleDir, "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kubefed")
	if err != nil {
		return fmt.Errorf("find the sources of KubeFed: %w", err)
	}
	crds, err := os.ReadFile(filepath.Join(dir, "charts/kubefed/charts/controllermanager/crds/crds.yaml"))
	if err != nil {
		return fmt.Errorf("read the CRDs of KubeFed: %w", err)
	}
	return os.WriteFile(filepath.Join(out, KubeFedCRDs), crds, 0o644)
}

// stampKubernetes tells the API server its version, as the releases' own build does.
func stampKubernetes(ctx context.Context, moduleDir string) (string, error) {
	version, err := goOutput(ctx, moduleDir, "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	if err != nil {
		return "", fmt.Errorf("ask for the version of Kubernetes: %w", err)
	}
	numbers := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(numbers) != 3 {
		return "", fmt.Errorf("unexpected version of Kubernetes %q", version)
	}
	const pkg = "k8s.io/component-base/version"
	return fmt.Sprintf("-X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s", pkg, version, numbers[0], numbers[1]), nil
}

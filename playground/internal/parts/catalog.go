package parts

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Part is one nested module with the programs that are built from it, or a set of Debian packages.
type Part struct {
	Name string
	// Dir is the module's folder below the repository root.
	Dir string
	// Programs maps the name of a binary to its package.
	Programs map[string]string
	// Expect is a text for the user about the duration of the first build.
	Expect string
	// Stamp, when set, returns linker flags that set the version of the programs.
	Stamp func(ctx context.Context, moduleDir string) (string, error)
	// Local reports whether the module has sources of its own, which are then part of the cache key.
	Local bool
	// After adds files to the folder of the programs. It is called with the folder of the module and the folder to fill.
	After func(ctx context.Context, moduleDir, out string) error
	// Packages, when set, makes the part of Debian packages instead of programs that are built: these, and those that they
	// depend on and that the machine lacks, are fetched and unpacked into one tree. Nothing is installed.
	Packages []string
	// Links are symbolic links of a part of packages, which the packages' own installation would make: path to target.
	Links map[string]string
	// Assets names the files that an externally provided folder (KUBEBUILDER_ASSETS) must hold to replace the build.
	Assets []string
}

// These are the names of the parts.
const (
	Kubernetes   = "kubernetes"
	KubeFed      = "kubefed"
	Dataplane    = "dataplane"
	Konnectivity = "konnectivity"
	Istio        = "istio"
	Mesh         = "mesh"
	OCM          = "ocm"
)

// These are the names of the parts of a real node; see ForNodes.
const (
	KubernetesNode = "kubernetes-node"
	Cilium         = "cilium"
	// CiliumPrevious is the previous minor version of Cilium, from which a test upgrades.
	CiliumPrevious = "cilium-previous"
	CoreDNS        = "coredns"
	NodeImages     = "node-images"
	NodePackages   = "node-packages"
)

// These are the names of the programs and files that the parts provide.
const (
	KubeAPIServer = "kube-apiserver"
	Etcd          = "etcd"
	Hyperfed      = "hyperfed"
	KubeFedCRDs   = "kubefed-crds.yaml"
	ACPDataplane  = "acp-dataplane"
	ProxyServer   = "proxy-server"
	ProxyAgent    = "proxy-agent"
	OCMWorkAgent  = "ocm-work-agent"
	Istiod        = "istiod"
	IstioCRDs     = "istio-crds.yaml"
	ACPMesh       = "acp-mesh"

	Kubelet               = "kubelet"
	KubeControllerManager = "kube-controller-manager"
	KubeScheduler         = "kube-scheduler"
	Kubectl               = "kubectl"
	CiliumAgent           = "cilium-agent"
	CiliumOperator        = "cilium-operator"
	CiliumCNI             = "cilium-cni"
	CiliumDebug           = "cilium-dbg"
	CiliumHealthResponder = "cilium-health-responder"
	// CiliumBPF is a folder: the sources of the datapath, which the agent compiles for the node.
	CiliumBPF     = "bpf"
	CoreDNSServer = "coredns"
	Pause         = "pause"
	NodeProbe     = "node-probe"
)

// NodeProbeImage is the image of NodeProbe, which every real node has.
const NodeProbeImage = "registry.local/acp-node/node-probe:1"

// ForTests returns the parts that only tests need.
func ForTests() []Part {
	return []Part{{
		Name:     Konnectivity,
		Dir:      "playground/parts/konnectivity",
		Programs: map[string]string{ProxyServer: "sigs.k8s.io/apiserver-network-proxy/cmd/server", ProxyAgent: "sigs.k8s.io/apiserver-network-proxy/cmd/agent"},
		Expect:   "about 1 min the first time",
	}, {
		Name:     OCM,
		Dir:      "playground/parts/ocm",
		Programs: map[string]string{OCMWorkAgent: "./cmd/ocm-work-agent"},
		Expect:   "about 5 min the first time",
		Local:    true,
	}, ciliumPart(CiliumPrevious)}
}

// ForIstio returns the parts of members in which Istio runs.
func ForIstio() []Part {
	return []Part{{
		Name:     Istio,
		Dir:      "playground/parts/istio",
		Programs: map[string]string{Istiod: "istio.io/istio/pilot/cmd/pilot-discovery"},
		Expect:   "about 10 min the first time",
		After:    copyIstioCRDs,
	}, {
		Name:     Mesh,
		Dir:      "playground/mesh",
		Programs: map[string]string{ACPMesh: "./cmd/acp-mesh"},
		Expect:   "about 1 min the first time",
		Local:    true,
	}}
}

// ciliumPart returns the part with the version of Cilium that the module of this name selects.
func ciliumPart(name string) Part {
	return Part{
		Name: name,
		Dir:  "playground/parts/" + name,
		Programs: map[string]string{
			CiliumAgent: "github.com/cilium/cilium/daemon", CiliumOperator: "github.com/cilium/cilium/operator",
			CiliumCNI: "github.com/cilium/cilium/plugins/cilium-cni", CiliumDebug: "github.com/cilium/cilium/cilium-dbg",
			CiliumHealthResponder: "github.com/cilium/cilium/cilium-health/responder",
		},
		Expect: "about 5 min the first time",
		Stamp:  stampCilium,
		After:  copyCiliumBPF,
	}
}

// ForNodes returns the parts that a real Kubernetes node needs in addition to the part Kubernetes.
func ForNodes() []Part {
	return []Part{
		{
			Name: NodePackages,
			// clang compiles Cilium's datapath on the node; iptables and ipset are called by the agent.
			Packages: []string{"containerd", "runc", "containernetworking-plugins", "clang-19", "iptables", "ipset"},
			// Debian's packages create these links with update-alternatives during installation.
			Links: map[string]string{
				"usr/local/bin/clang":             "/usr/bin/clang-19",
				"usr/local/bin/iptables":          "/usr/sbin/xtables-nft-multi",
				"usr/local/bin/iptables-save":     "/usr/sbin/xtables-nft-multi",
				"usr/local/bin/iptables-restore":  "/usr/sbin/xtables-nft-multi",
				"usr/local/bin/ip6tables":         "/usr/sbin/xtables-nft-multi",
				"usr/local/bin/ip6tables-save":    "/usr/sbin/xtables-nft-multi",
				"usr/local/bin/ip6tables-restore": "/usr/sbin/xtables-nft-multi",
			},
			Expect: "about 1 min the first time",
		},
		{
			Name: KubernetesNode,
			Dir:  "playground/parts/kubernetes-node",
			Programs: map[string]string{
				Kubelet: "k8s.io/kubernetes/cmd/kubelet", KubeControllerManager: "k8s.io/kubernetes/cmd/kube-controller-manager",
				KubeScheduler: "k8s.io/kubernetes/cmd/kube-scheduler", Kubectl: "k8s.io/kubernetes/cmd/kubectl",
			},
			Expect: "about 5 min the first time",
			Stamp:  stampKubernetes,
		},
		ciliumPart(Cilium),
		{
			Name:     CoreDNS,
			Dir:      "playground/parts/coredns",
			Programs: map[string]string{CoreDNSServer: "github.com/coredns/coredns"},
			Expect:   "about 2 min the first time",
		},
		{
			Name:     NodeImages,
			Dir:      "playground/parts/node-images",
			Programs: map[string]string{Pause: "./cmd/pause", NodeProbe: "./cmd/node-probe"},
			Expect:   "seconds",
			Local:    true,
		},
	}
}

// All returns the parts of a fleet in the order in which they are built, the longest build first.
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

// Select returns the named parts, or all those of a fleet when no name is given.
func Select(names ...string) ([]Part, error) {
	if len(names) == 0 {
		return All(), nil
	}
	var out []Part
	known := slices.Concat(All(), ForIstio(), ForNodes(), ForTests())
	for _, name := range names {
		at := slices.IndexFunc(known, func(p Part) bool { return p.Name == name })
		if at < 0 {
			all := make([]string, 0, len(known))
			for _, p := range known {
				all = append(all, p.Name)
			}
			return nil, fmt.Errorf("there is no part %q; there are %s", name, strings.Join(all, ", "))
		}
		out = append(out, known[at])
	}
	return out, nil
}

// copyIstioCRDs copies Istio's CRDs from the version of its module that is built.
func copyIstioCRDs(ctx context.Context, moduleDir, out string) error {
	dir, err := goOutput(ctx, moduleDir, "list", "-m", "-f", "{{.Dir}}", "istio.io/istio")
	if err != nil {
		return fmt.Errorf("find the sources of Istio: %w", err)
	}
	crds, err := os.ReadFile(filepath.Join(dir, "manifests/charts/base/files/crd-all.gen.yaml"))
	if err != nil {
		return fmt.Errorf("read the CRDs of Istio: %w", err)
	}
	return os.WriteFile(filepath.Join(out, IstioCRDs), crds, 0o644)
}

// copyKubeFedCRDs copies KubeFed's CRDs from the version of its module that is built.
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

// stampKubernetes returns the linker flags that set the version of the API server, as in official releases.
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

// stampCilium returns the linker flags that set the version of the agent, which it reports and writes to the state of its
// endpoints.
func stampCilium(ctx context.Context, moduleDir string) (string, error) {
	version, err := goOutput(ctx, moduleDir, "list", "-m", "-f", "{{.Version}}", "github.com/cilium/cilium")
	if err != nil {
		return "", fmt.Errorf("ask for the version of Cilium: %w", err)
	}
	return "-X github.com/cilium/cilium/pkg/version.ciliumVersion=" + strings.TrimPrefix(version, "v"), nil
}

// copyCiliumBPF copies the datapath sources from the version of Cilium's module that is built.
func copyCiliumBPF(ctx context.Context, moduleDir, out string) error {
	dir, err := goOutput(ctx, moduleDir, "list", "-m", "-f", "{{.Dir}}", "github.com/cilium/cilium")
	if err != nil {
		return fmt.Errorf("find the sources of Cilium: %w", err)
	}
	if err := os.CopyFS(filepath.Join(out, CiliumBPF), os.DirFS(filepath.Join(dir, "bpf"))); err != nil {
		return fmt.Errorf("copy the sources of Cilium's datapath: %w", err)
	}
	return nil
}

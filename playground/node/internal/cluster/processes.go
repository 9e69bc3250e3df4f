package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/playground/internal/parts"
	"github.com/acp-io/acp/playground/internal/supervisor"
)

// The names of the processes of a node and of their logs.
const (
	etcdProcess       = "etcd"
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
	containerd        = "containerd"
	kubelet           = "kubelet"
	ciliumOperator    = "cilium-operator"
	ciliumAgent       = "cilium-agent"
)

// Ports that are used on the node's loopback interface or address.
const (
	etcdPort         = "2379"
	apiPort          = "6443"
	agentHealthPort  = "9879"
	operatorHealth   = "9234"
	hubblePort       = "4244"
	schedulerPort    = "10259"
	controllersPort  = "10257"
	kubeletHealthz   = "10248"
	pauseImage       = "registry.local/acp-node/pause:1"
	clusterDomain    = "cluster.local"
	kubeletConfig    = configDir + "/kubelet.yaml"
	containerdConfig = configDir + "/containerd.toml"
)

func part(name, program string) string { return filepath.Join(PartsDir, name, program) }

// specs returns the specifications of the processes of the node of c. The client is one of its API server.
func specs(c Config, client kubernetes.Interface) []supervisor.Spec {
	pki := func(file string) string { return filepath.Join(pkiDir, file) }
	kubeconfigs := func(name string) []string {
		file := pki(name + ".kubeconfig")
		return []string{"--kubeconfig=" + file, "--authentication-kubeconfig=" + file, "--authorization-kubeconfig=" + file}
	}
	etcdURL := "http://127.0.0.1:" + etcdPort
	all := []supervisor.Spec{
		{
			Name: etcdProcess, Path: part(parts.Kubernetes, parts.Etcd),
			Args: []string{
				"--data-dir=/var/lib/etcd", "--log-level=warn", "--listen-client-urls=" + etcdURL, "--advertise-client-urls=" + etcdURL,
				"--listen-peer-urls=http://127.0.0.1:2380",
				// The data are not needed after the node has ended.
				"--unsafe-no-fsync",
			},
			Ready: func(ctx context.Context) error { return getOK(ctx, etcdURL+"/health") },
		},
		{
			Name: apiServer, Path: part(parts.Kubernetes, parts.KubeAPIServer),
			Args: append(tokenArgs(c),
				"--etcd-servers="+etcdURL, "--advertise-address="+c.NodeIP(), "--bind-address=0.0.0.0", "--secure-port="+apiPort,
				"--tls-cert-file="+pki("apiserver.crt"), "--tls-private-key-file="+pki("apiserver.key"), "--client-ca-file="+pki("ca.crt"),
				"--kubelet-certificate-authority="+pki("ca.crt"), "--kubelet-client-certificate="+pki("admin.crt"),
				"--kubelet-client-key="+pki("admin.key"), "--kubelet-preferred-address-types=InternalIP",
				"--service-account-key-file="+pki("service-account.key"), "--service-account-signing-key-file="+pki("service-account.key"),
				"--service-account-issuer=https://kubernetes.default.svc."+clusterDomain, "--service-cluster-ip-range="+c.Services().String(),
				"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged",
			),
			Ready: func(ctx context.Context) error {
				return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
			},
		},
		{
			Name: controllerManager, Path: part(parts.KubernetesNode, parts.KubeControllerManager),
			Args: append(kubeconfigs("controller-manager"),
				"--bind-address=127.0.0.1", "--secure-port="+controllersPort, "--leader-elect=false", "--use-service-account-credentials",
				"--service-account-private-key-file="+pki("service-account.key"), "--root-ca-file="+pki("ca.crt"),
				"--cluster-signing-cert-file="+pki("ca.crt"), "--cluster-signing-key-file="+pki("ca.key"),
				"--allocate-node-cidrs", "--cluster-cidr="+c.Pods().String(), "--service-cluster-ip-range="+c.Services().String(),
			),
		},
		{
			Name: scheduler, Path: part(parts.KubernetesNode, parts.KubeScheduler),
			Args: append(kubeconfigs("scheduler"), "--bind-address=127.0.0.1", "--secure-port="+schedulerPort, "--leader-elect=false"),
		},
		{
			Name: containerd, Path: "/usr/bin/containerd", Args: []string{"--config=" + containerdConfig},
			Ready: func(ctx context.Context) error { return output(ctx, "ctr", "version") },
		},
		{
			Name: kubelet, Path: part(parts.KubernetesNode, parts.Kubelet),
			Args: []string{
				"--config=" + kubeletConfig, "--kubeconfig=" + pki("kubelet.kubeconfig"), "--hostname-override=" + c.Name,
				"--node-ip=" + c.NodeIP(), "--root-dir=/var/lib/kubelet",
			},
			Ready: func(ctx context.Context) error { return getOK(ctx, "http://127.0.0.1:"+kubeletHealthz+"/healthz") },
		},
		{
			Name: ciliumOperator, Path: filepath.Join(ciliumPrograms, parts.CiliumOperator),
			Args: []string{
				"--k8s-kubeconfig-path=" + pki("cilium.kubeconfig"), "--ipam=kubernetes", "--cluster-name=" + c.Name, "--cluster-id=" + fmt.Sprint(c.Number),
				"--operator-api-serve-addr=127.0.0.1:" + operatorHealth, "--enable-metrics=false", "--kube-proxy-replacement=true",
			},
			Ready: func(ctx context.Context) error { return getOK(ctx, "http://127.0.0.1:"+operatorHealth+"/healthz") },
		},
		{
			Name: ciliumAgent, Path: filepath.Join(ciliumPrograms, parts.CiliumAgent), Args: agentArgs(c, pki("cilium.kubeconfig")),
			Env: []string{"K8S_NODE_NAME=" + c.Name, "CILIUM_K8S_NAMESPACE=kube-system"},
			// The agent compiles its datapath while it starts.
			Ready: func(ctx context.Context) error { return getOK(ctx, "http://127.0.0.1:"+agentHealthPort+"/healthz") },
		},
	}
	if c.Join != nil {
		return slices.DeleteFunc(all, func(s supervisor.Spec) bool {
			return !slices.Contains([]string{containerd, kubelet, ciliumAgent}, s.Name)
		})
	}
	return all
}

// tokenArgs returns the arguments with the file of further users, if one was given.
func tokenArgs(c Config) []string {
	if c.TokenFile == "" {
		return nil
	}
	return []string{"--token-auth-file=" + filepath.Join(pkiDir, tokensFile)}
}

// hubbleArgs returns the arguments that expose flows outside of the node to clients with a certificate.
func hubbleArgs(c Config) []string {
	if c.Hubble == nil {
		return []string{"--hubble-disable-tls", "--hubble-listen-address=127.0.0.1:" + hubblePort}
	}
	pki := func(file string) string { return filepath.Join(pkiDir, file) }
	return []string{
		"--hubble-disable-tls=false", "--hubble-listen-address=:" + hubblePort, "--hubble-tls-client-ca-files=" + pki(hubbleCAFile),
		"--hubble-tls-cert-file=" + pki(hubbleCertFile), "--hubble-tls-key-file=" + pki(hubbleKeyFile),
	}
}

func agentArgs(c Config, kubeconfig string) []string {
	return append(hubbleArgs(c),
		"--k8s-kubeconfig-path="+kubeconfig, "--k8s-namespace=kube-system", "--cluster-name="+c.first().Name, "--cluster-id="+fmt.Sprint(c.first().Number),
		"--lib-dir="+ciliumLibDir, "--state-dir=/run/cilium", "--socket-path="+ciliumSocket,
		"--bpf-root=/sys/fs/bpf", "--cgroup-root=/run/cilium/cgroupv2",
		"--identity-allocation-mode=crd", "--ipam=kubernetes", "--enable-ipv6=false",
		// Because all nodes are in one network, packets of pods need no tunnel. The default route leads to no other network.
		"--routing-mode=native", "--ipv4-native-routing-cidr=10.0.0.0/8", "--auto-direct-node-routes", "--enable-ipv4-masquerade=false",
		"--devices=eth0",
		// The node has no kube-proxy.
		"--kube-proxy-replacement=true",
		// The node has no Envoy, so the agent refuses rules about HTTP.
		"--enable-l7-proxy=false",
		"--enable-hubble",
		"--write-cni-conf-when-ready="+filepath.Join(cniDraftDir, cniConfFile), "--agent-health-port="+agentHealthPort,
		"--enable-health-checking", "--enable-endpoint-health-checking",
	)
}

// The names of copied files in the node's folder of keys.
const (
	tokensFile     = "tokens.csv"
	hubbleCAFile   = "hubble-ca.crt"
	hubbleCertFile = "hubble.crt"
	hubbleKeyFile  = "hubble.key"
)

// copyGiven copies the files that the options name to the node's folder of keys.
func copyGiven(dir string, c Config) error {
	files := map[string]string{}
	if c.TokenFile != "" {
		files[tokensFile] = c.TokenFile
	}
	if c.Hubble != nil {
		files[hubbleCAFile], files[hubbleCertFile], files[hubbleKeyFile] = c.Hubble.CA, c.Hubble.Cert, c.Hubble.Key
	}
	for name, source := range files {
		data, err := os.ReadFile(source)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o600)
		}
		if err != nil {
			return fmt.Errorf("take over a file: %w", err)
		}
	}
	return nil
}

// ciliumLibDir is the folder with the sources of the agent's datapath. The agent writes the features of the kernel to it.
const ciliumLibDir = "/var/lib/cilium"

const cniConfFile = "05-cilium.conflist"

// writeFiles writes the configuration of containerd and kubelet, and copies the CNI plugins to the folder from which containerd runs
// them.
func writeFiles(c Config) error {
	for _, dir := range []string{configDir, cniConfDir, cniDraftDir, cniBinDir, "/run/cilium"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := os.WriteFile(containerdConfig, []byte(containerdTOML()), 0o600); err != nil {
		return err
	}
	k, err := kubeletYAML(c)
	if err != nil {
		return err
	}
	if err := os.WriteFile(kubeletConfig, k, 0o600); err != nil {
		return err
	}
	if err := os.Symlink(part(c.Cilium(), ""), ciliumPrograms); err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(ciliumLibDir, parts.CiliumBPF), os.DirFS(part(c.Cilium(), parts.CiliumBPF))); err != nil {
		return fmt.Errorf("copy the sources of Cilium's datapath: %w", err)
	}
	// In an ordinary installation the agent is a container in which the namespaces of pods are mounted at this path.
	if err := os.Symlink("/run/netns", "/run/cilium/netns"); err != nil {
		return err
	}
	const packaged = "/usr/lib/cni"
	plugins, err := os.ReadDir(packaged)
	if err != nil {
		return fmt.Errorf("find the CNI plugins: %w", err)
	}
	links := map[string]string{parts.CiliumCNI: filepath.Join(ciliumPrograms, parts.CiliumCNI)}
	for _, p := range plugins {
		links[p.Name()] = filepath.Join(packaged, p.Name())
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(cniBinDir, name)); err != nil {
			return err
		}
	}
	return nil
}

func containerdTOML() string {
	return `version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
# Only overlayfs is used, and the checks of the others fail with noise.
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
]
[grpc]
  address = "` + containerdSocket + `"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "` + pauseImage + `"
  # The node may itself be in a container that may not lower the score.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "` + cniBinDir + `"
    conf_dir = "` + cniConfDir + `"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
`
}

func kubeletYAML(c Config) ([]byte, error) {
	pki := func(file string) string { return filepath.Join(pkiDir, file) }
	return yaml.Marshal(map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1",
		"kind":       "KubeletConfiguration",
		"address":    c.NodeIP(),
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false}, "webhook": map[string]any{"enabled": true},
			"x509": map[string]any{"clientCAFile": pki("ca.crt")},
		},
		"authorization":            map[string]any{"mode": "Webhook"},
		"tlsCertFile":              pki("kubelet.crt"),
		"tlsPrivateKeyFile":        pki("kubelet.key"),
		"containerRuntimeEndpoint": "unix://" + containerdSocket,
		"cgroupDriver":             "cgroupfs",
		// kubelet would refuse machines with cgroups of version 1.
		"failCgroupV1":  false,
		"failSwapOn":    false,
		"registerNode":  true,
		"clusterDNS":    []string{c.DNS()},
		"clusterDomain": clusterDomain,
		"resolvConf":    "/etc/resolv.conf",
		// The default folder is in /usr, which belongs to the machine.
		"volumePluginDir": "/var/lib/kubelet/volumeplugins",
		// Images cannot be pulled again, so kubelet must not remove any when the machine's disk is nearly full.
		"evictionHard": map[string]string{
			"memory.available":  "100Mi",
			"nodefs.available":  "1%",
			"imagefs.available": "1%",
			"nodefs.inodesFree": "1%",
		},
		"imageGCHighThresholdPercent": 100,
	})
}

// copyCNIConfig waits for the agent's CNI configuration and copies it for containerd, because containerd 1.6 does not notice a file
// that appears by being renamed, which is how the agent writes it.
func copyCNIConfig(ctx context.Context) error {
	for {
		data, err := os.ReadFile(filepath.Join(cniDraftDir, cniConfFile))
		if err == nil && len(data) > 0 {
			return os.WriteFile(filepath.Join(cniConfDir, cniConfFile), data, 0o644)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// importImages loads every image of the node's folder into containerd.
func importImages(ctx context.Context) error {
	images, err := filepath.Glob(filepath.Join(imagesDir, "*.tar"))
	if err != nil {
		return err
	}
	for _, image := range images {
		if err := output(ctx, "ctr", "images", "import", image); err != nil {
			return fmt.Errorf("import %s: %w", filepath.Base(image), err)
		}
	}
	return nil
}

func output(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(string(out)))
	}
	return nil
}

var httpClient = &http.Client{
	Timeout:   2 * time.Second,
	Transport: &http.Transport{DialContext: (&net.Dialer{Timeout: time.Second}).DialContext, DisableKeepAlives: true},
}

func getOK(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Brief", "true") // as the agent's liveness probe does, so that only its own parts count
	res, err := httpClient.Do(req)
	if err != nil {
		return err
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, res.Status)
	}
	return nil
}

package cluster

import (
	_ "embed" // the manifests
	"fmt"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/playground/internal/parts"
)

var (
	//go:embed coredns.yaml
	coreDNS string
	//go:embed storage.yaml
	storage string
)

const dnsImage = "registry.local/acp-node/coredns:1"

// dnsManifest returns the objects of the cluster's DNS.
func dnsManifest(c Config) string {
	return strings.NewReplacer("CLUSTER_DOMAIN", clusterDomain, "DNS_IMAGE", dnsImage, "DNS_ADDRESS", c.DNS()).Replace(coreDNS)
}

const (
	// volumesDir is the folder of the node with one folder for each volume.
	volumesDir = "/var/lib/volumes"
	// volumes is the number of PersistentVolumes of a cluster.
	volumes = 4
)

func volumeDir(n int) string { return filepath.Join(volumesDir, fmt.Sprint(n)) }

// storageManifest returns the default StorageClass of the cluster and its volumes. Volumes are of the type local, because the kubelet
// gives these to the group of a pod (fsGroup), which it does not do with a hostPath.
func storageManifest(c Config) (string, error) {
	out := storage
	for n := range volumes {
		data, err := yaml.Marshal(map[string]any{
			"apiVersion": "v1", "kind": "PersistentVolume", "metadata": map[string]any{"name": fmt.Sprintf("%s-volume-%d", c.Name, n)},
			"spec": map[string]any{
				"storageClassName": "standard", "capacity": map[string]any{"storage": "10Gi"}, "accessModes": []string{"ReadWriteOnce"},
				"persistentVolumeReclaimPolicy": "Retain", "local": map[string]any{"path": volumeDir(n)},
				"nodeAffinity": map[string]any{"required": map[string]any{"nodeSelectorTerms": []any{map[string]any{
					"matchExpressions": []any{map[string]any{"key": "kubernetes.io/hostname", "operator": "In", "values": []string{c.Name}}},
				}}}},
			},
		})
		if err != nil {
			return "", err
		}
		out += "---\n" + string(data)
	}
	return out, nil
}

// ciliumVersions are the versions of the parts.
var ciliumVersions = map[string]string{parts.Cilium: "v1.20.2", parts.CiliumPrevious: "v1.19.6"}

// ciliumManifest returns the ConfigMap and the DaemonSet that Cilium's chart creates. Because the agent of this cluster is a process
// and not a pod, the ConfigMap repeats its arguments, and the DaemonSet selects no node.
func ciliumManifest(c Config) (string, error) {
	settings := map[string]string{}
	for _, a := range agentArgs(c, "") {
		name, value, given := strings.Cut(strings.TrimPrefix(a, "--"), "=")
		if !given {
			value = "true"
		}
		settings[name] = value
	}
	delete(settings, "k8s-kubeconfig-path") // a path of the node
	labels := map[string]any{"k8s-app": "cilium"}
	var out string
	for _, object := range []map[string]any{
		{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "kube-system", "name": "cilium-config"}, "data": settings},
		{
			"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": map[string]any{"namespace": "kube-system", "name": "cilium"},
			"spec": map[string]any{
				"selector": map[string]any{"matchLabels": labels},
				"template": map[string]any{
					"metadata": map[string]any{"labels": labels},
					"spec": map[string]any{
						"nodeSelector": map[string]any{"acp.io/agents": "processes-of-the-node"},
						"containers":   []any{map[string]any{"name": "cilium-agent", "image": "quay.io/cilium/cilium:" + ciliumVersions[c.Cilium()]}},
					},
				},
			},
		},
	} {
		data, err := yaml.Marshal(object)
		if err != nil {
			return "", err
		}
		out += "---\n" + string(data)
	}
	return out, nil
}

// manifests returns the objects that every cluster has, as YAML.
func manifests(c Config) (string, error) {
	volumes, err := storageManifest(c)
	if err != nil {
		return "", fmt.Errorf("describe the volumes: %w", err)
	}
	cilium, err := ciliumManifest(c)
	if err != nil {
		return "", fmt.Errorf("describe Cilium: %w", err)
	}
	return strings.Join([]string{dnsManifest(c), volumes, cilium}, "---\n"), nil
}

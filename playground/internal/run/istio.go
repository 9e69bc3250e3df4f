package run

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/playground/internal/fleet"
	"github.com/acp-io/acp/playground/internal/parts"
	"github.com/acp-io/acp/playground/internal/supervisor"
)

// istioNamespace is the root namespace of the mesh of each member.
const istioNamespace = "istio-system"

func istiodProcess(member string) string { return "istiod-" + member }

func meshProcess(member string) string { return "mesh-" + member }

// istiodPorts returns the purposes of the ports of a member's istiod.
func istiodPorts(member string) []string {
	name := istiodProcess(member)
	return []string{name + "-http", name + "-grpc", name + "-monitoring"}
}

// accessLog returns the path of the access log of a member's mesh.
func (r *runner) accessLog(member string) string {
	return filepath.Join(r.layout.Data(meshProcess(member)), "access.log")
}

// setUpMesh applies what a member needs in addition for its mesh: mutual TLS for every workload. Istio's other kinds are not used.
func (r *runner) setUpMesh(ctx context.Context, member string) error {
	data, err := os.ReadFile(r.fleet.Built.Path(parts.Istio, parts.IstioCRDs))
	if err != nil {
		return fmt.Errorf("read Istio's kinds: %w", err)
	}
	kinds, err := fleet.Parse("Istio's kinds", data)
	if err != nil {
		return err
	}
	strict := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "security.istio.io/v1", "kind": "PeerAuthentication", "metadata": map[string]any{"name": "default", "namespace": istioNamespace},
		"spec": map[string]any{"mtls": map[string]any{"mode": "STRICT"}},
	}}
	objects := []*unstructured.Unstructured{strict}
	for _, k := range kinds {
		if k.GetName() == "peerauthentications.security.istio.io" {
			objects = append(objects, k)
		}
	}
	if len(objects) != 2 {
		return errors.New("the part istio lacks the kind PeerAuthentication")
	}
	if err := r.fleet.Applier(member).Apply(ctx, objects); err != nil {
		return fmt.Errorf("set up the mesh of %s: %w", member, err)
	}
	return nil
}

// istio returns the processes of a member's mesh: istiod, and the workloads.
func (r *runner) istio(member string) ([]supervisor.Spec, error) {
	istiod, mesh := istiodProcess(member), meshProcess(member)
	for _, name := range []string{istiod, mesh} {
		if err := os.MkdirAll(r.layout.Data(name), 0o700); err != nil {
			return nil, fmt.Errorf("make the data folder of %s: %w", name, err)
		}
	}
	config := filepath.Join(r.layout.Data(istiod), "mesh.yaml")
	// The servers get the address of istiod from their own configuration.
	if err := os.WriteFile(config, []byte(fleet.MeshConfig), 0o600); err != nil {
		return nil, fmt.Errorf("write the configuration of the mesh: %w", err)
	}
	address := func(of string) string { return r.fleet.Ports.Address(istiod + "-" + of) }
	return []supervisor.Spec{{
		Name: istiod, Layer: fleet.LayerFederation, Path: r.fleet.Built.Path(parts.Istio, parts.Istiod),
		Args: []string{
			"discovery", "--kubeconfig", r.layout.Kubeconfig(member), "--meshConfig", config, "--httpAddr", address("http"), "--httpsAddr", "",
			"--grpcAddr", address("grpc"), "--secureGRPCAddr", "", "--monitoringAddr", address("monitoring"), "--ctrlz_port", "0",
		},
		// The certificates come from acp-mesh, and nothing is injected.
		Env: []string{
			"ENABLE_CA_SERVER=false", "PILOT_CERT_PROVIDER=none", "POD_NAMESPACE=" + istioNamespace, "POD_NAME=istiod", "CLUSTER_ID=Kubernetes",
			"VALIDATION_WEBHOOK_CONFIG_NAME=", "INJECTION_WEBHOOK_CONFIG_NAME=", "ISTIOD_CUSTOM_HOST=",
		},
		Ready: func(ctx context.Context) error {
			return fleet.GetOK(ctx, http.DefaultClient, "http://"+address("http")+"/ready", "")
		},
		StopTimeout: 2 * time.Second,
	}, {
		Name: mesh, Layer: fleet.LayerControlPlane, Path: r.fleet.Built.Path(parts.Mesh, parts.ACPMesh),
		Args: []string{
			"--cluster=" + member, "--kubeconfig=" + r.layout.Kubeconfig(fleet.Dataplane), "--istiod=" + address("grpc"),
			"--listen=" + r.fleet.Ports.Address(mesh), "--traffic=" + r.Traffic,
			"--traffic-rate=" + strconv.FormatFloat(r.TrafficRate, 'g', -1, 64), "--access-log=" + r.accessLog(member),
			"--dir=" + filepath.Join(r.layout.Data(mesh), "certificates"),
		},
		Ready: func(ctx context.Context) error {
			return fleet.GetOK(ctx, http.DefaultClient, "http://"+r.fleet.Ports.Address(mesh)+"/readyz", "")
		},
		StopTimeout: 3 * time.Second,
	}}, nil
}

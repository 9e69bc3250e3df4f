package fleet

import (
	"context"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/guard"
	"github.com/acp-io/acp/internal/federation/tokens"
	"github.com/acp-io/acp/playground/internal/parts"
)

var (
	//go:embed manifests/host.yaml
	hostManifest []byte
	//go:embed manifests/member.yaml
	memberManifest []byte
	//go:embed manifests/kubefedconfig.yaml
	kubeFedConfigManifest []byte
)

// setUpHost applies what the host cluster needs: KubeFed's and ACP's CRDs, RBAC, and the registration of the members.
func (f *Fleet) setUpHost(ctx context.Context) error {
	crds, err := os.ReadFile(f.Built.Path(parts.KubeFed, parts.KubeFedCRDs))
	if err != nil {
		return fmt.Errorf("read the CRDs of KubeFed: %w", err)
	}
	objects, err := Parse("the CRDs of KubeFed", crds)
	if err != nil {
		return err
	}
	for source, data := range map[string][]byte{"host.yaml": hostManifest, "kubefedconfig.yaml": kubeFedConfigManifest} {
		more, err := Parse(source, data)
		if err != nil {
			return err
		}
		objects = append(objects, more...)
	}
	for _, dir := range []string{"deploy/kubefed", "deploy/kubefed/istio", "deploy/crds", "deploy/rbac/host", "deploy/access-requests"} {
		more, err := ParseDir(filepath.Join(f.Repo, dir))
		if err != nil {
			return err
		}
		objects = append(objects, more...)
	}
	pulling, err := f.workObjects()
	if err != nil {
		return err
	}
	objects = append(objects, pulling...)
	if !f.hostOnly {
		members, err := f.registration()
		if err != nil {
			return err
		}
		objects = append(objects, members...)
	}
	if err := f.appliers[Host].Apply(ctx, objects); err != nil {
		return fmt.Errorf("set up the host cluster: %w", err)
	}
	return nil
}

// registration returns the objects that register the members with KubeFed and with the adapter.
func (f *Fleet) registration() ([]*unstructured.Unstructured, error) {
	ca, err := os.ReadFile(f.PKI.ServerCA)
	if err != nil {
		return nil, fmt.Errorf("read the authority of the API servers: %w", err)
	}
	var out []*unstructured.Unstructured
	for _, m := range Members() {
		endpoint := f.url(m)
		if f.between != nil {
			address, err := f.between(m, f.Ports.Address("apiserver-"+m))
			if err != nil {
				return nil, fmt.Errorf("register member %s: %w", m, err)
			}
			endpoint = "https://" + address
		}
		// The istiod of a member is a process without a Deployment, from which the adapter would read where it takes its configuration from.
		annotations := map[string]any{federation.AnnotationIstio: declaredIstio, federation.AnnotationIstioRoot: istioNamespace}
		secret := federation.DirectSecretName(m) // KubeFed does not find it, and has no client of the member
		switch engine := f.engine(m); engine {
		case federation.EngineDirect:
			annotations[federation.AnnotationEngine] = string(engine)
			out = append(out, tokenSecret(ACPNamespace, secret, f.Tokens[m][Direct]))
		case federation.EngineOCM:
			annotations[federation.AnnotationEngine] = string(engine)
		default:
			// `kubectl acp cluster join` writes the same: the annotation records that KubeFed has this token. Otherwise the adapter would
			// pass it to KubeFed while KubeFed is busy.
			annotations[federation.AnnotationRenewed] = tokens.Fingerprint(f.Tokens[m][KubeFed])
			secret = "kubefed-" + m
			out = append(out, tokenSecret(KubeFedNamespace, secret, f.Tokens[m][KubeFed]))
		}
		out = append(out, tokenSecret(ACPNamespace, "acp-reader-"+m, f.Tokens[m][Adapter]),
			&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "core.kubefed.io/v1beta1",
				"kind":       "KubeFedCluster",
				"metadata":   map[string]any{"name": m, "namespace": KubeFedNamespace, "annotations": annotations},
				"spec": map[string]any{
					"apiEndpoint": endpoint,
					"caBundle":    base64.StdEncoding.EncodeToString(ca),
					"secretRef":   map[string]any{"name": secret},
				},
			}})
	}
	return out, nil
}

// declaredIstio is what the members declare about Istio. No Istio runs here: ACP writes policies for it, and no process enforces
// them.
const declaredIstio = `{"dataplane": "sidecar", "version": "1.31.1"}`

// istioNamespace is the root namespace of the mesh of each member.
const istioNamespace = "istio-system"

// MeshConfig is the configuration of the mesh of each member: that of its istiod, if one runs.
const MeshConfig = "rootNamespace: " + istioNamespace + "\ntrustDomain: cluster.local\n"

// meshConfig returns the ConfigMap with the configuration of the mesh.
func meshConfig() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": istioNamespace, "name": "istio"},
		"data":     map[string]any{"mesh": MeshConfig},
	}}
}

func tokenSecret(namespace, name, token string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "Secret",
		"metadata":   map[string]any{"namespace": namespace, "name": name},
		"data":       map[string]any{"token": base64.StdEncoding.EncodeToString([]byte(token))},
	}}
}

// setUpMember applies what a member needs: Cilium's CRDs and configuration, the kind of Istio's policies, and RBAC.
func (f *Fleet) setUpMember(ctx context.Context, member string) error {
	var objects []*unstructured.Unstructured
	if f.nodes == "" { // otherwise Cilium's operator has created them
		out, err := exec.CommandContext(ctx, f.Built.Path(parts.Dataplane, parts.ACPDataplane), "crds").Output()
		if err != nil {
			return fmt.Errorf("read Cilium's CRDs from the dataplane: %w", err)
		}
		if objects, err = Parse("Cilium's CRDs", out); err != nil {
			return err
		}
	}
	manifest, err := Parse("member.yaml", memberManifest)
	if err != nil {
		return err
	}
	objects = append(objects, manifest...)
	dirs := []string{"deploy/rbac/member", "deploy/istio"}
	if f.Writer(member) == Direct {
		dirs = append(dirs, "deploy/rbac/direct")
	}
	for _, dir := range dirs {
		more, err := ParseDir(filepath.Join(f.Repo, dir))
		if err != nil {
			return err
		}
		objects = append(objects, more...)
	}
	if f.Writer(member) == WorkAgent {
		more, err := f.agentObjects()
		if err != nil {
			return err
		}
		objects = append(objects, more...)
	}
	objects = append(objects, meshConfig())
	if f.nodes == "" { // acp-nodes writes the configuration of its agents itself
		objects = append(objects, ciliumConfig(member), ciliumAgents())
	}
	if f.guarded {
		policies, err := guard.Objects(guard.Credentials{}, f.engine(member).Writer())
		if err != nil {
			return fmt.Errorf("render the guard of %s: %w", member, err)
		}
		objects = append(objects, policies...)
	}
	if err := f.appliers[member].Apply(ctx, objects); err != nil {
		return fmt.Errorf("set up member %s: %w", member, err)
	}
	return nil
}

var (
	configMapResource      = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	kubeFedClusterResource = schema.GroupVersionResource{Group: "core.kubefed.io", Version: "v1beta1", Resource: "kubefedclusters"}
)

// dropKubeFedLock removes the leader election lock of the previous controller-manager, which is dead because only this supervisor
// starts one. Otherwise every start would wait until the lease expires.
func (f *Fleet) dropKubeFedLock(ctx context.Context) error {
	err := f.appliers[Host].Client.Resource(configMapResource).Namespace(KubeFedNamespace).
		Delete(ctx, "kubefed-controller-manager", metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove the lease of the previous KubeFed (the new one waits until it expires): %w", err)
	}
	return nil
}

// startKubeFed starts the controller-manager and waits until it has probed every member after this start.
func (f *Fleet) startKubeFed(ctx context.Context) error {
	began := time.Now().Truncate(time.Second) // probe times have whole seconds
	if err := f.supervisor.StartAndWait(ctx, "kubefed"); err != nil {
		return err
	}
	return f.each(f.byKubeFed(), func(m string) error {
		return poll(ctx, "KubeFed does not find member "+m+" ready", func(ctx context.Context) error {
			obj, err := f.appliers[Host].Client.Resource(kubeFedClusterResource).Namespace(KubeFedNamespace).Get(ctx, m, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if !isTrue(obj, "Ready") {
				return errors.New("its condition Ready is not True")
			}
			conditions, _, err := unstructured.NestedSlice(obj.Object, "status", "conditions")
			if err != nil {
				return err
			}
			for _, c := range conditions {
				condition, ok := c.(map[string]any)
				if !ok {
					continue
				}
				probed, _, err := unstructured.NestedString(condition, "lastProbeTime")
				if err != nil {
					return err
				}
				if at, err := time.Parse(time.RFC3339, probed); err == nil && !at.Before(began) {
					return nil
				}
			}
			return errors.New("it has not been probed yet")
		})
	})
}

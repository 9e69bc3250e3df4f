package membership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/objectkind"
	"github.com/acp-io/acp/internal/federation/preflight"
	"github.com/acp-io/acp/internal/message"
	pull "github.com/acp-io/acp/internal/propagation/ocm"
)

const fieldManager = "kubectl-acp"

// tokenKey is the key in both Secrets.
const tokenKey = "token"

// Host accesses the host cluster as its administrator.
type Host struct {
	// KubeFedNamespace contains the KubeFedClusters and KubeFed's Secrets, CredentialsNamespace the adapter's Secrets.
	KubeFedNamespace, CredentialsNamespace string

	core    kubernetes.Interface
	dynamic dynamic.Interface
}

// NewHost returns a Host. It makes no request.
func NewHost(config *rest.Config, kubeFedNamespace, credentialsNamespace string) (*Host, error) {
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("the host cluster's configuration cannot be used: %w", err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("the host cluster's configuration cannot be used: %w", err)
	}
	return &Host{KubeFedNamespace: kubeFedNamespace, CredentialsNamespace: credentialsNamespace, core: core, dynamic: objects}, nil
}

func (h *Host) registrations() dynamic.ResourceInterface {
	return h.dynamic.Resource(federation.ClusterResource).Namespace(h.KubeFedNamespace)
}

// registration returns the KubeFedCluster of a member, or nil if there is none.
func (h *Host) registration(ctx context.Context, name string) (*unstructured.Unstructured, federation.Cluster, error) {
	u, err := h.registrations().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, federation.Cluster{}, nil
	}
	if err != nil {
		return nil, federation.Cluster{}, fmt.Errorf("read KubeFedCluster %s: %w", name, err)
	}
	c, err := federation.ParseCluster(u)
	return u, c, err
}

// Members returns the registered members.
func (h *Host) Members(ctx context.Context) ([]federation.Cluster, error) {
	list, err := h.registrations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the KubeFedClusters: %w", err)
	}
	var out []federation.Cluster
	for i := range list.Items {
		c, err := federation.ParseCluster(&list.Items[i])
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// token returns the token in a Secret, or "" if there is none.
func (h *Host) token(ctx context.Context, ns, name string) (string, error) {
	s, err := h.core.CoreV1().Secrets(ns).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read Secret %s/%s: %w", ns, name, err)
	}
	return string(s.Data[tokenKey]), nil
}

// ErrUnregistered means that no KubeFedCluster has the name.
var ErrUnregistered = errors.New("no such member is registered")

// Facts reads a registered member with the tokens of KubeFed and the adapter.
func (h *Host) Facts(ctx context.Context, name string) (preflight.Facts, error) {
	u, c, err := h.registration(ctx, name)
	if err != nil {
		return preflight.Facts{}, err
	}
	if u == nil {
		return preflight.Facts{}, fmt.Errorf("%s: %w", name, ErrUnregistered)
	}
	return h.FactsOf(ctx, c), nil
}

// FactsOf reads a member with the tokens of its engine and the adapter. If the engine has no token, the member is
// unreachable, and its configuration is read with the adapter's token all the same.
func (h *Host) FactsOf(ctx context.Context, c federation.Cluster) preflight.Facts {
	pusher, why := h.pusher(ctx, c)
	reader, err := h.reader(ctx, c)
	agent := h.agent(ctx, c, reader)
	var f preflight.Facts
	switch {
	case err != nil:
		return preflight.Facts{Member: c.Name, Unreachable: cmp.Or(why, err.Error()), Profile: preflight.ReadProfile(ctx, h.dynamic, c)}
	case agent.NoReader:
		f = preflight.Facts{Member: c.Name, Unreachable: noReader}
	case c.Engine.Pulls():
		f = preflight.Read(ctx, c.Name, reader, reader, objectkind.All(), c.Locations)
	case why != "":
		f = preflight.ReadConfig(ctx, c.Name, reader, why, c.Locations)
	default:
		f = preflight.Read(ctx, c.Name, pusher, reader, objectkind.All(), c.Locations)
	}
	f.Istio.Declared, f.Mesh, f.Enforcer, f.Engine, f.Agent = c.Istio, c.Mesh, c.Enforcer, c.Engine, agent
	f.Profile = preflight.ReadProfile(ctx, h.dynamic, c)
	return f
}

// noReader is the reason why a member is not read of which the host has no token.
const noReader = "the host has no token of the member"

// agent returns what the host records about the work agent of a member whose engine pulls. reader is the configuration with the adapter's
// token of the member, or nil.
func (h *Host) agent(ctx context.Context, c federation.Cluster, reader *rest.Config) preflight.Agent {
	if !c.Engine.Pulls() {
		return preflight.Agent{}
	}
	out := preflight.Agent{NoReader: reader != nil && reader.BearerToken == ""}
	limited, cancel := context.WithTimeout(ctx, agentTimeout)
	defer cancel()
	now := time.Now()
	heartbeat, err := pull.ReadHeartbeat(limited, h.dynamic, c.Name, now)
	if err != nil {
		out.Unread = err.Error()
		return out
	}
	out.Silent, out.SilentSince = heartbeat.Silent(now)
	return out
}

// agentTimeout is the timeout of the request to the host about a work agent. The member's own facts do not depend on it.
const agentTimeout = 3 * time.Second

// pusher returns the configuration of a member with the token of its engine, or the reason why there is none. An engine that pulls has no
// token.
func (h *Host) pusher(ctx context.Context, c federation.Cluster) (*rest.Config, string) {
	if c.Engine.Pulls() {
		return nil, ""
	}
	if c.Secret == "" && c.Engine.IsKubeFed() {
		return nil, "its KubeFedCluster names no Secret (secretRef), so KubeFed cannot push there: repeat kubectl acp cluster join"
	}
	namespace, name := c.WriterSecret(h.KubeFedNamespace, h.CredentialsNamespace)
	token, err := h.token(ctx, namespace, name)
	if err != nil {
		return nil, err.Error()
	}
	if token == "" {
		return nil, fmt.Sprintf("there is no token in Secret %s/%s", namespace, name)
	}
	config, err := federation.RESTConfig(c, token)
	if err != nil {
		return nil, err.Error()
	}
	return config, ""
}

// reader returns the configuration of a member with the adapter's token.
func (h *Host) reader(ctx context.Context, c federation.Cluster) (*rest.Config, error) {
	token, err := h.token(ctx, h.CredentialsNamespace, federation.SecretName(c.Name))
	if err != nil {
		return nil, err
	}
	return federation.RESTConfig(c, token)
}

// FactsWith returns FactsOf, and in addition the pods with the labels of classes that policies do not protect as written: pods in their
// node's network, and pods of Istio's classes without a proxy or behind a waypoint.
func (h *Host) FactsWith(ctx context.Context, c federation.Cluster, keys []preflight.Key) preflight.Facts {
	f := h.FactsOf(ctx, c)
	if !f.ConfigRead() {
		return f
	}
	reader, err := h.reader(ctx, c)
	if err != nil {
		f.HostPods.Unread, f.MeshPods = message.Of(err), preflight.UnreadMeshPods(message.Of(err))
		return f
	}
	f.HostPods = preflight.ReadHostPods(ctx, reader, preflight.CiliumLabels(keys))
	f.MeshPods = preflight.ReadMeshPods(ctx, reader, f.Istio, preflight.IstioLabels(keys))
	return f
}

// Others reads all registered members except one.
func (h *Host) Others(ctx context.Context, but string) ([]preflight.Facts, error) {
	members, err := h.Members(ctx)
	if err != nil {
		return nil, err
	}
	var out []preflight.Facts
	for _, c := range members {
		if c.Name != but {
			out = append(out, h.FactsOf(ctx, c))
		}
	}
	return out, nil
}

// secret returns a token in the form in which KubeFed and the adapter read it.
func secret(ns, name, token string) *corev1.Secret {
	return &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Data: map[string][]byte{tokenKey: []byte(token)}}
}

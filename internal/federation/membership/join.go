package membership

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/api/v1alpha1"
	mesh "github.com/acp-io/acp/internal/enforcer/istio"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/preflight"
	"github.com/acp-io/acp/internal/federation/tokens"
)

// Join registers a cluster as a member.
type Join struct {
	Host *Host
	// Cluster is the registration to be made: name, address, authority, proxy, labels.
	Cluster federation.Cluster
	// Member has the rights of the member's administrator.
	Member *rest.Config
	// Keys are the labels by which classes select pods.
	Keys []preflight.Key
	// ClassLabels makes setting these labels on pods need a right in the member.
	ClassLabels bool
	// Istio creates what Istio's policies need, even if the host does not distribute them yet.
	Istio bool
	// WithoutIstio declares that no Istio enforces in the cluster, which then gets no object of Istio's.
	WithoutIstio bool
	// Lifetime is the requested lifetime of the tokens; a cluster may grant less.
	Lifetime time.Duration
	// Adapter is the name of the adapter's service account on the host; "" means the one that already has rights in the member's namespace
	// there, or else DefaultAdapter. Only an engine that pulls needs it.
	Adapter string
	// WithoutReader gives the host no token of the member at all. It is for members of an engine that pulls which the host cannot reach.
	WithoutReader bool
	DryRun        bool
	Now           func() time.Time
	// OnStep is called after each step.
	OnStep func(Step)
}

// ErrRefused means that the cluster does not pass the preflight. Nothing was registered.
var ErrRefused = errors.New("the cluster does not pass the preflight")

// ErrNameTaken is returned by Join.Run if another cluster is registered under the name: its address or certificate authority differs.
var ErrNameTaken = errors.New("the name is registered with another address or authority")

// ErrDeclaresIstio is returned by Join.Run if WithoutIstio is set, and the registration declares an Istio that enforces.
var ErrDeclaresIstio = errors.New("the registration declares an Istio that enforces")

// ErrReaderNeeded means that WithoutReader was set for an engine that writes from the host.
var ErrReaderNeeded = errors.New("the adapter needs a token for reading a member of this engine")

// Run registers the cluster and returns the findings of the preflight. With ErrRefused the findings contain the
// reasons.
func (j *Join) Run(ctx context.Context) ([]preflight.Finding, error) {
	if _, err := federation.RESTConfig(j.Cluster, ""); err != nil {
		return nil, err
	}
	// A cluster that cannot be read is a finding; nothing is written before it is known not to be the host.
	if err := j.Host.refuseHostCluster(ctx, j.Member); errors.Is(err, ErrIsHostCluster) {
		return nil, err
	}
	present, registered, err := j.registration(ctx)
	if err != nil {
		return nil, err
	}
	others, err := j.Host.Others(ctx, j.Cluster.Name)
	if err != nil {
		return nil, err
	}
	kinds, err := j.Host.Needed(ctx)
	if err != nil {
		return nil, err
	}
	needs := preflight.Needs{Kinds: kinds, Keys: j.Keys, Others: others}
	j.keep(present, registered)
	if err := j.declareNoIstio(); err != nil {
		return nil, err
	}
	if err := j.findLeftoverWorks(ctx, &registered); err != nil {
		return nil, err
	}
	if j.Cluster.Engine == "" {
		j.Cluster.Engine = federation.EngineKubeFed
	}
	if j.WithoutReader && !j.Cluster.Engine.Pulls() {
		return nil, fmt.Errorf("%w: %s", ErrReaderNeeded, j.Cluster.Engine)
	}
	former := j.formerEngines(present || registered.HasWorkAgent(), registered)
	if j.Cluster.WithoutCilium() {
		j.Cluster.Mesh = federation.NoMesh
	}
	// The kinds that are created below are no findings while they are absent.
	before := preflight.Needs{
		Kinds:  slices.DeleteFunc(slices.Clone(kinds), func(k federation.Kind) bool { return isIstio(k) || j.Cluster.WithoutCilium() }),
		Keys:   j.Keys,
		Others: others,
	}
	facts := j.read(ctx, j.Member, j.Member, before.Kinds)
	if j.Cluster.Mesh == "" && (!present || registered.WithoutCilium()) && facts.InNoMesh() {
		// The cluster can be in no mesh, which the registration now declares.
		j.Cluster.Mesh, facts.Mesh = federation.NoMesh, federation.NoMesh
	}
	findings := preflight.Assess(facts, before)
	if !preflight.Passes(findings) {
		return findings, ErrRefused
	}
	if err := j.Host.refuseHostCluster(ctx, j.Member); err != nil {
		return findings, err
	}
	return j.write(ctx, needs, findings, former, registered)
}

// write prepares the member, registers it and retires the engines from which it moves. The cluster has passed the preflight with these
// findings.
func (j *Join) write(ctx context.Context, needs preflight.Needs, findings []preflight.Finding, former []federation.Engine,
	registered federation.Cluster) ([]preflight.Finding, error) {
	objects, err := dynamic.NewForConfig(j.Member)
	if err != nil {
		return findings, fmt.Errorf("the member's configuration cannot be used: %w", err)
	}
	if err := j.prepare(ctx, objects, needs.Kinds, former, registered); err != nil {
		return findings, err
	}
	if j.DryRun {
		err = j.register(ctx, "", "", j.Cluster.Engine, registered)
	} else {
		findings, err = j.withTokens(ctx, needs, findings, registered)
	}
	if err != nil {
		return findings, err
	}
	if len(former) > 0 && !j.DryRun {
		if err := j.handOver(ctx, former); err != nil {
			return findings, err
		}
	}
	// The guard comes last, because until then the engine may use an account that the guard does not admit.
	pushers := []string{j.Cluster.Engine.Writer()}
	if err := applyGuard(ctx, objects, j.Cluster.Name, j.Keys, j.ClassLabels, pushers, j.DryRun, j.step); err != nil || j.DryRun {
		return findings, err
	}
	if err := j.retireFormer(ctx, objects, former, registered.Secret); err != nil {
		return findings, err
	}
	if j.WithoutReader {
		return findings, nil // the host cannot look at it
	}
	return j.Host.assess(ctx, j.Cluster, needs)
}

// registration returns the cluster's registration, if it is present and may be repeated as it is given now.
func (j *Join) registration(ctx context.Context) (present bool, registered federation.Cluster, err error) {
	u, registered, err := j.Host.registration(ctx, j.Cluster.Name)
	if err != nil {
		return false, registered, err
	}
	if u != nil && !j.sameAddress(registered) {
		return true, registered, fmt.Errorf("%s: %w: %s, not %s", j.Cluster.Name, ErrNameTaken, registered.Endpoint, j.Cluster.Endpoint)
	}
	return u != nil, registered, j.checkProfile(ctx, registered)
}

// sameAddress reports whether a registration has the address and the authority of this one.
func (j *Join) sameAddress(registered federation.Cluster) bool {
	return federation.Address(registered.Endpoint) == federation.Address(j.Cluster.Endpoint) && bytes.Equal(registered.CABundle, j.Cluster.CABundle)
}

// prepare creates in the member what the engine and the adapter need there. While the member moves from another engine,
// the guard admits the accounts of both.
func (j *Join) prepare(ctx context.Context, objects dynamic.Interface, kinds []federation.Kind, former []federation.Engine,
	registered federation.Cluster) error {
	if err := j.accounts(ctx, objects); err != nil {
		return err
	}
	if j.Cluster.WithoutCilium() {
		if err := applyCiliumKinds(ctx, objects, j.Cluster.Name, j.DryRun, j.step); err != nil {
			return err
		}
	}
	if j.Istio || slices.ContainsFunc(kinds, isIstio) && j.Cluster.NeedsIstioKind() {
		if err := applyIstio(ctx, objects, j.Cluster.Name, j.Cluster.Engine, j.DryRun, j.step); err != nil {
			return err
		}
	}
	if err := j.prepareHost(ctx, registered); err != nil || len(former) == 0 {
		return err
	}
	return j.admitAll(ctx, objects, former)
}

// keep copies declarations from an existing registration, if one is present, that this one lacks.
func (j *Join) keep(present bool, registered federation.Cluster) {
	if !present {
		return
	}
	if j.Cluster.Enforcer == "" {
		j.Cluster.Enforcer = registered.Enforcer
	}
	if j.Cluster.Engine == "" {
		j.Cluster.Engine = registered.Engine
		if registered.Engine == federation.EngineNone { // a command that made it leave was interrupted
			j.Cluster.Engine = registered.FormerEngine
		}
	}
	if j.Cluster.Profile == "" {
		j.Cluster.Profile = registered.Profile
		if j.Cluster.ProxyURL == "" { // otherwise the ClusterProfile says whether there is a proxy
			j.Cluster.ProxyURL = registered.ProxyURL
		}
	}
	j.Cluster.Istio = registered.Istio
	if j.Cluster.Mesh == "" && !registered.WithoutCilium() { // Without Cilium it was none.
		j.Cluster.Mesh = registered.Mesh
	}
	if j.Cluster.Locations == (federation.Locations{}) || j.Cluster.Locations == federation.DefaultLocations() {
		j.Cluster.Locations = registered.Locations
	}
}

// declareNoIstio declares that no Istio enforces in the cluster, if this is required.
func (j *Join) declareNoIstio() error {
	switch {
	case !j.WithoutIstio || j.Cluster.WithoutIstio():
		return nil
	case j.Cluster.Istio != "":
		return fmt.Errorf("%s: %w: %s", j.Cluster.Name, ErrDeclaresIstio, j.Cluster.Istio)
	}
	j.Cluster.Istio = `{"dataplane": "` + string(mesh.NoDataplane) + `"}`
	return nil
}

// read gathers the facts about the cluster in the form in which it will be registered.
func (j *Join) read(ctx context.Context, pusher, reader *rest.Config, kinds []federation.Kind) preflight.Facts {
	f := preflight.Read(ctx, j.Cluster.Name, pusher, reader, kinds, j.Cluster.Locations)
	f.Mesh, f.Enforcer, f.Istio.Declared, f.Engine = j.Cluster.Mesh, j.Cluster.Enforcer, j.Cluster.Istio, j.Cluster.Engine
	return f
}

func isIstio(k federation.Kind) bool { return k == federation.IstioPolicy }

// withTokens reads the member with the tokens of its engine and the adapter, and registers it if it passes the preflight
// with them, too.
func (j *Join) withTokens(ctx context.Context, needs preflight.Needs, findings []preflight.Finding,
	registered federation.Cluster) ([]preflight.Finding, error) {
	if j.WithoutReader {
		return findings, j.register(ctx, "", "", j.activeEngine(ctx), registered)
	}
	core, err := kubernetes.NewForConfig(j.Member)
	if err != nil {
		return findings, fmt.Errorf("the member's configuration cannot be used: %w", err)
	}
	reading, err := j.token(ctx, core, j.Host.CredentialsNamespace, federation.SecretName(j.Cluster.Name), tokens.Reader)
	if err != nil {
		return findings, err
	}
	reader, err := federation.RESTConfig(j.Cluster, reading)
	if err != nil {
		return findings, err
	}
	pushing, pusher := "", reader // an engine that pulls has no token on the host, and the adapter may list the kinds, too
	if !j.Cluster.Engine.Pulls() {
		namespace, name := j.writerSecret(j.Cluster.Engine)
		if pushing, err = j.token(ctx, core, namespace, name, j.Cluster.Engine.Account()); err != nil {
			return findings, err
		}
		if pusher, err = federation.RESTConfig(j.Cluster, pushing); err != nil {
			return findings, err
		}
	}
	// The API server takes a moment to observe new roles and a new kind.
	err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, preflight.Timeout, true, func(context.Context) (bool, error) {
		findings = preflight.Assess(j.read(ctx, pusher, reader, needs.Kinds), needs)
		return !slices.ContainsFunc(findings, func(f preflight.Finding) bool {
			return f.Code == preflight.KindForbidden || f.Code == preflight.KindMissing
		}), nil
	})
	if err != nil && !wait.Interrupted(err) {
		return findings, fmt.Errorf("look at the member as its engine and the adapter will: %w", err)
	}
	if !preflight.Passes(findings) {
		return findings, ErrRefused
	}
	return findings, j.register(ctx, pushing, reading, j.activeEngine(ctx), registered)
}

// token returns the token that the host has, if it is valid for long enough and the member accepts it, or a new one.
func (j *Join) token(ctx context.Context, core kubernetes.Interface, ns, name, account string) (token string, err error) {
	if token, err = j.Host.token(ctx, ns, name); err != nil {
		return "", err
	}
	if token != "" && j.good(ctx, core, token) {
		return token, nil
	}
	seconds := int64(j.Lifetime / time.Second)
	got, err := core.CoreV1().ServiceAccounts(tokens.Namespace).CreateToken(ctx, account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("make a token of %s in %s: %w", account, j.Cluster.Name, err)
	}
	return got.Status.Token, nil
}

// good reports whether the member accepts the token, and whether less than half of its lifetime has passed.
func (j *Join) good(ctx context.Context, core kubernetes.Interface, token string) bool {
	if tokens.SpanOf(token).Due(j.Now()) {
		return false
	}
	r, err := core.AuthenticationV1().TokenReviews().Create(ctx,
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	return err == nil && r.Status.Authenticated
}

// writerSecret returns the namespace and the name of the Secret on the host with the token of an engine's account in the member.
func (j *Join) writerSecret(e federation.Engine) (namespace, name string) {
	c := federation.Cluster{Name: j.Cluster.Name, Engine: e, Secret: federation.PusherSecretName(j.Cluster.Name)}
	return c.WriterSecret(j.Host.KubeFedNamespace, j.Host.CredentialsNamespace)
}

// register writes the objects on the host, the registration last. active is the engine that the registration names, and registered is the
// registration that there was.
func (j *Join) register(ctx context.Context, pushing, reading string, active federation.Engine, registered federation.Cluster) error {
	namespace, pusher := j.writerSecret(j.Cluster.Engine)
	secrets := []struct{ namespace, name, token string }{
		{namespace, pusher, pushing}, {j.Host.CredentialsNamespace, federation.SecretName(j.Cluster.Name), reading},
	}
	if j.Cluster.Engine.Pulls() {
		// KubeFed does not find this Secret, and has no client of the member.
		secrets, pusher = secrets[1:], federation.DirectSecretName(j.Cluster.Name)
	}
	if j.WithoutReader {
		secrets = nil
		if err := j.removeReader(ctx); err != nil {
			return err
		}
	}
	for _, s := range secrets {
		o, err := toUnstructured(secret(s.namespace, s.name, s.token))
		if err != nil {
			return err
		}
		if err := j.step(applyObject(ctx, j.Host.dynamic, "host", o, j.DryRun)); err != nil {
			return err
		}
	}
	metadata := map[string]any{"namespace": j.Host.KubeFedNamespace, "name": j.Cluster.Name}
	if len(j.Cluster.Labels) > 0 {
		labels := map[string]any{}
		for k, v := range j.Cluster.Labels {
			labels[k] = v
		}
		metadata["labels"] = labels
	}
	annotations := map[string]any{}
	if !j.Cluster.Engine.Pulls() {
		annotations[federation.AnnotationRenewed] = tokens.Fingerprint(pushing)
	}
	if active != federation.EngineKubeFed {
		annotations[federation.AnnotationEngine] = string(active)
	}
	if registered.HasWorkAgent() && active != federation.EngineOCM {
		annotations[federation.AnnotationFormerEngine] = string(federation.EngineOCM)
	}
	if j.Cluster.Mesh != "" {
		annotations[federation.AnnotationMesh] = j.Cluster.Mesh
	}
	if e := j.Cluster.Enforcer; e != "" && e != string(v1alpha1.EnforcerCilium) {
		annotations[federation.AnnotationEnforcer] = e
	}
	if j.Cluster.WithoutIstio() {
		annotations[federation.AnnotationIstio] = j.Cluster.Istio
	}
	if j.Cluster.Profile != "" {
		annotations[federation.AnnotationClusterProfile] = j.Cluster.Profile
	}
	if j.Cluster.Locations != (federation.Locations{}) {
		for k, v := range j.Cluster.Locations.Annotations() {
			annotations[k] = v
		}
	}
	metadata["annotations"] = annotations
	spec := map[string]any{"apiEndpoint": j.Cluster.Endpoint, "caBundle": base64.StdEncoding.EncodeToString(j.Cluster.CABundle),
		"secretRef": map[string]any{"name": pusher}}
	if j.Cluster.ProxyURL != "" {
		spec["proxyURL"] = j.Cluster.ProxyURL
	}
	if err := j.step(applyObject(ctx, j.Host.dynamic, "host", &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster", "metadata": metadata, "spec": spec}}, j.DryRun)); err != nil || j.DryRun {
		return err
	}
	return j.Host.setLeaving(ctx, j.Cluster.Name, false) // A member that joins is no longer leaving.
}

// removeReader removes the adapter's token of the member from the host, if there is one.
func (j *Join) removeReader(ctx context.Context) error {
	o, err := toUnstructured(secret(j.Host.CredentialsNamespace, federation.SecretName(j.Cluster.Name), ""))
	if err != nil {
		return err
	}
	step, err := removeObject(ctx, j.Host.dynamic, "host", o, j.DryRun)
	if err == nil && step.Outcome == Absent {
		return nil
	}
	return j.step(step, err)
}

func (j *Join) step(s Step, err error) error {
	if err == nil && j.OnStep != nil {
		j.OnStep(s)
	}
	return err
}

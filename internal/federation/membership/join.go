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
	"github.com/acp-io/acp/deploy/rbac/direct"
	"github.com/acp-io/acp/deploy/rbac/member"
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
	// Lifetime is the requested lifetime of the tokens; a cluster may grant less.
	Lifetime time.Duration
	DryRun   bool
	Now      func() time.Time
	// OnStep is called after each step.
	OnStep func(Step)
}

// ErrRefused reports that the cluster does not pass the preflight. Nothing was registered.
var ErrRefused = errors.New("the cluster does not pass the preflight")

// ErrOther reports that the name is registered for another cluster.
var ErrOther = errors.New("the name is registered with another address or authority")

// Run registers the cluster and returns the findings of the preflight. With ErrRefused the findings contain the
// reasons.
func (j *Join) Run(ctx context.Context) ([]preflight.Finding, error) {
	if _, err := federation.RESTConfig(j.Cluster, ""); err != nil {
		return nil, err
	}
	// A cluster that cannot be read is a finding; nothing is written before it is known not to be the host.
	if err := j.Host.refuseHost(ctx, j.Member); errors.Is(err, ErrHost) {
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
	if present {
		j.keep(registered)
	}
	if j.Cluster.Engine == "" {
		j.Cluster.Engine = federation.EngineKubeFed
	}
	former := j.formerEngine(present, registered)
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
	if err := j.Host.refuseHost(ctx, j.Member); err != nil {
		return findings, err
	}
	objects, err := dynamic.NewForConfig(j.Member)
	if err != nil {
		return findings, fmt.Errorf("the member's configuration cannot be used: %w", err)
	}
	if err := j.prepare(ctx, objects, kinds, former); err != nil {
		return findings, err
	}
	if j.DryRun {
		err = j.register(ctx, "", "", j.Cluster.Engine)
	} else {
		findings, err = j.withTokens(ctx, needs, findings)
	}
	if err != nil {
		return findings, err
	}
	if former != "" && !j.DryRun {
		if err := j.handOver(ctx); err != nil {
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
	return j.Host.look(ctx, j.Cluster, needs)
}

// registration returns the cluster's registration, if it is present and may be repeated as it is given now.
func (j *Join) registration(ctx context.Context) (present bool, registered federation.Cluster, err error) {
	u, registered, err := j.Host.registration(ctx, j.Cluster.Name)
	if err != nil {
		return false, registered, err
	}
	if u != nil && !j.sameAddress(registered) {
		return true, registered, fmt.Errorf("%s: %w: %s, not %s", j.Cluster.Name, ErrOther, registered.Endpoint, j.Cluster.Endpoint)
	}
	return u != nil, registered, j.checkProfile(ctx, registered)
}

// sameAddress reports whether a registration has the address and the authority of this one.
func (j *Join) sameAddress(registered federation.Cluster) bool {
	return federation.Address(registered.Endpoint) == federation.Address(j.Cluster.Endpoint) && bytes.Equal(registered.CABundle, j.Cluster.CABundle)
}

// formerEngine returns the engine from which the member moves, or "" if it does not move.
func (j *Join) formerEngine(present bool, registered federation.Cluster) federation.Engine {
	switch {
	case !present:
		return ""
	case j.Cluster.Engine == federation.EngineDirect:
		return federation.EngineKubeFed // an earlier move may have been interrupted
	case registered.Engine != j.Cluster.Engine:
		return registered.Engine
	}
	return ""
}

// prepare creates in the member what the engine and the adapter need there. While the member moves from another engine,
// the guard admits the accounts of both.
func (j *Join) prepare(ctx context.Context, objects dynamic.Interface, kinds []federation.Kind, former federation.Engine) error {
	if err := j.accounts(ctx, objects); err != nil {
		return err
	}
	if j.Cluster.WithoutCilium() {
		if err := applyCiliumKinds(ctx, objects, j.Cluster.Name, j.DryRun, j.step); err != nil {
			return err
		}
	}
	if j.Istio || slices.ContainsFunc(kinds, isIstio) {
		if err := applyIstio(ctx, objects, j.Cluster.Name, j.Cluster.Engine, j.DryRun, j.step); err != nil {
			return err
		}
	}
	if former != "" {
		return j.admitBoth(ctx, objects, former)
	}
	return nil
}

// keep copies declarations from an existing registration that this one lacks.
func (j *Join) keep(registered federation.Cluster) {
	if j.Cluster.Enforcer == "" {
		j.Cluster.Enforcer = registered.Enforcer
	}
	if j.Cluster.Engine == "" {
		j.Cluster.Engine = registered.Engine
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

// read gathers the facts about the cluster in the form in which it will be registered.
func (j *Join) read(ctx context.Context, pusher, reader *rest.Config, kinds []federation.Kind) preflight.Facts {
	f := preflight.Read(ctx, j.Cluster.Name, pusher, reader, kinds, j.Cluster.Locations)
	f.Mesh, f.Enforcer, f.Istio.Declared, f.Engine = j.Cluster.Mesh, j.Cluster.Enforcer, j.Cluster.Istio, j.Cluster.Engine
	return f
}

func isIstio(k federation.Kind) bool { return k == federation.IstioPolicy }

// accounts creates the accounts of the engine and the adapter in the member, with their roles.
func (j *Join) accounts(ctx context.Context, objects dynamic.Interface) error {
	all, err := accounts(j.Cluster.Engine)
	if err != nil {
		return err
	}
	if j.Cluster.Locations != (federation.Locations{}) {
		if err := j.mayRead(all); err != nil {
			return err
		}
	}
	for _, o := range all {
		if err := j.step(applyObject(ctx, objects, j.Cluster.Name, o, j.DryRun)); err != nil {
			return err
		}
	}
	return nil
}

// mayRead lets the adapter read the parts of the dataplane at their places.
func (j *Join) mayRead(objects []*unstructured.Unstructured) error {
	at := j.Cluster.Locations
	names := map[string][]string{"configmaps": {at.CiliumConfig.Name}, "daemonsets": {at.CiliumAgents.Name, at.CiliumEnvoy.Name}}
	for _, o := range objects {
		if o.GetKind() != "ClusterRole" || o.GetName() != readerRole {
			continue
		}
		rules, _, err := unstructured.NestedSlice(o.Object, "rules")
		if err != nil {
			return fmt.Errorf("read the rules of ClusterRole %s: %w", readerRole, err)
		}
		for _, r := range rules {
			rule, _ := r.(map[string]any)
			resources, _, _ := unstructured.NestedStringSlice(rule, "resources")
			may, _, _ := unstructured.NestedStringSlice(rule, "resourceNames")
			if len(resources) != 1 || names[resources[0]] == nil || len(may) == 0 {
				continue
			}
			may = append(may, names[resources[0]]...)
			slices.Sort(may)
			if err := unstructured.SetNestedStringSlice(rule, slices.Compact(may), "resourceNames"); err != nil {
				return fmt.Errorf("write the rules of ClusterRole %s: %w", readerRole, err)
			}
		}
		if err := unstructured.SetNestedSlice(o.Object, rules, "rules"); err != nil {
			return fmt.Errorf("write the rules of ClusterRole %s: %w", readerRole, err)
		}
	}
	return nil
}

// readerRole is the ClusterRole of the adapter in a member.
const readerRole = "acp-adapter"

// accounts returns the objects of a member, in the order in which they are needed: the accounts of the adapter and of some engines,
// with their roles.
func accounts(engines ...federation.Engine) ([]*unstructured.Unstructured, error) {
	out := []*unstructured.Unstructured{{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": tokens.Namespace}}}}
	others := map[string]bool{}
	for _, e := range federation.Engines() {
		others[e.Account()] = !slices.Contains(engines, e)
	}
	for _, account := range []string{tokens.Pusher, tokens.Direct, tokens.Reader} {
		if others[account] {
			continue
		}
		out = append(out, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ServiceAccount",
			"metadata": map[string]any{"namespace": tokens.Namespace, "name": account}}})
	}
	roles, err := manifests(member.Files)
	if err != nil {
		return nil, err
	}
	if slices.Contains(engines, federation.EngineDirect) {
		own, err := documents("roles.yaml", direct.Roles)
		if err != nil {
			return nil, err
		}
		roles = append(roles, own...)
	}
	for _, o := range roles {
		if !others[o.GetName()] {
			out = append(out, o)
		}
	}
	return out, nil
}

// withTokens reads the member with the tokens of its engine and the adapter, and registers it if it passes the preflight
// with them, too.
func (j *Join) withTokens(ctx context.Context, needs preflight.Needs, findings []preflight.Finding) ([]preflight.Finding, error) {
	core, err := kubernetes.NewForConfig(j.Member)
	if err != nil {
		return findings, fmt.Errorf("the member's configuration cannot be used: %w", err)
	}
	namespace, name := j.writerSecret(j.Cluster.Engine)
	pushing, err := j.token(ctx, core, namespace, name, j.Cluster.Engine.Account())
	if err != nil {
		return findings, err
	}
	reading, err := j.token(ctx, core, j.Host.CredentialsNamespace, federation.SecretName(j.Cluster.Name), tokens.Reader)
	if err != nil {
		return findings, err
	}
	pusher, err := federation.RESTConfig(j.Cluster, pushing)
	if err != nil {
		return findings, err
	}
	reader, err := federation.RESTConfig(j.Cluster, reading)
	if err != nil {
		return findings, err
	}
	// The API server takes a moment to observe new roles and a new kind.
	err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, preflight.Timeout, true, func(context.Context) (bool, error) {
		findings = preflight.Assess(j.read(ctx, pusher, reader, needs.Kinds), needs)
		return !slices.ContainsFunc(findings, func(f preflight.Finding) bool {
			return f.Code == preflight.KindForbidden || f.Code == preflight.KindMissing
		}), nil
	})
	if err != nil && !wait.Interrupted(err) {
		return findings, fmt.Errorf("look at the member as KubeFed will: %w", err)
	}
	if !preflight.Passes(findings) {
		return findings, ErrRefused
	}
	return findings, j.register(ctx, pushing, reading, j.activeEngine(ctx))
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

// register writes the objects on the host, the registration last. active is the engine that the registration names.
func (j *Join) register(ctx context.Context, pushing, reading string, active federation.Engine) error {
	namespace, pusher := j.writerSecret(j.Cluster.Engine)
	reader := federation.SecretName(j.Cluster.Name)
	for _, s := range []struct{ namespace, name, token string }{
		{namespace, pusher, pushing}, {j.Host.CredentialsNamespace, reader, reading},
	} {
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
	annotations := map[string]any{federation.AnnotationRenewed: tokens.Fingerprint(pushing)}
	if active != federation.EngineKubeFed {
		annotations[federation.AnnotationEngine] = string(active)
	}
	if j.Cluster.Mesh != "" {
		annotations[federation.AnnotationMesh] = j.Cluster.Mesh
	}
	if e := j.Cluster.Enforcer; e != "" && e != string(v1alpha1.EnforcerCilium) {
		annotations[federation.AnnotationEnforcer] = e
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

func (j *Join) step(s Step, err error) error {
	if err == nil && j.OnStep != nil {
		j.OnStep(s)
	}
	return err
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/inventory"
	"github.com/acp-io/acp/internal/federation/membership"
)

// joinFlags are the flags of cluster join.
type joinFlags struct {
	hostFlags
	memberKubeconfig, memberContext string
	endpoint, ca, proxy             string
	labels                          map[string]string
	mesh, enforcer, engine          string
	profile, provider               string
	places                          map[string]*string
	lifetime                        time.Duration
	adapter                         string
	istio, classLabels, dryRun      bool
	withoutReader, withoutIstio     bool
}

func newClusterJoin(s Streams) *cobra.Command {
	j := &joinFlags{hostFlags: hostFlags{streams: s}}
	cmd := &cobra.Command{
		Use:   "join NAME --member-context CONTEXT",
		Short: "Register a cluster as a member if it passes the preflight",
		Long: `Checks the cluster, creates the accounts of the engine and of the adapter in it with the least privileges, checks the cluster
again with their tokens, and then registers it: Secrets and a KubeFedCluster on the host. Finally it installs the guard, with
which only the member's engine and the group acp:break-glass can change the objects that ACP manages there. Existing objects are kept, so
the command can be repeated after an interruption, after an upgrade, and to replace expired tokens. The adapter renews each
token with itself when half of its lifetime is over.

The exit code is 1 if the cluster does not pass the preflight. Then it is not registered.`,
		Args: oneArgument("the name of the member"),
		RunE: func(cmd *cobra.Command, args []string) error { return j.run(cmd, args[0]) },
	}
	j.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&j.memberKubeconfig, "member-kubeconfig", "", "kubeconfig `FILE` with the member's context (default: that of the host)")
	f.StringVar(&j.memberContext, "member-context", "", "`NAME` of the context of the member's administrator")
	f.StringVar(&j.endpoint, "api-endpoint", "", "`URL` of the member's API server for the host and the adapter (default: that of the context)")
	f.StringVar(&j.ca, "ca-file", "", "`FILE` with the certificate authority of the API server (default: that of the context)")
	f.StringVar(&j.proxy, "proxy-url", "", "`URL` of the HTTP proxy to the member, such as Konnectivity's")
	f.StringVar(
		&j.profile,
		"from-profile",
		"",
		"`NAMESPACE/NAME` of the ClusterProfile on the host with the address of the API server and its proxy; the certificate authority is that of the "+
			"context or --ca-file, and must be the same (docs/engines.md)",
	)
	f.StringVar(&j.provider, "access-provider", "", "`NAME` of the access provider in the ClusterProfile, if it has several that differ")
	f.StringToStringVar(&j.labels, "label", nil, "`KEY=VALUE` label of the registration, by which classes select members; repeatable")
	f.StringVar(
		&j.mesh,
		"mesh",
		"",
		"`NAME` of the cluster mesh that the cluster is in, or none: pods of other meshes have no identity there; empty: what is registered, else none "+
			"if Cilium's cluster-id is 0, else the mesh of all members that name none",
	)
	f.StringVar(
		&j.enforcer,
		"enforcer",
		"",
		"`NAME` of what enforces there: cilium, with or without Istio, or istio, where there is no Cilium: then Cilium's kinds are brought for KubeFed, "+
			"and nothing of Cilium's counts as enforced there; empty: what is registered, else cilium",
	)
	f.StringVar(
		&j.engine,
		"engine",
		"",
		"`NAME` of the propagation engine that carries policies there: kubefed; direct, where the adapter writes itself; or ocm, where the work agent of "+
			"Open Cluster Management fetches them; empty: what is registered, else kubefed. For a member that is registered with another engine, the "+
			"command moves it (docs/engines.md)",
	)
	f.StringVar(&j.adapter, "adapter-service-account", "",
		"`NAME` of the adapter's service account on the host, which --engine ocm gives rights in the member's namespace there; empty: the one that has "+
			"these rights, else "+membership.DefaultAdapter)
	f.BoolVar(&j.withoutReader, "without-reader", false,
		"with --engine ocm: store no token of the member on the host, which cannot reach it; then no resource counts as enforced there (docs/engines.md)")
	j.places = map[string]*string{
		federation.AnnotationCiliumConfig: f.String(
			"cilium-config",
			"",
			"`NAMESPACE/NAME` of the agents' ConfigMap; empty: what is registered, else kube-system/cilium-config",
		),
		federation.AnnotationCiliumAgents: f.String(
			"cilium-agents",
			"",
			"`NAMESPACE/NAME` of the agents' DaemonSet; empty: what is registered, else kube-system/cilium",
		),
		federation.AnnotationCiliumEnvoy: f.String(
			"cilium-envoy",
			"",
			"`NAMESPACE/NAME` of Envoy's DaemonSet; empty: what is registered, else kube-system/cilium-envoy",
		),
		federation.AnnotationIstioRoot: f.String(
			"istio-root-namespace",
			"",
			"`NAMESPACE` that is Istio's root there; empty: what is registered, else istio-system",
		),
	}
	f.DurationVar(
		&j.lifetime,
		"token-lifetime",
		7*24*time.Hour,
		"requested `LIFETIME` of the tokens; a cluster may give less. The adapter renews them after half of it",
	)
	f.BoolVar(&j.classLabels, "guard-class-labels", false, guardClassLabels)
	f.BoolVar(&j.istio, "istio", false, bringIstio)
	f.BoolVar(&j.withoutIstio, "without-istio", false,
		"declare that no Istio enforces there (annotation "+federation.AnnotationIstio+"): the cluster gets none of its policies, and with --engine direct or "+
			"ocm need not have its kind")
	f.BoolVar(&j.dryRun, "dry-run", false, "check the cluster and print what would be written, without writing it")
	return cmd
}

// checkEnforcer checks the flags about what enforces in the cluster.
func (j *joinFlags) checkEnforcer() error {
	switch v1alpha1.EnforcerName(j.enforcer) {
	case "", v1alpha1.EnforcerCilium:
	case v1alpha1.EnforcerIstio:
		if j.mesh != "" && j.mesh != federation.NoMesh {
			return usage("--mesh %s names a cluster mesh of Cilium, and with --enforcer istio there is no Cilium: leave out one of the two", j.mesh)
		}
	default:
		return usage("--enforcer %q is neither cilium nor istio", j.enforcer)
	}
	if j.withoutIstio && (j.istio || j.enforcer == string(v1alpha1.EnforcerIstio)) {
		return usage("--without-istio declares that no Istio enforces there: leave out --istio and --enforcer istio")
	}
	return nil
}

// check checks the flags with each other, and the name of the member.
func (j *joinFlags) check(name string) error {
	if j.memberContext == "" && j.memberKubeconfig == "" {
		return usage("which cluster? Give --member-context, --member-kubeconfig, or both")
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return usage("the name %q of the member: %s", name, strings.Join(problems, "; "))
	}
	if j.lifetime < 24*time.Hour {
		return usage("--token-lifetime %s is less than a day", j.lifetime)
	}
	if err := j.checkEnforcer(); err != nil {
		return err
	}
	if e := federation.Engine(j.engine); e != "" && !slices.Contains(federation.Engines(), e) {
		return usage("--engine %q is not one of kubefed, direct and ocm", j.engine)
	}
	if j.withoutReader && j.engine != "" && !federation.Engine(j.engine).Pulls() {
		return usage("--without-reader goes with --engine ocm: with %s, the adapter writes from the host", j.engine)
	}
	if j.profile == "" && j.provider != "" {
		return usage("--access-provider goes with --from-profile")
	}
	if j.profile != "" && (j.endpoint != "" || j.proxy != "") {
		return usage("--from-profile takes the address and the proxy from the ClusterProfile: leave out --api-endpoint and --proxy-url")
	}
	return nil
}

func (j *joinFlags) run(cmd *cobra.Command, name string) error {
	if err := j.check(name); err != nil {
		return err
	}
	host, config, err := j.host()
	if err != nil {
		return err
	}
	member, err := j.hostFlags.memberKubeconfig(j.memberKubeconfig, j.memberContext)
	if err != nil {
		return err
	}
	cluster, err := j.cluster(name, member)
	if err == nil && j.profile != "" {
		cluster, err = j.fromProfile(cmd.Context(), host, cluster)
	}
	if err == nil {
		err = j.checkEndpoint(cluster.Endpoint)
	}
	if err != nil {
		return err
	}
	if j.profile != "" {
		fmt.Fprintf(j.streams.Err, "%s: address %s, %s, from ClusterProfile %s\n", name, cluster.Endpoint, proxyText(cluster.ProxyURL), cluster.Profile)
	}
	labels, err := keys(cmd, config)
	if err != nil {
		return err
	}
	join := &membership.Join{
		Host:          host,
		Cluster:       cluster,
		Member:        member,
		Keys:          labels,
		ClassLabels:   j.classLabels,
		Istio:         j.istio,
		WithoutIstio:  j.withoutIstio,
		Lifetime:      j.lifetime,
		DryRun:        j.dryRun,
		Adapter:       j.adapter,
		WithoutReader: j.withoutReader,
		Now:           j.streams.Now,
		OnStep:        j.streams.step,
	}
	found, err := join.Run(cmd.Context())
	for _, f := range found {
		fmt.Fprintf(j.streams.Err, "%s %s: %s; %s\n", f.Severity, f.Code, f.Message.Render(language()), f.Remedy.Render(language()))
	}
	if errors.Is(err, membership.ErrRefused) {
		return &failure{code: ExitFindings, err: fmt.Errorf("%s is not registered: %w", name, err)}
	}
	if err != nil {
		return withRemedy(name, err)
	}
	if !j.dryRun {
		fmt.Fprintf(j.streams.Err, "%s is registered; \"kubectl get memberclusters\" shows when it is Ready\n", name)
	}
	return nil
}

// cluster returns the registration as it must be.
func (j *joinFlags) cluster(name string, member *rest.Config) (federation.Cluster, error) {
	declared := map[string]string{}
	for annotation, value := range j.places {
		if *value != "" {
			declared[annotation] = *value
		}
	}
	c := federation.Cluster{
		Name:      name,
		Endpoint:  either(j.endpoint, member.Host),
		ProxyURL:  j.proxy,
		Labels:    j.labels,
		Mesh:      j.mesh,
		Enforcer:  j.enforcer,
		Engine:    federation.Engine(j.engine),
		Locations: federation.ParseLocations(declared),
	}
	if !c.Locations.Problem.IsZero() {
		return c, usage("--cilium-config, --cilium-agents and --cilium-envoy are NAMESPACE/NAME")
	}
	if err := rest.LoadTLSFiles(member); err != nil {
		return c, invalid(fmt.Errorf("read the member's certificates: %w", err))
	}
	c.CABundle = member.CAData
	if j.ca != "" {
		var err error
		if c.CABundle, err = os.ReadFile(j.ca); err != nil {
			return c, invalid(fmt.Errorf("read --ca-file: %w", err))
		}
	}
	if len(c.CABundle) == 0 {
		return c, usage("the member's context has no certificate authority: give --ca-file")
	}
	return c, nil
}

// fromProfile returns the registration with the address in the ClusterProfile.
func (j *joinFlags) fromProfile(ctx context.Context, host *membership.Host, c federation.Cluster) (federation.Cluster, error) {
	name, err := inventory.ParseName(j.profile)
	if err != nil {
		return c, usage("--from-profile %w", err)
	}
	profile, err := host.Profile(ctx, name)
	if apierrors.IsNotFound(err) {
		return c, invalid(fmt.Errorf("the host has no ClusterProfile %s", name))
	}
	if err != nil {
		return c, invalid(err)
	}
	if c, err = membership.FromProfile(c, profile, j.provider); err != nil {
		return c, withRemedy(c.Name, err)
	}
	return c, nil
}

// proxyText describes the proxy of a registration, without a password in it.
func proxyText(proxy string) string {
	if proxy == "" {
		return "no proxy"
	}
	u, err := url.Parse(proxy)
	if err != nil {
		return "an invalid proxy"
	}
	return "proxy " + u.Redacted()
}

// checkEndpoint returns an error if the endpoint is not an https URL, or if it is an address of this machine that is from the context instead
// of --api-endpoint or --from-profile, because pods of the host cannot reach it. Tunnels and local clusters have such contexts.
func (j *joinFlags) checkEndpoint(endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" {
		return usage("the address %q of the member's API server is not of the form https://HOST:PORT: give it with --api-endpoint", endpoint)
	}
	ip, err := netip.ParseAddr(u.Hostname())
	local := strings.EqualFold(u.Hostname(), "localhost") || err == nil && (ip.IsLoopback() || ip.IsUnspecified())
	if local && j.endpoint == "" && j.profile == "" {
		return usage("the context's address %s is one of this machine, which pods of the host usually cannot reach: give the address that they use "+
			"with --api-endpoint, or this one again", endpoint)
	}
	return nil
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

package nodetest

import (
	"bufio"
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/internal/freeport"
	"github.com/acp-io/acp/playground/internal/parts"
	"github.com/acp-io/acp/playground/node/internal/image"
)

const (
	// repository is where the guide says that images are.
	repository = "registry.example.com/acp"
	// issuer is the address of the OpenID provider in the host cluster.
	issuer     = "https://login.login.svc.cluster.local"
	issuerName = "login.login.svc.cluster.local"
	// portalURL is the chart's default.
	portalURL = "https://localhost:8443"
	// hubbleName is the name in the certificate of the member's flow API.
	hubbleName = "hubble.example.com"

	// podsTimeout is how long pods may take to be ready, on a busy machine.
	podsTimeout = 5 * time.Minute
)

// providerManifest is the OpenID provider. Its client secret is the one in the guide.
const providerManifest = `
apiVersion: v1
kind: Namespace
metadata: {name: login}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: login, namespace: login}
spec:
  selector: {matchLabels: {app: login}}
  template:
    metadata: {labels: {app: login}}
    spec:
      securityContext: {runAsUser: 65532, fsGroup: 65532}
      containers:
      - name: provider
        image: registry.example.com/test/provider:1
        imagePullPolicy: Never
        args: [--issuer=ISSUER, --portal-url=PORTAL, --client-secret=YOUR-SECRET, --tls-cert-file=/tls/tls.crt, --tls-key-file=/tls/tls.key]
        readinessProbe: {tcpSocket: {port: 8443}, periodSeconds: 1}
        volumeMounts: [{name: tls, mountPath: /tls}]
      volumes: [{name: tls, secret: {secretName: tls}}]
---
apiVersion: v1
kind: Service
metadata: {name: login, namespace: login}
spec: {selector: {app: login}, ports: [{port: 443, targetPort: 8443}]}
`

// installation is ACP in a host cluster, with a member.
type installation struct {
	*guide
	node         *node
	ca           *authority
	host, member kubernetes.Interface
	objects      dynamic.Interface // of the host
	browsers     *browsers
	stopForward  func()
	whole        *testing.T // what its parts start lasts as long

	// apps are the addresses of the member's pods by name.
	apps map[string]string
	wire *wire
}

// TestInstallation follows docs/install.md on a real host cluster and a real member. The images, helm and kubectl-acp are those that
// `make test-cluster` builds.
func TestInstallation(t *testing.T) {
	images, bin := os.Getenv("ACP_IMAGES"), os.Getenv("ACP_BIN")
	if images == "" || bin == "" {
		t.Fatal("ACP_IMAGES and ACP_BIN are not set: run `make test-cluster`, which builds what this test needs")
	}
	state := filepath.Join(t.TempDir(), "nodes")
	before, programs := takeMachine(t), bpfPrograms()
	in := startInstallation(t, state, images, bin)
	in.install(t)
	t.Run("pods are closed but for what they serve", in.testNetworkPolicies)
	t.Run("idle", in.measureMemory)
	in.join(t)
	in.declare(t)
	in.installNodeReporter(t)
	t.Run("the webhook answers", in.testWebhook)
	in.openPortal(t)
	t.Run("a request becomes a connection", in.testStory)
	t.Run("a request in a browser becomes a connection", in.testBrowser)
	t.Run("times", in.measureWire)
	in.checkPods(t)
	in.mode(t, "Enforce") // also if an earlier part failed
	in.reaches(t, "a resource in Enforce is closed", map[string]bool{"shop": false, "other": false})
	t.Run("statements", in.testStatements)
	t.Run("a pod of another cluster", in.testForeignPod)
	t.Run("a drained node of the member", in.testDrainedMember)
	t.Run("the nodes of the member", in.testNodes)
	stop := in.watchClosed(t, "other")
	t.Run("flows", in.testFlows)
	t.Run("a killed agent", in.testKilledAgent)
	t.Run("a killed leader", in.testLeader)
	in.checkPods(t)
	t.Run("a drained node of the host", in.testDrainedHost)
	in.checkPods(t)
	t.Run("the life of a release", in.testRelease)
	stop()
	t.Run("flows in Audit", in.testAuditedFlows)
	in.checkPods(t)
	belonged := belongingsOf(t, state, programs)
	in.stopForward()
	in.node.stop()
	checkGone(t, state, before, belonged)
}

// startInstallation starts the clusters and gives the host's node the images.
func startInstallation(t *testing.T, state, images, bin string) *installation {
	t.Helper()
	repo, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	in := &installation{whole: t, ca: newAuthority(t), apps: map[string]string{}}
	in.ca.issue(t, "login", issuerName)
	in.ca.issue(t, "hubble", hubbleName)
	in.ca.issue(t, "collector", "collector")
	relay, err := freeport.Find()
	if err != nil {
		t.Fatal(err)
	}
	config, err := yaml.Marshal(map[string]any{"m1": map[string]any{"hubble": map[string]any{
		"port": relay, "ca": in.ca.file("ca.crt"), "cert": in.ca.file("hubble.crt"), "key": in.ca.file("hubble.key"),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "nodes.yaml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	built := buildParts(t, repo)
	in.node = up(t, state, "--clusters", "host,m1", "--config", file)
	fmt.Printf("bench nodes_ready_2 %s s\n", in.node.readyAfter())
	load := map[string][]string{"host": nil, "m1": {layout(t, images, "acp-node")}}
	for _, name := range []string{"portal", "acp-adapter", "flow-collector"} {
		load["host"] = append(load["host"], layout(t, images, name))
	}
	provider := filepath.Join(t.TempDir(), "oidcpod")
	build := exec.Command("go", "build", "-o", provider, "./internal/oidc/oidcpod")
	build.Dir = "../.."
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the provider: %v: %s", err, out)
	}
	for reference, path := range map[string]string{
		repository + "/kubefed:v0.10.0":        built.Path(parts.KubeFed, parts.Hyperfed),
		"registry.example.com/test/provider:1": provider,
	} {
		file := filepath.Join(t.TempDir(), "image.tar")
		if err := image.Write(file, reference, path, "65532:65532"); err != nil {
			t.Fatal(err)
		}
		load["host"] = append(load["host"], file)
	}
	for cluster, files := range load {
		if out, err := exec.Command(program, append([]string{"load", "--state-dir", state, cluster}, files...)...).CombinedOutput(); err != nil {
			t.Fatalf("load the images of %s: %v: %s", cluster, err, out)
		}
	}
	in.host, in.member = in.node.client(t, "host"), in.node.client(t, "m1")
	t.Cleanup(func() {
		if t.Failed() {
			in.report(t)
		}
	})
	if in.objects, err = dynamic.NewForConfig(in.node.config(t, "host")); err != nil {
		t.Fatal(err)
	}
	in.wire = newWire(in.member)
	process, inside := in.network(t)
	in.guide = newGuide(t, repo, process, inside, filepath.Join(state, "host", "kubeconfig"), bin, built[parts.KubernetesNode])
	return in
}

// layout returns the folder of an image among those that were built.
func layout(t *testing.T, images, name string) string {
	t.Helper()
	dir := filepath.Join(images, name)
	if _, err := os.Stat(filepath.Join(dir, "oci-layout")); err != nil {
		t.Fatalf("the image %s was not built: %v", name, err)
	}
	return dir
}

func buildParts(t *testing.T, repo string) parts.Built {
	t.Helper()
	dir, err := parts.DefaultDir()
	if err != nil {
		t.Fatal(err)
	}
	needed, err := parts.Select(parts.KubeFed, parts.KubernetesNode)
	if err != nil {
		t.Fatal(err)
	}
	built, err := (&parts.Cache{Repo: repo, Dir: dir}).Ensure(t.Context(), needed)
	if err != nil {
		t.Fatal(err)
	}
	return built
}

// network returns a process in the network of the clusters, and a file with the contexts host, which is the current one, and m1 for it.
func (in *installation) network(t *testing.T) (process int, kubeconfig string) {
	t.Helper()
	all := clientcmdapi.NewConfig()
	all.CurrentContext = "host"
	for name, client := range map[string]kubernetes.Interface{"host": in.host, "m1": in.member} {
		one, err := clientcmd.LoadFromFile(filepath.Join(in.node.state, name, "kubeconfig"))
		if err != nil {
			t.Fatal(err)
		}
		nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil || len(nodes.Items) != 1 {
			t.Fatalf("the nodes of %s: %v, %v", name, nodes, err)
		}
		all.Clusters[name], all.AuthInfos[name], all.Contexts[name] = one.Clusters[name], one.AuthInfos[name], one.Contexts[name]
		all.Clusters[name].Server = "https://" + nodes.Items[0].Status.Addresses[0].Address + ":6443"
	}
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*all, kubeconfig); err != nil {
		t.Fatal(err)
	}
	var record struct{ PID int }
	data, err := os.ReadFile(filepath.Join(in.node.state, "host", "node", "sandbox.json"))
	if err == nil {
		err = json.Unmarshal(data, &record)
	}
	if err != nil || record.PID == 0 {
		t.Fatalf("the record of the host's node: %v", err)
	}
	return record.PID, kubeconfig
}

// install follows the guide up to the running pods.
func (in *installation) install(t *testing.T) {
	t.Helper()
	in.write(t, "login.yaml", strings.NewReplacer("ISSUER", issuer, "PORTAL", portalURL).Replace(providerManifest))
	in.run(t, "kubectl apply -f login.yaml && kubectl -n login create secret tls tls --cert="+in.ca.file("login.crt")+" --key="+in.ca.file("login.key"))
	in.run(t, "kubectl -n login rollout status deployment/login --timeout=5m")

	began := time.Now()
	in.run(t, in.block(t, "kubectl create namespace acp-system"))
	// The images of both charts are made here, and the provider's authority is the test's own.
	in.write(t, "kubefed-values.yaml", in.block(t, "hyperfed, controller-manager"))
	in.run(t, in.block(t, "helm install acp-kubefed")+" --values kubefed-values.yaml")
	in.run(t, "kubectl -n acp-system create configmap test-authority --from-file="+in.ca.file("ca.crt"))
	in.write(t, "my-values.yaml", in.block(t, "people.csv: |", "https://login.example.com", issuer)+"\nextraCAs: test-authority\n")
	in.run(t, in.block(t, "helm install acp deploy/charts/acp"))
	in.waitForPods(t)
	fmt.Printf("bench helm_install %.1f s\n", time.Since(began).Seconds())
}

const (
	portalPods  = "app.kubernetes.io/name=acp-portal"
	adapterPods = "app.kubernetes.io/name=acp-adapter"
	kubeFedPods = "app.kubernetes.io/name=kubefed-controller-manager"
)

// testNetworkPolicies connects from a pod of another namespace.
func (in *installation) testNetworkPolicies(t *testing.T) {
	startProbe(t, in.host, "stranger", map[string]string{})
	w := newWire(in.host)
	portal, adapter := in.pod(t, "acp-system", portalPods).Status.PodIP, in.pod(t, "acp-system", adapterPods).Status.PodIP
	kubeFed := in.pod(t, "kube-federation-system", kubeFedPods).Status.PodIP
	for what, c := range map[string]struct {
		to   string
		want bool
	}{
		"the portal's Service":          {"acp-portal.acp-system.svc.cluster.local:443", true},
		"the portal":                    {portal + ":8443", true},
		"the portal's metrics":          {portal + ":8082", false},
		"the portal's health":           {portal + ":8081", false},
		"the webhook's Service":         {"acp-adapter-webhook.acp-system.svc.cluster.local:443", true},
		"the adapter's metrics":         {adapter + ":8082", false},
		"KubeFed's metrics":             {kubeFed + ":9090", false},
		"the health of KubeFed's probe": {kubeFed + ":8080", false},
	} {
		eventually(t, wireTimeout, what, w.connects("stranger", c.to, c.want))
	}
}

// join makes m1 a member.
func (in *installation) join(t *testing.T) {
	t.Helper()
	out := in.run(t, in.block(t, "kubectl acp cluster join m1 --member-context m1"))
	t.Logf("cluster join wrote:\n%s", out)
	members := in.objects.Resource(schema.GroupVersionResource{Group: "acp.io", Version: "v1alpha1", Resource: "memberclusters"})
	eventually(t, 2*time.Minute, "the member is Ready", func(ctx context.Context) error {
		m, err := members.Get(ctx, "m1", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if state, _, _ := unstructured.NestedString(m.Object, "status", "state"); state != "Ready" {
			message, _, _ := unstructured.NestedString(m.Object, "status", "message")
			return fmt.Errorf("it is %s: %s", state, message)
		}
		return nil
	})
}

// declare applies the guide's classes and resource, and starts the pods that they are about.
func (in *installation) declare(t *testing.T) {
	t.Helper()
	in.run(t, in.block(t, "kind: SubjectClass"))
	in.startApps(t)
}

// startApps starts the pods of the resource and of its clients in the member.
func (in *installation) startApps(t *testing.T) {
	t.Helper()
	for name, labels := range map[string]map[string]string{
		"redis": {"example.com/redis": "orders"}, "shop": {"example.com/app": "shop"}, "other": {"example.com/app": "other"},
	} {
		in.apps[name] = startProbe(t, in.member, name, labels)
	}
}

func (in *installation) testWebhook(t *testing.T) {
	const overlapping = `apiVersion: acp.io/v1alpha1
kind: ResourceClass
metadata: {name: again}
spec:
  pattern: trnv1:rsc:example-com:redis:clusters:*
  labelKey: example.com/again
  actions: [{name: "redis:connect", ports: [{port: 6379}]}]
  placement: {clusterSelector: {}}
`
	in.write(t, "overlapping.yaml", overlapping)
	out, err := in.try("kubectl apply --dry-run=server -f overlapping.yaml")
	if err == nil || !strings.Contains(out, "validate.acp.io") {
		t.Errorf("a class with the names of another one: %v: %s", err, out)
	}
}

// openPortal leads browsers to the portal's Service and to the provider.
func (in *installation) openPortal(t *testing.T) {
	t.Helper()
	in.browsers = &browsers{portal: portalURL, ways: map[string]string{}}
	in.trustPortal(t)
	login, _ := in.forward(t, "-n", "login", "port-forward", "service/login", ":443")
	in.browsers.via(issuerName+":443", login)
	in.forwardPortal(t)
}

// trustPortal lets browsers that are started from now on trust the provider and the certificate that the chart made.
func (in *installation) trustPortal(t *testing.T) {
	t.Helper()
	authorities, err := in.host.CoreV1().ConfigMaps("acp-system").Get(t.Context(), "acp-portal-ca", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile(in.ca.file("ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(authorities.Data["ca.crt"])) || !roots.AppendCertsFromPEM(own) {
		t.Fatal("an authority is no PEM")
	}
	in.browsers.roots = roots
}

// forwardPortal is the guide's way to the portal, but for the port of this machine, which may be taken.
func (in *installation) forwardPortal(t *testing.T) {
	t.Helper()
	if in.stopForward != nil {
		in.stopForward()
	}
	command := strings.Fields(in.block(t, "port-forward service/acp-portal", "8443:443", ":443"))
	address, stop := in.forward(in.whole, command[1:]...)
	in.browsers.via("localhost:8443", address)
	in.stopForward = stop
}

// mode changes the mode of the resource.
func (in *installation) mode(t *testing.T, mode string) {
	t.Helper()
	in.run(t, `kubectl patch protectedresource orders --type=merge -p '{"spec":{"mode":"`+mode+`"}}'`)
}

// reaches waits until pods of the member can, or cannot, connect to the resource.
func (in *installation) reaches(t *testing.T, reason string, may map[string]bool) {
	t.Helper()
	for app, want := range may {
		eventually(t, wireTimeout, reason+": "+app, in.wire.connects(app, in.apps["redis"]+":6379", want))
	}
}

const denial = `apiVersion: acp.io/v1alpha1
kind: AccessControlPolicy
metadata: {name: denial}
spec:
  statements:
  - sid: no-shop
    effect: Deny
    subjects: ["trnv1:rsc:example-com:iam:sa:app/shop"]
    actions: ["redis:connect"]
    resources: ["trnv1:rsc:example-com:redis:clusters:orders"]
`

// testStory goes through what a resource can be for a client, on real connections.
func (in *installation) testStory(t *testing.T) {
	alice, bob, carol := in.browsers.login(t, "alice"), in.browsers.login(t, "bob"), in.browsers.login(t, "carol")
	in.reaches(t, "a resource in Audit is open", map[string]bool{"shop": true, "other": true})
	in.mode(t, "Enforce")
	in.reaches(t, "a resource in Enforce is closed", map[string]bool{"shop": false, "other": false})

	asked := alice.request(t, "shop", "orders")
	if err := alice.call(
		t.Context(),
		"POST",
		"/tickets/"+asked.ID+"/decision",
		map[string]any{"decision": "approve", "version": asked.Version},
		nil,
	); err == nil {
		t.Error("alice may decide her own request")
	}
	asked = carol.approve(t, asked)
	if err := in.wire.connects("shop", in.apps["redis"]+":6379", false)(t.Context()); err != nil {
		t.Errorf("one of two approvals: %v", err)
	}
	asked = bob.approve(t, asked)
	in.reaches(t, "an approved request opens, for its application alone", map[string]bool{"shop": true, "other": false})
	eventually(t, wireTimeout, "the ticket says so", bob.is(asked, "effective"))

	in.write(t, "denial.yaml", denial)
	in.run(t, "kubectl apply -f denial.yaml")
	in.reaches(t, "a denial is stronger than a grant", map[string]bool{"shop": false, "other": false})
	in.run(t, "kubectl delete -f denial.yaml")
	in.reaches(t, "the grant holds again", map[string]bool{"shop": true, "other": false})

	in.mode(t, "Audit")
	in.reaches(t, "Audit opens", map[string]bool{"shop": true, "other": true})
	in.mode(t, "Enforce")
	in.reaches(t, "Enforce closes what no statement allows", map[string]bool{"shop": true, "other": false})

	held := in.hold(t, "shop")
	bob.revoke(t, asked)
	if died := held.ended(t); died.IsZero() {
		t.Error("the open connection outlives its grant")
	}
	in.reaches(t, "a revoked grant is closed for new connections, too", map[string]bool{"shop": false, "other": false})
	eventually(t, wireTimeout, "the ticket says so", bob.is(asked, "revoked"))
}

// moment is a line of what node-probe answers to /await and /held.
type moment struct {
	Event    string
	UnixNano int64
	Error    string
}

// moments are lines that a pod sends while something happens.
type moments struct {
	lines *bufio.Scanner
	close func()
}

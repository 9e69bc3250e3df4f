package charts

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/internal/portal/portaltest"
	"github.com/acp-io/acp/internal/testenv"
)

// TestUpgrade installs the previous release with its charts and programs, KubeFed and a member, upgrades to this version, rolls back and
// upgrades again. In each state, grants are requested, approved, written to the member and revoked. With PostgreSQL, the portals of both
// versions run at the same time. Through all of this, the resource that is enforced is closed to everybody whose grant is not in force,
// and open to the application whose grant is.
func TestUpgrade(t *testing.T) {
	if os.Getenv("HYPERFED") == "" {
		t.Fatal("HYPERFED is not set: run make test-upgrade")
	}
	old := previous(t)
	t.Logf("the previous release is %s", old.name)
	now := previousRelease{name: "this version"}
	t.Run("definitions", func(t *testing.T) { compareDefinitions(t, old) })
	t.Run("postgres", func(t *testing.T) { newUpgrade(t, testenv.Postgres(t)).run(old, now) })
	t.Run("sqlite", func(t *testing.T) { newUpgrade(t, "").run(old, now) })
}

const databaseSecret = "acp-database"

// upgrade is a host with ACP, one member, and people who use the portal.
type upgrade struct {
	*testing.T
	host, member *cluster
	provider     *portaltest.Provider
	database     string // "": SQLite
	folder       string
	people       map[string]*portaltest.Browser
	rotating     string // the ticket whose grant the next step of the work revokes
	watch        *enforcementWatch
	tickets      int
}

func newUpgrade(t *testing.T, database string) *upgrade {
	t.Helper()
	u := &upgrade{T: t, database: database, folder: t.TempDir(), provider: portaltest.NewProvider(t), people: map[string]*portaltest.Browser{}}
	u.host, u.member = start(t), start(t, "controllers/testdata/member")
	u.host.namespace(t, "acp-system", nil)
	if database != "" {
		u.host.create(t, map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": databaseSecret, "namespace": "acp-system"},
			"stringData": map[string]any{"url": database}})
	}
	for _, d := range []string{"data", "flows"} {
		if err := os.Mkdir(filepath.Join(u.folder, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return u
}

// values returns the values of the chart acp.
func (u *upgrade) values() map[string]any {
	if u.database == "" {
		return nil
	}
	return map[string]any{"portal": map[string]any{"database": map[string]any{"existingSecret": databaseSecret}}}
}

// helmInstall installs a chart of the previous release.
func (u *upgrade) helmInstall(p previousRelease, name string, values map[string]any) {
	u.Helper()
	i := action.NewInstall(u.host.helm(u.T, namespaces[name]))
	i.ReleaseName, i.Namespace, i.CreateNamespace, i.WaitStrategy, i.ServerSideApply = name, namespaces[name], true, kube.HookOnlyStrategy, true
	if _, err := i.RunWithContext(u.Context(), load(u.T, p.chart(name)), values); err != nil {
		u.Fatalf("install %s of %s: %v", name, p.name, err)
	}
}

// running is one version's portal and adapter.
type running struct {
	release         previousRelease
	portal, adapter *process
	address         string // of the portal
}

func (u *upgrade) path(p previousRelease, name string) string {
	if p.tree == "" {
		return program(u.T, name)
	}
	return p.program(name)
}

// settings writes the settings that the installed release has for a program, and the files that they name.
func (u *upgrade) settings(configMap string) string {
	u.Helper()
	if u.database != "" {
		u.host.mount(u.T, "Secret", databaseSecret, u.folder+"/etc/acp-database")
	}
	u.host.mount(u.T, "Secret", "acp-portal-tls", u.folder+"/etc/acp-tls")
	u.host.mount(u.T, "ConfigMap", "acp-portal-catalog", u.folder+"/etc/acp-catalog")
	u.host.mount(u.T, "Secret", "acp-adapter-webhook-tls", u.folder+"/etc/acp-webhook")
	o, ok := u.host.get(u.T, "v1", "ConfigMap", "acp-system", configMap)
	if !ok {
		u.Fatalf("there is no ConfigMap %s", configMap)
	}
	_, file := settings(u.T, o, u.folder)
	return file
}

func (u *upgrade) startPortal(p previousRelease) (*process, string) {
	u.Helper()
	listen, health := testenv.FreeAddress(u.T), testenv.FreeAddress(u.T)
	secret := filepath.Join(u.folder, "client-secret")
	if err := os.WriteFile(secret, []byte(portaltest.ClientSecret), 0o600); err != nil {
		u.Fatal(err)
	}
	args := []string{
		"--config=" + u.settings("acp-portal"), "--kubeconfig=" + u.host.account(u.T, "acp-system", "acp-portal"),
		"--listen=" + listen, "--health-address=" + health, "--metrics-address=" + testenv.FreeAddress(u.T), "--shutdown-delay=0s",
		"--catalog=" + portaltest.Catalog(u.T), "--oidc-issuer=" + u.provider.URL, "--oidc-client-secret-file=" + secret,
	}
	process := begin(u.T, u.path(p, "portal"), args...)
	u.ready("the portal of "+p.name, process, health)
	return process, listen
}

func (u *upgrade) startAdapter(p previousRelease) *process {
	u.Helper()
	health := testenv.FreeAddress(u.T)
	process := begin(u.T, u.path(p, "acp-adapter"), "--config="+u.settings("acp-adapter"),
		"--kubeconfig="+u.host.account(u.T, "acp-system", "acp-adapter"),
		"--webhook-address="+testenv.FreeAddress(u.T), "--health-address="+health, "--metrics-address="+testenv.FreeAddress(u.T))
	u.ready("the adapter of "+p.name, process, health)
	return process
}

func (u *upgrade) ready(what string, p *process, health string) {
	u.Helper()
	client := &http.Client{Timeout: 5 * time.Second}
	eventually(u.T, what+" is ready", func() error {
		select {
		case <-p.ended:
			u.Fatalf("%s ended: %s", what, p.log)
		default:
		}
		status, _, err := answers(client, "http://"+health+"/readyz", "")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d", status)
		}
		return err
	})
}

func (u *upgrade) start(p previousRelease) *running {
	u.Helper()
	r := &running{release: p}
	r.portal, r.address = u.startPortal(p)
	r.adapter = u.startAdapter(p)
	return r
}

// as returns a person's browser at one of the portals. Their session is the same at all of them.
func (u *upgrade) as(who string, r *running) *portaltest.Browser {
	u.Helper()
	b, ok := u.people[who]
	to := r.address
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, to)
	}
	if !ok {
		b = portaltest.NewBrowser(u.T, "https://localhost:8443")
		u.people[who] = b
	}
	transport := trusting(u.T, u.authority(), "localhost").Transport.(*http.Transport)
	transport.DialContext, transport.DisableKeepAlives = dial, true
	b.Client.Transport = transport
	if !ok {
		b.Login(u.provider, "/", who)
	}
	return b
}

func (u *upgrade) authority() []byte {
	u.Helper()
	ca, ok := u.host.get(u.T, "v1", "ConfigMap", "acp-system", "acp-portal-ca")
	if !ok {
		u.Fatal("there is no ConfigMap with the authority")
	}
	text, _, _ := unstructured.NestedString(ca.Object, "data", "ca.crt")
	return []byte(text)
}

// demoObjects is what an administrator of the host creates.
const demoObjects = `
apiVersion: acp.io/v1alpha1
kind: ResourceClass
metadata: {name: redis}
spec:
  pattern: "trnv1:rsc:trip-com:redis:clusters:*"
  labelKey: com.trip/redis-cluster
  actions: [{name: "redis:connect", ports: [{port: 6379, protocol: TCP}]}]
  placement: {clusterSelector: {}}
---
apiVersion: acp.io/v1alpha1
kind: SubjectClass
metadata: {name: application}
spec: {pattern: "trnv1:rsc:trip-com:iam:sa:app/*", labelKey: com.trip/appid}
---
apiVersion: acp.io/v1alpha1
kind: ProtectedResource
metadata: {name: bobs-cluster}
spec: {resource: "trnv1:rsc:trip-com:redis:clusters:bobs-cluster", mode: Enforce}
`

type upgradeTicket struct {
	ID, State string
	Version   int64
	Items     []struct{ Statement string }
	Can       map[string]bool
}

var sidInStatement = regexp.MustCompile(`sid: (\S+)`)

// sid returns the identifier of the ticket's statement in the policy.
func (x upgradeTicket) sid() string {
	if m := sidInStatement.FindStringSubmatch(x.Items[0].Statement); m != nil {
		return m[1]
	}
	return "no sid in " + x.Items[0].Statement
}

func (u *upgrade) ticket(r *running, id string) (x upgradeTicket) {
	u.Helper()
	a := u.as("dave", r).Get("/api/v1/tickets/" + id)
	if a.Status != http.StatusOK {
		u.Fatalf("%s at the portal of %s: %d %s", id, r.release.name, a.Status, a.Body)
	}
	if raw := rawMessage.Find(a.Body); raw != nil {
		u.Errorf("the portal of %s shows the stored form of a message in %s: %s", r.release.name, id, raw)
	}
	a.Into(u.T, &x)
	return x
}

// rawMessage is a JSON document within a JSON string, which is how messages are stored.
var rawMessage = regexp.MustCompile(`"\{\\"code\\".{0,200}`)

func (u *upgrade) request(r *running, who, application string) string {
	u.Helper()
	a := u.as(who, r).Post("/api/v1/tickets", map[string]any{"reason": "checkout", "items": []map[string]any{
		{"application": application, "resource": "bobs-cluster", "actions": []string{"redis:connect"}},
	}})
	if a.Status != http.StatusCreated {
		u.Fatalf("request at the portal of %s: %d %s", r.release.name, a.Status, a.Body)
	}
	u.tickets++
	var x upgradeTicket
	a.Into(u.T, &x)
	return x.ID
}

func (u *upgrade) approve(r *running, id, who string) {
	u.Helper()
	a := u.as(who, r).Post("/api/v1/tickets/"+id+"/decision", map[string]any{"decision": "approve", "version": u.ticket(r, id).Version})
	if a.Status != http.StatusOK {
		u.Fatalf("%s approves %s at the portal of %s: %d %s", who, id, r.release.name, a.Status, a.Body)
	}
}

func (u *upgrade) awaitState(r *running, id, state string) {
	u.Helper()
	eventually(u.T, fmt.Sprintf("%s is %s at the portal of %s", id, state, r.release.name), func() error {
		if x := u.ticket(r, id); x.State != state {
			return fmt.Errorf("it is %s", x.State)
		}
		return nil
	})
}

// work ends the grant that the work before it made, and makes another one: every portal takes part, the first one with the request and the
// last one with what follows from it.
func (u *upgrade) work(portals ...*running) {
	u.Helper()
	first, last := portals[0], portals[len(portals)-1]
	if id := u.rotating; id != "" {
		if a := u.as("bob", first).Post("/api/v1/tickets/"+id+"/revoke", map[string]any{"reason": "enough"}); a.Status != http.StatusOK {
			u.Fatalf("revoke %s at the portal of %s: %d %s", id, first.release.name, a.Status, a.Body)
		}
		u.awaitState(last, id, "revoked")
		u.watch.close()
	}
	id := u.request(first, "erin", "app-889")
	u.approve(last, id, "zoe")
	u.watch.open() // the grant may be in force from its last approval on
	u.approve(first, id, "bob")
	for _, r := range portals {
		u.awaitState(r, id, "effective")
	}
	u.rotating = id
	for _, r := range portals {
		u.check(r)
	}
}

// check reads all tickets at a portal, and compares what they say with what is in force.
func (u *upgrade) check(r *running) {
	u.Helper()
	var granted []string
	for n := 1; n <= u.tickets; n++ {
		x := u.ticket(r, fmt.Sprintf("T-%d", n))
		if x.State == "effective" {
			granted = append(granted, x.sid())
		} else if x.State != "revoked" {
			u.Errorf("%s is %s at the portal of %s", x.ID, x.State, r.release.name)
		}
	}
	var inForce []string
	list, err := u.host.resource(u.T, "acp.io/v1alpha1", "AccessControlPolicy", "").List(u.Context(), metav1.ListOptions{})
	if err != nil {
		u.Fatal(err)
	}
	for _, o := range list.Items {
		statements, _, _ := unstructured.NestedSlice(o.Object, "spec", "statements")
		for _, s := range statements {
			inForce = append(inForce, s.(map[string]any)["sid"].(string))
		}
	}
	slices.Sort(granted)
	slices.Sort(inForce)
	if len(granted) != 2 || !slices.Equal(granted, inForce) {
		u.Errorf("at the portal of %s, the tickets say that %v is granted, and the policies grant %v", r.release.name, granted, inForce)
	}
}

// verifyLedger verifies the ledger at a portal. The portal limits how often a person can do so.
func (u *upgrade) verifyLedger(r *running) {
	u.Helper()
	var ledger struct {
		Intact  bool
		Lines   int64
		Anchors []struct{ Matches bool }
	}
	verified := u.as("dave", r).Post("/api/v1/ledger/verify", map[string]any{})
	if verified.Status != http.StatusOK {
		u.Fatalf("verify the ledger at the portal of %s: %d %s", r.release.name, verified.Status, verified.Body)
	}
	verified.Into(u.T, &ledger)
	if !ledger.Intact || ledger.Lines < int64(u.tickets) {
		u.Errorf("the ledger at the portal of %s: %+v", r.release.name, ledger)
	}
	for _, a := range ledger.Anchors {
		if !a.Matches {
			u.Errorf("the ledger at the portal of %s does not match its anchor", r.release.name)
		}
	}
}

func (u *upgrade) run(old, now previousRelease) {
	u.helmInstall(old, "acp-kubefed", nil)
	u.helmInstall(old, "acp", u.values())
	joinMember(u.T, u.host, u.member, "", nil)
	run(u.T, os.Getenv("HYPERFED"), "controller-manager", "--kubeconfig="+u.host.account(u.T, "kube-federation-system", "kubefed-controller"),
		"--kubefed-namespace=kube-federation-system", "--healthz-addr="+testenv.FreeAddress(u.T), "--metrics-addr="+testenv.FreeAddress(u.T))
	for text := range strings.SplitSeq(demoObjects, "---\n") {
		o := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &o); err != nil {
			u.Fatal(err)
		}
		u.host.create(u.T, o)
	}

	before := u.start(old)
	kept := u.request(before, "alice", "app-888")
	u.approve(before, kept, "carol")
	u.approve(before, kept, "bob")
	u.awaitState(before, kept, "effective")
	u.watch = watchEnforcement(u)
	u.work(before)
	u.work(before)

	after := u.replace(before, now, func() { u.host.upgrade(u.T, "acp", u.values()) })
	u.work(after)
	u.storedVersions()

	back := u.replace(after, old, func() { u.host.rollback(u.T, "acp", 1) })
	u.work(back)

	again := u.replace(back, now, func() { u.host.upgrade(u.T, "acp", u.values()) })
	u.work(again)
	u.awaitState(again, kept, "effective")
	if a := u.as("bob", again).Post("/api/v1/tickets/"+kept+"/revoke", map[string]any{"reason": "the end"}); a.Status != http.StatusOK {
		u.Fatalf("revoke %s: %d %s", kept, a.Status, a.Body)
	}
	u.verifyLedger(again)
	u.watch.end()
	u.awaitState(again, kept, "revoked")
}

// replace replaces the programs of one version by those of another one, as Kubernetes does after a change of the release: with PostgreSQL
// the new portal starts beside the old one, and with SQLite after it. The new adapter waits for the old one to give up its lease.
func (u *upgrade) replace(from *running, to previousRelease, change func()) *running {
	u.Helper()
	change()
	u.work(from) // the pods of the previous version are still there
	if u.database == "" {
		from.portal.stop()
	}
	r := &running{release: to}
	r.portal, r.address = u.startPortal(to)
	if u.database != "" {
		u.work(from, r)
		u.work(r, from)
	}
	r.adapter = u.startAdapter(to)
	from.adapter.stop()
	if u.database != "" {
		u.work(from, r) // the portal of one version, the adapter of the other
		from.portal.stop()
	}
	u.check(r)
	u.verifyLedger(r)
	for _, p := range []*process{from.portal, from.adapter, r.portal, r.adapter} {
		if text := p.log.String(); strings.Contains(text, "forbidden") {
			u.Errorf("something is forbidden for %s: %s", p.path, text[strings.Index(text, "forbidden"):])
		}
	}
	return r
}

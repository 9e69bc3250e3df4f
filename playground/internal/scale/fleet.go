package scale

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/playground/internal/bench"
	"github.com/acp-io/acp/playground/internal/fleet"
	"github.com/acp-io/acp/playground/internal/memberapi"
	"github.com/acp-io/acp/playground/internal/parts"
	"github.com/acp-io/acp/playground/internal/supervisor"
)

// adapterProcess is the name of the adapter's process.
const adapterProcess = "adapter"

// Names that the adapter expects. They are written here because package federation needs KubeFed's module.
const (
	readerSecret     = "acp-reader-"
	directSecret     = "acp-direct-"
	engineAnnotation = "acp.io/engine"
	directEngine     = "direct"
)

// fieldManager is the field manager of the direct engine, and perMember its number of requests to a member at a time.
const (
	fieldManager = "acp-adapter-direct"
	perMember    = 8
)

// Limits of starts, with a margin for machines under load. The adapter is ready when it has read all members, which takes minutes at the full size.
const (
	startLimit        = 5 * time.Minute
	adapterStartLimit = 20 * time.Minute
)

// environment is a host with an adapter and many members.
type environment struct {
	fleet      *fleet.Fleet
	supervisor *supervisor.Supervisor
	host       dynamic.Interface
	members    *memberapi.Members
	names      []string
	writes     *writes
	config     memberapi.Config
	// ca verifies the members' certificate. reader and direct are the tokens of the accounts that read them and write into them.
	ca             []byte
	reader, direct string
}

// start starts the host and the members, registers the members, and adds the adapter without starting it.
func start(ctx context.Context, o Options, dir string) (_ *environment, err error) {
	cacheDir, err := parts.DefaultDir()
	if err != nil {
		return nil, err
	}
	needed, err := parts.Select(parts.Kubernetes, parts.KubeFed)
	if err != nil {
		return nil, err
	}
	built, err := (&parts.Cache{Repo: o.Repo, Dir: cacheDir, Assets: os.Getenv("KUBEBUILDER_ASSETS"), Progress: quietProgress{}}).Ensure(ctx, needed)
	if err != nil {
		return nil, err
	}
	layout, err := fleet.NewLayout(dir)
	if err != nil {
		return nil, err
	}
	e := &environment{writes: &writes{}}
	e.supervisor = supervisor.New(supervisor.Config{RunDir: layout.Run(), LogDir: layout.Logs()})
	defer func() {
		if err != nil {
			e.stop()
		}
	}()
	e.fleet, err = fleet.New(fleet.Config{Layout: layout, Repo: o.Repo, Built: built, Supervisor: e.supervisor, HostOnly: true,
		ExtraPorts: []string{adapterProcess + "-health", adapterProcess + "-metrics", adapterProcess + "-pprof", portalProcess, oidcPort,
			collectorProcess + "-health"}})
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := e.fleet.Up(limited, nil); err != nil {
		return nil, err
	}
	config := e.fleet.AdminConfig(fleet.Host)
	config.UserAgent = "acp-scale"
	if e.host, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	if err := e.startMembers(o.Members); err != nil {
		return nil, err
	}
	if err := e.register(ctx); err != nil {
		return nil, err
	}
	return e, e.supervisor.Add(e.adapter(o.BinDir))
}

// quietProgress reports nothing.
type quietProgress struct{}

func (quietProgress) Begin(int, int, parts.Part, string)      {}
func (quietProgress) Elapsed(parts.Part, time.Duration, bool) {}
func (quietProgress) End(parts.Part, time.Duration, error)    {}

func (e *environment) stop() {
	e.supervisor.Close()
	if e.members != nil {
		e.members.Stop()
	}
}

// Sizes of cluster meshes.
const (
	smallMesh = 255
	largeMesh = 511
)

func (e *environment) startMembers(n int) error {
	pki := e.fleet.PKI
	certificate, err := tls.LoadX509KeyPair(pki.APIServer.Cert, pki.APIServer.Key)
	if err != nil {
		return fmt.Errorf("load the certificate of the members: %w", err)
	}
	if e.ca, err = os.ReadFile(pki.ServerCA); err != nil {
		return fmt.Errorf("read the authority of the members: %w", err)
	}
	e.direct = rand.Text()
	e.config = memberapi.Config{Certificate: certificate, Changed: e.writes.record, Users: map[string]memberapi.User{
		e.direct: {Name: "system:serviceaccount:acp-system:acp-direct", Writes: true}}}
	reader := rand.Text()
	e.config.Users[reader] = memberapi.User{Name: "system:serviceaccount:acp-system:acp-adapter"}
	if e.members, err = memberapi.Start(e.config, n); err != nil {
		return err
	}
	mesh := smallMesh
	if n > smallMesh {
		mesh = largeMesh
	}
	e.names = nil
	for i, m := range e.members.All() {
		name := fmt.Sprintf("s%03d", i+1)
		e.names = append(e.names, name)
		for _, u := range fleet.CiliumObjects(name, i+1, mesh) {
			if err := put(m, u); err != nil {
				return fmt.Errorf("prepare member %s: %w", name, err)
			}
		}
	}
	e.reader = reader
	return nil
}

// put creates an object of its owner in a member.
func put(m *memberapi.Member, u *unstructured.Unstructured) error {
	kinds := memberapi.Resources()
	i := slices.IndexFunc(kinds, func(r memberapi.Resource) bool { return r.GroupVersionKind() == u.GroupVersionKind() })
	if i < 0 {
		return fmt.Errorf("members do not serve %s", u.GroupVersionKind())
	}
	return m.Put(kinds[i], u)
}

// register registers the members with the direct engine.
func (e *environment) register(ctx context.Context) error {
	secret := func(name, token string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret",
			"metadata": map[string]any{"namespace": fleet.ACPNamespace, "name": name},
			"data":     map[string]any{"token": base64.StdEncoding.EncodeToString([]byte(token))}}}
	}
	var objects []*unstructured.Unstructured
	for i, name := range e.names {
		objects = append(objects, secret(readerSecret+name, e.reader), secret(directSecret+name, e.direct),
			&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster",
				"metadata": map[string]any{"namespace": fleet.KubeFedNamespace, "name": name,
					"annotations": map[string]any{engineAnnotation: directEngine}},
				"spec": map[string]any{"apiEndpoint": e.members.All()[i].URL(), "caBundle": base64.StdEncoding.EncodeToString(e.ca),
					"secretRef": map[string]any{"name": directSecret + name}},
			}})
	}
	classes, err := fleet.ParseDir(filepath.Join(e.fleet.Repo, "playground/demo/objects"))
	if err != nil {
		return err
	}
	objects = append(objects, slices.DeleteFunc(classes, func(u *unstructured.Unstructured) bool {
		return u.GetKind() != "SubjectClass" && (u.GetKind() != "ResourceClass" || u.GetName() != className)
	})...)
	if _, err := e.fleet.Applier(fleet.Host).CreateAbsent(ctx, objects); err != nil {
		return fmt.Errorf("register the members: %w", err)
	}
	return nil
}

func (e *environment) adapter(binDir string) supervisor.Spec {
	health := e.fleet.Ports.Address(adapterProcess + "-health")
	return supervisor.Spec{
		Name: adapterProcess, Layer: fleet.LayerControlPlane, Path: filepath.Join(binDir, "acp-adapter"),
		Args: []string{"--kubeconfig=" + e.fleet.Layout.Kubeconfig(fleet.Adapter), "--kubefed-namespace=" + fleet.KubeFedNamespace,
			"--namespace=" + fleet.ACPNamespace, "--health-address=" + health, "--metrics-address=" + e.metrics(),
			"--pprof-address=" + e.pprof(), "--leader-elect=false"},
		Ready: func(ctx context.Context) error {
			return fleet.GetOK(ctx, http.DefaultClient, "http://"+health+"/readyz", "")
		},
	}
}

// metrics returns the address of the adapter's metrics.
func (e *environment) metrics() string { return e.fleet.Ports.Address(adapterProcess + "-metrics") }

// pprof returns the address of the adapter's profiles.
func (e *environment) pprof() string { return e.fleet.Ports.Address(adapterProcess + "-pprof") }

// startAdapter starts the adapter and waits until it is ready.
func (e *environment) startAdapter(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, adapterStartLimit)
	defer cancel()
	return e.supervisor.StartAndWait(limited, adapterProcess)
}

// quiet waits until the adapter is quiet, and returns how long after an instant that was.
func (e *environment) quiet(ctx context.Context, from time.Time) (time.Duration, error) {
	took, _, err := bench.AwaitQuiet(ctx, e.metrics(), from, len(e.names))
	return took, err
}

// rss returns the adapter's resident memory in bytes.
func (e *environment) rss() (int64, error) { return e.rssOf(adapterProcess) }

// rssOf returns the resident memory of a process in bytes.
func (e *environment) rssOf(process string) (int64, error) {
	for _, s := range e.supervisor.Status() {
		if s.Name == process && s.State == supervisor.StateUp {
			return s.RSSBytes, nil
		}
	}
	return 0, fmt.Errorf("the process %s does not run; its log is in %s", process, e.fleet.Layout.Logs())
}

// client returns a client of a member as the adapter has one, with the account that writes.
func (e *environment) client(m *memberapi.Member) (dynamic.Interface, error) {
	return dynamic.NewForConfig(&rest.Config{Host: m.URL(), BearerToken: e.direct, QPS: -1, UserAgent: "acp-scale",
		TLSClientConfig: rest.TLSClientConfig{CAData: e.ca}})
}

// costs returns the costs of the host, of the adapter, and of this program with its members until now.
func (e *environment) costs(ctx context.Context) (bench.Costs, error) {
	processes := map[string]int{"the members and the load": os.Getpid()}
	for _, s := range e.supervisor.Status() {
		if s.PID != 0 {
			processes[s.Name] = s.PID
		}
	}
	return bench.CostsOf(ctx, processes, map[string]*rest.Config{fleet.Host: e.fleet.AdminConfig(fleet.Host)})
}

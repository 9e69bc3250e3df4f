package faults

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/freeport"
	"github.com/acp-io/acp/playground/internal/demo"
	"github.com/acp-io/acp/playground/internal/enforcement"
	"github.com/acp-io/acp/playground/internal/fleet"
	"github.com/acp-io/acp/playground/internal/parts"
	"github.com/acp-io/acp/playground/internal/run"
)

// Options configures a run.
type Options struct {
	Repo, BinDir string
	// Self is the path of acp-playground, which serves the OIDC provider.
	Self string
	// Seed initializes the random generator of the run.
	Seed uint64
	// Steps is the number of steps. When Duration is not zero, the run takes steps for that long instead.
	Steps    int
	Duration time.Duration
	// Direct are the members that use the direct engine, and Pull those into which a work agent writes. All others use KubeFed.
	Direct, Pull []string
	// Outages restricts the outages to those whose name contains this text. Empty means all.
	Outages string
	// Changes restricts the manual changes to those whose name contains this text. Every other step instead of every tenth is then a
	// manual change, and the run fails unless each of them was made. Empty means all.
	Changes string
}

const (
	// healthyTimeout bounds how long a healthy fleet may take to converge. KubeFed repairs a manual change in a member after 10 s.
	healthyTimeout = 45 * time.Second
	// outageTimeout bounds the same in an outage and after it, when KubeFed reconnects to a member after its own delay.
	outageTimeout = 3 * time.Minute
)

// Run starts a fleet and takes the steps. It returns an error on the first failed check or recorded violation, and then keeps the
// state and the logs of the fleet.
func Run(ctx context.Context, o Options, out io.Writer) (err error) {
	if len(outagesMatching(o.Outages, o.Pull)) == 0 {
		return fmt.Errorf("no outage has a name that contains %q", o.Outages)
	}
	if len(manualChangesMatching(o.Changes)) == 0 {
		return fmt.Errorf("no manual change has a name that contains %q", o.Changes)
	}
	for _, m := range slices.Concat(o.Direct, o.Pull) {
		if !slices.Contains(fleet.Members(), m) {
			return fmt.Errorf("%q is no member: the members are %v", m, fleet.Members())
		}
	}
	dir, err := os.MkdirTemp("", "acp-faults-")
	if err != nil {
		return fmt.Errorf("make a folder for the fleet: %w", err)
	}
	defer func() {
		if err == nil {
			err = os.RemoveAll(dir)
			return
		}
		fmt.Fprintf(out, "the state and the logs of the fleet are kept in %s\n", dir)
	}()
	proxies := map[string]*memberProxy{}
	defer func() {
		for _, w := range proxies {
			w.disable()
		}
	}()
	log, err := os.Create(filepath.Join(dir, "playground.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	clocks := filepath.Join(dir, "clocks")
	if err := os.Mkdir(clocks, 0o700); err != nil {
		return fmt.Errorf("make a folder for the clocks: %w", err)
	}
	catalog := filepath.Join(dir, "catalog")
	if err := catalogWithUncollected(filepath.Join(o.Repo, "playground/demo/catalog"), catalog); err != nil {
		return err
	}
	port, err := freeport.Find() // another playground may use the default port
	if err != nil {
		return err
	}
	return run.Up(ctx, run.Options{
		Repo: o.Repo, StateDir: filepath.Join(dir, "state"), Port: port, PortExplicit: true, BinDir: o.BinDir, Self: o.Self,
		Traffic: filepath.Join(o.Repo, "playground/demo/traffic.yaml"), TrafficRate: 0.1, AdapterReplicas: 2, Guard: true, Clocks: clocks, Catalog: catalog,
		Direct: o.Direct, Pull: o.Pull,
		Between: func(member, address string) (string, error) {
			w, err := newMemberProxy(member, address)
			if err != nil {
				return "", err
			}
			proxies[member] = w
			return w.address(), nil
		},
		Started: func(ctx context.Context, r run.Running) error {
			d, err := newDrill(ctx, o, r, proxies, clocks, out)
			if err != nil {
				return err
			}
			return d.run(ctx, o)
		},
	}, &run.Printer{Out: log})
}

func newDrill(ctx context.Context, o Options, r run.Running, proxies map[string]*memberProxy, clocks string, out io.Writer) (*drill, error) {
	d := &drill{
		Running:      r,
		Rand:         rand.New(rand.NewPCG(o.Seed, 2026)),
		out:          out,
		proxies:      proxies,
		clocks:       clocks,
		onlyOutages:  o.Outages,
		pull:         o.Pull,
		onlyChanges:  o.Changes,
		changeCounts: map[string]int{},
		began:        time.Now(),
		members:      map[string]dynamic.Interface{},
		probes:       map[string]*continuousProbe{},
		removed:      map[string]bool{},
	}
	d.host = r.Fleet.Applier(fleet.Host).Client
	workloads, err := demo.LoadWorkloads(filepath.Join(o.Repo, "playground/demo/workloads.yaml"))
	if err != nil {
		return nil, err
	}
	workloads = append(workloads, drillWorkloads()...)
	d.topology = newTopology(workloads)
	d.knownLabels = d.topology.knownLabels()
	objects, err := fleet.ParseDir(filepath.Join(o.Repo, "playground/demo/objects"))
	if err != nil {
		return nil, err
	}
	if d.model, err = newModel(objects); err != nil {
		return nil, err
	}
	d.evaluator = d.model.evaluator(d.knownLabels)
	d.observable.reset(d.model)
	for _, m := range fleet.Members() {
		d.members[m] = r.Fleet.Applier(m).Client
		if err := demo.Place(ctx, r.Fleet.AdminConfig(m), m, workloads); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// prepare starts the enforcement readers, writes the objects that the steps need, and waits until they are enforced.
func (d *drill) prepare(ctx context.Context) error {
	protected := &v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: alwaysEnforced},
		Spec: v1alpha1.ProtectedResourceSpec{Resource: redisStem + alwaysEnforced, Mode: v1alpha1.ModeEnforce}}
	program := d.Fleet.Built.Path(parts.Dataplane, parts.ACPDataplane)
	for _, m := range fleet.Members() {
		attempts := d.topology.connections(m)
		connections := make([]enforcement.Connection, len(attempts))
		for i, a := range attempts {
			connections[i] = a.Connection
		}
		w, err := enforcement.Start(
			ctx,
			program,
			d.Fleet.Layout.Kubeconfig(fleet.Dataplane),
			m,
			filepath.Join(d.Fleet.Layout.Logs(), "enforcement-"+m+".log"),
			connections,
		)
		if err != nil {
			return err
		}
		d.probes[m] = newContinuousProbe(m, w, attempts, d.recordViolation)
		d.probes[m].setExpectation(d.evaluator, time.Now())
	}
	// The fleet runs no Istio, so nothing enforces the resources of the demo that Istio alone enforces.
	for _, o := range sorted(d.model.resources) {
		class, ok := d.evaluator.ResourceClassOf(string(o.Spec.Resource))
		if ok && len(class.Spec.Enforcers) > 0 && !slices.Contains(class.Spec.Enforcers, v1alpha1.EnforcerCilium) {
			if err := d.offboardResource(ctx, o); err != nil {
				return err
			}
		}
	}
	if err := d.apply(ctx, queueClass()); err != nil {
		return err
	}
	if err := d.apply(ctx, protected); err != nil {
		return err
	}
	if err := d.waitForConvergence(ctx, outageTimeout); err != nil {
		return fmt.Errorf("before the first step: %w", err)
	}
	if err := d.poll(ctx, healthyTimeout, d.checkNoFindings); err != nil {
		return fmt.Errorf("before the first step: %w", err)
	}
	return nil
}

// checkNoFindings returns an error unless every member is reported as Ready and without findings. The demo's gRPC servers state that they
// enforce policies, which is always reported.
func (d *drill) checkNoFindings(ctx context.Context) error {
	list, err := d.host.Resource(v1alpha1.GroupVersion.WithResource("memberclusters")).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("read the MemberClusters: %w", err)
	}
	members := map[string]*v1alpha1.MemberCluster{}
	for i := range list.Items {
		if err := decodeInto(members, &list.Items[i]); err != nil {
			return err
		}
	}
	for _, m := range fleet.Members() {
		member := members[m]
		if member == nil || member.Status.State != v1alpha1.MemberClusterReady {
			return fmt.Errorf("member %s is not reported as Ready", m)
		}
		for _, f := range member.Status.Findings {
			if f.Code != v1alpha1.FindingGRPCServersStated {
				return fmt.Errorf("member %s is set up correctly, but the adapter reports findings: %+v", m, member.Status.Findings)
			}
		}
	}
	return nil
}

func (d *drill) run(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer func() {
		cancel()
		running.Wait()
		for _, probe := range d.probes {
			probe.reader.Stop()
		}
	}()
	if err := d.prepare(ctx); err != nil {
		return err
	}
	for _, probe := range d.probes {
		running.Go(func() { probe.run(ctx) })
	}
	fmt.Fprintf(d.out, "ready after %s; seed %d\n", time.Since(d.began).Round(time.Second), o.Seed)
	if err := d.steps(ctx, o); err != nil {
		return fmt.Errorf("seed %d, step %d (%s): %w", o.Seed, d.number, d.currentStep, err)
	}
	probed := 0
	for _, m := range slices.Sorted(maps.Keys(d.probes)) {
		probed += d.probes[m].probed
	}
	fmt.Fprintf(
		d.out,
		"%d steps in %s, seed %d: %d connections probed, none passed or was refused against the policies; %d statuses compared; the slowest step took %s\n",
		d.number,
		time.Since(d.began).Round(time.Second),
		o.Seed,
		probed,
		d.statuses,
		d.slowest.Round(100*time.Millisecond),
	)
	return nil
}

func (d *drill) steps(ctx context.Context, o Options) error {
	began := time.Now()
	for d.number = 1; (o.Duration == 0 && d.number <= o.Steps) || (o.Duration > 0 && time.Since(began) < o.Duration); d.number++ {
		limit := healthyTimeout
		var did string
		var err error
		switch {
		case d.outage != nil && d.outage.remaining == 0:
			name := d.outage.name
			d.currentStep = "end of " + name
			did, err, limit = d.currentStep, d.endOutage(ctx), outageTimeout
		case d.outage == nil && (d.number%10 == 5 || d.onlyOutages != "" && d.number%2 == 1):
			did, err = d.startOutage(ctx)
			limit = outageTimeout
		case d.outage == nil && (d.number%10 == 0 || o.Changes != "" && d.number%2 == 0):
			did, err = d.changeManually(ctx)
		default:
			did, err = d.choose(ctx, steps())
			if d.outage != nil {
				d.outage.remaining--
				limit = outageTimeout
			}
		}
		if err != nil {
			return err
		}
		stepBegan := time.Now()
		err = d.waitForConvergence(ctx, limit)
		fmt.Fprintf(d.out, "%s %4d %s (%s)\n", time.Now().Format("15:04:05"), d.number, did, time.Since(stepBegan).Round(10*time.Millisecond))
		if err != nil {
			return err
		}
		if err := d.violationError(); err != nil {
			return err
		}
	}
	d.number--
	if err := d.checkEachChangeMade(); err != nil {
		return err
	}
	if err := d.endOutage(ctx); err != nil {
		return err
	}
	if err := d.waitForConvergence(ctx, outageTimeout); err != nil {
		return err
	}
	if err := d.cleanUp(ctx); err != nil {
		return err
	}
	return d.violationError()
}

// cleanUp removes all policies and resources, and requires that no object of ACP is left in any member.
func (d *drill) cleanUp(ctx context.Context) error {
	d.currentStep, d.ticket = "cleanup", nil
	for _, o := range sorted(d.model.resources) {
		if err := d.offboardResource(ctx, o); err != nil {
			return err
		}
	}
	for _, p := range sorted(d.model.policies) {
		if err := d.remove(ctx, p); err != nil {
			return err
		}
	}
	for _, w := range sorted(d.model.workloads) {
		if err := d.remove(ctx, w); err != nil {
			return err
		}
	}
	if err := d.waitForConvergence(ctx, outageTimeout); err != nil {
		return err
	}
	if err := d.checkLedger(ctx); err != nil {
		return err
	}
	return d.poll(ctx, healthyTimeout, func(ctx context.Context) error {
		for _, m := range fleet.Members() {
			left, err := d.managedObjects(ctx, m)
			if err != nil {
				return fmt.Errorf("read %s: %w", m, err)
			}
			if len(left) > 0 {
				return fmt.Errorf("%d objects are left in %s, the first is %s %s", len(left), m, left[0].GetKind(), left[0].GetName())
			}
		}
		return nil
	})
}

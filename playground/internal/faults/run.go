package faults

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/playground/internal/demo"
	"github.com/acp-io/acp/playground/internal/fleet"
	"github.com/acp-io/acp/playground/internal/parts"
	"github.com/acp-io/acp/playground/internal/run"
)

// Options of a run.
type Options struct {
	Repo, BinDir string
	// Self is acp-playground, which serves the OIDC provider.
	Self string
	// Seed of everything that is random.
	Seed uint64
	// Steps to take, or, when Duration is not zero, as many as it lasts.
	Steps    int
	Duration time.Duration
	// Outages: only those with this in their name; empty: all.
	Outages string
	// Hands: only those with this in their name, every other step instead of every tenth, and each at least once; empty: all.
	Hands string
}

const (
	// calm is how long a healthy fleet may take to follow: a hand in a member is repaired by KubeFed after 10 s.
	calm = 45 * time.Second
	// stormy is the same after an outage, or in one: KubeFed comes back to a member in its own time.
	stormy = 3 * time.Minute
)

// Run starts a fleet, takes the steps, and is an error when anything happened that must not.
func Run(ctx context.Context, o Options, out io.Writer) (err error) {
	if len(outagesWith(o.Outages)) == 0 {
		return fmt.Errorf("no outage has %q in its name", o.Outages)
	}
	if len(handsWith(o.Hands)) == 0 {
		return fmt.Errorf("no hand has %q in its name", o.Hands)
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
		fmt.Fprintf(out, "the fleet's state and logs are kept in %s\n", dir)
	}()
	wires := map[string]*wire{}
	defer func() {
		for _, w := range wires {
			w.cut()
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
	if err := catalogWithUnwatched(filepath.Join(o.Repo, "playground/demo/catalog"), catalog); err != nil {
		return err
	}
	port, err := freePort() // another playground may be running
	if err != nil {
		return err
	}
	return run.Up(ctx, run.Options{
		Repo: o.Repo, StateDir: filepath.Join(dir, "state"), Port: port, PortExplicit: true, BinDir: o.BinDir, Self: o.Self,
		Traffic: filepath.Join(o.Repo, "playground/demo/traffic.yaml"), TrafficRate: 0.1, AdapterReplicas: 2, Guard: true, Clocks: clocks, Catalog: catalog,
		Between: func(member, address string) (string, error) {
			w, err := newWire(member, address)
			if err != nil {
				return "", err
			}
			wires[member] = w
			return w.address(), nil
		},
		Started: func(ctx context.Context, r run.Running) error {
			d, err := newDrill(ctx, o, r, wires, clocks, out)
			if err != nil {
				return err
			}
			return d.run(ctx, o)
		},
	}, &run.Printer{Out: log})
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func newDrill(ctx context.Context, o Options, r run.Running, wires map[string]*wire, clocks string, out io.Writer) (*drill, error) {
	d := &drill{Running: r, Rand: rand.New(rand.NewPCG(o.Seed, 2026)), out: out, wires: wires, clocks: clocks, only: o.Outages, onlyHands: o.Hands, handsCame: map[string]int{}, began: time.Now(),
		members: map[string]dynamic.Interface{}, dogs: map[string]*watchdog{}, dropped: map[string]bool{}}
	d.host = r.Fleet.Applier(fleet.Host).Client
	workloads, err := demo.LoadWorkloads(filepath.Join(o.Repo, "playground/demo/workloads.yaml"))
	if err != nil {
		return nil, err
	}
	workloads = append(workloads, ownWorkloads()...)
	d.scene = newScene(workloads)
	d.known = d.scene.knownLabels()
	objects, err := fleet.ParseDir(filepath.Join(o.Repo, "playground/demo/objects"))
	if err != nil {
		return nil, err
	}
	if d.world, err = newWorld(objects); err != nil {
		return nil, err
	}
	d.meaning = d.world.meaning(d.known)
	d.seen.begin(d.world)
	for _, m := range fleet.Members() {
		d.members[m] = r.Fleet.Applier(m).Client
		if err := demo.Place(ctx, r.Fleet.AdminConfig(m), m, workloads); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// begin brings in what the steps need, waits until it is in force, and lets the dogs out.
func (d *drill) begin(ctx context.Context) error {
	safe := &v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: vault},
		Spec: v1alpha1.ProtectedResourceSpec{Resource: redisStem + vault, Mode: v1alpha1.ModeEnforce}}
	program := d.Fleet.Built.Path(parts.Dataplane, parts.ACPDataplane)
	for _, m := range fleet.Members() {
		attempts := d.scene.connections(m)
		connections := make([]connection, len(attempts))
		for i, a := range attempts {
			connections[i] = a.connection
		}
		w, err := startWitness(ctx, program, d.Fleet.Layout.Kubeconfig(fleet.Dataplane), m, filepath.Join(d.Fleet.Layout.Logs(), "witness-"+m+".log"), connections)
		if err != nil {
			return err
		}
		d.dogs[m] = newWatchdog(m, w, attempts, d.violated)
		d.dogs[m].expect(d.meaning, time.Now())
	}
	if err := d.put(ctx, queueClass()); err != nil {
		return err
	}
	if err := d.put(ctx, safe); err != nil {
		return err
	}
	if err := d.settle(ctx, stormy); err != nil {
		return fmt.Errorf("before the first step: %w", err)
	}
	if err := d.until(ctx, calm, d.nothingFound); err != nil {
		return fmt.Errorf("before the first step: %w", err)
	}
	return nil
}

// nothingFound: of members that are set up well the adapter has nothing to say.
func (d *drill) nothingFound(ctx context.Context) error {
	list, err := d.host.Resource(v1alpha1.GroupVersion.WithResource("memberclusters")).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("read the MemberClusters: %w", err)
	}
	members := map[string]*v1alpha1.MemberCluster{}
	for i := range list.Items {
		if err := take(members, &list.Items[i]); err != nil {
			return err
		}
	}
	for _, m := range fleet.Members() {
		switch told := members[m]; {
		case told == nil || told.Status.State != v1alpha1.MemberClusterReady:
			return fmt.Errorf("member %s is not told of as ready", m)
		case len(told.Status.Findings) > 0:
			return fmt.Errorf("member %s has nothing wrong, and the adapter found: %+v", m, told.Status.Findings)
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
		for _, dog := range d.dogs {
			dog.witness.stop()
		}
	}()
	if err := d.begin(ctx); err != nil {
		return err
	}
	for _, dog := range d.dogs {
		running.Go(func() { dog.run(ctx) })
	}
	fmt.Fprintf(d.out, "ready after %s; seed %d\n", time.Since(d.began).Round(time.Second), o.Seed)
	if err := d.steps(ctx, o); err != nil {
		return fmt.Errorf("seed %d, step %d (%s): %w", o.Seed, d.number, d.doing, err)
	}
	asked := 0
	for _, m := range slices.Sorted(maps.Keys(d.dogs)) {
		asked += d.dogs[m].asked
	}
	fmt.Fprintf(d.out, "%d steps in %s, seed %d: %d connections probed, none passed or was lost that must not; %d statuses compared; the slowest step took %s\n",
		d.number, time.Since(d.began).Round(time.Second), o.Seed, asked, d.statuses, d.slowest.Round(100*time.Millisecond))
	return nil
}

func (d *drill) steps(ctx context.Context, o Options) error {
	began := time.Now()
	for d.number = 1; (o.Duration == 0 && d.number <= o.Steps) || (o.Duration > 0 && time.Since(began) < o.Duration); d.number++ {
		limit := calm
		var did string
		var err error
		switch {
		case d.outage != nil && d.outage.lasts == 0:
			name := d.outage.name
			d.doing = "end of " + name
			did, err, limit = d.doing, d.mend(ctx), stormy
		case d.outage == nil && d.number%10 == 5:
			did, err = d.breakSomething(ctx)
			limit = stormy
		case d.outage == nil && (d.number%10 == 0 || o.Hands != "" && d.number%2 == 0):
			did, err = d.byHand(ctx)
		default:
			did, err = d.choose(ctx, steps())
			if d.outage != nil {
				d.outage.lasts--
				limit = stormy
			}
		}
		if err != nil {
			return err
		}
		stepBegan := time.Now()
		err = d.settle(ctx, limit)
		fmt.Fprintf(d.out, "%s %4d %s (%s)\n", time.Now().Format("15:04:05"), d.number, did, time.Since(stepBegan).Round(10*time.Millisecond))
		if err != nil {
			return err
		}
		if err := d.verdict(); err != nil {
			return err
		}
	}
	d.number--
	if err := d.everyHandCame(); err != nil {
		return err
	}
	if err := d.mend(ctx); err != nil {
		return err
	}
	if err := d.settle(ctx, stormy); err != nil {
		return err
	}
	if err := d.clear(ctx); err != nil {
		return err
	}
	return d.verdict()
}

// clear takes everything off, after which no member may have anything.
func (d *drill) clear(ctx context.Context) error {
	d.doing, d.ticket = "clearing", nil
	for _, o := range sorted(d.world.resources) {
		if err := d.letGo(ctx, o); err != nil {
			return err
		}
	}
	for _, p := range sorted(d.world.policies) {
		if err := d.drop(ctx, p); err != nil {
			return err
		}
	}
	for _, w := range sorted(d.world.workloads) {
		if err := d.drop(ctx, w); err != nil {
			return err
		}
	}
	if err := d.settle(ctx, stormy); err != nil {
		return err
	}
	if err := d.ledgerIntact(ctx); err != nil {
		return err
	}
	return d.until(ctx, calm, func(ctx context.Context) error {
		for _, m := range fleet.Members() {
			left, err := d.managed(ctx, m)
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

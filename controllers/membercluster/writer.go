package membercluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/memberhealth"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
)

// Fleet is the registry of the members.
type Fleet interface {
	Registry() (listed bool, err error)
	Clusters() []federation.Cluster
	Observe(cluster, object string) federation.Observation
}

// Writer writes the MemberClusters. It runs on the leader.
type Writer struct {
	Client client.Client
	Fleet  Fleet
	// LastCheck returns the last result of the preflight in a member; false if there is none.
	LastCheck func(cluster string) (memberhealth.CheckResult, bool)
	Reports   *statuscache.Cache
	// Complete reports whether every unit was decided at least once. It is called until it returns true.
	Complete func() bool
	// Ready waits until the host's objects are listed.
	Ready func(context.Context) error
	// Identities returns the count of a member's identities, or nil if they were not read.
	Identities func(cluster string, limit int32) *v1alpha1.MemberIdentities
	// Labels returns the number of identities of a member, and of those with labels of subjects; 0 if they were not
	// read.
	Labels func(cluster string) (int32, []v1alpha1.MemberLabel)
	// Values returns the values of the subjects' labels in a member, by key; false if they are not known, or not
	// needed.
	Values func(cluster string) (map[string][]string, bool)
	// NoHTTP returns the reason why HTTP rules cannot be enforced in a member, or zero.
	NoHTTP func(cluster string) message.Message
	// SupportsGroups reports whether groups of addresses can be pushed to the members.
	SupportsGroups func() bool
	// Nodes returns what acp-node reports about the nodes of a member, or nil if nothing is known. If the function is nil,
	// nodes are not reported.
	Nodes func(cluster string) *federation.NodeView
	// Orphans returns the objects in a member that look like ACP's and that nothing on the host requires, by name. If it
	// is nil, orphans are not reported.
	Orphans func(cluster string) []string
	// Clock gives the times that are written.
	Clock clock.PassiveClock
	// Pauses is the clock of the updates and of the minimum between two writes; nil means the real one.
	Pauses clock.WithTicker
	// Interval is the time between two updates, and the minimum between two writes about one member; 0 means
	// DefaultInterval.
	Interval time.Duration
	Log      logr.Logger

	trigger  chan struct{}
	written  map[string]time.Time
	complete bool

	mu     sync.RWMutex
	latest map[string]latest
}

// latest is the last known state of a member, for the metrics.
type latest struct {
	Status v1alpha1.MemberClusterStatus
	States map[v1alpha1.MemberState]int
}

// DefaultInterval bounds the age of a MemberCluster, and how often it is written.
const DefaultInterval = 10 * time.Second

// Prepare validates the configuration and sets defaults.
func (w *Writer) Prepare() error {
	if w.Labels == nil || w.Values == nil || w.NoHTTP == nil || w.SupportsGroups == nil {
		return errors.New("membercluster: Labels, Values, NoHTTP and SupportsGroups are needed")
	}
	if w.Client == nil || w.Fleet == nil || w.LastCheck == nil || w.Reports == nil || w.Complete == nil || w.Ready == nil || w.Identities == nil ||
		w.Clock == nil {
		return errors.New("membercluster: Client, Fleet, LastCheck, Reports, Complete, Ready, Identities and Clock are needed")
	}
	if w.Interval == 0 {
		w.Interval = DefaultInterval
	}
	if w.Pauses == nil {
		w.Pauses = clock.RealClock{}
	}
	w.trigger, w.written = make(chan struct{}, 1), map[string]time.Time{}
	return nil
}

// Requeue requests an early update, because a member was registered, lost or found again.
func (w *Writer) Requeue() {
	select {
	case w.trigger <- struct{}{}:
	default:
	}
}

// +kubebuilder:rbac:groups=acp.io,resources=memberclusters,verbs=list;watch;create;delete
// +kubebuilder:rbac:groups=acp.io,resources=memberclusters/status,verbs=update

// Start updates the MemberClusters until the context ends.
func (w *Writer) Start(ctx context.Context) error {
	if err := w.Ready(ctx); err != nil {
		return err
	}
	ticker := w.Pauses.NewTicker(w.Interval)
	defer ticker.Stop()
	for {
		if err := w.writeAll(ctx); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) {
			w.Log.Error(err, "MemberClusters cannot be written; retrying")
		}
		// Many members may trigger an update at once.
		rest := w.Pauses.NewTimer(w.Interval / 10)
		select {
		case <-ctx.Done():
			rest.Stop()
			return nil
		case <-rest.C():
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.trigger:
		case <-ticker.C():
		}
	}
}

// writeAll writes the MemberCluster of every member, and deletes those of members that are not registered any more.
func (w *Writer) writeAll(ctx context.Context) error {
	if listed, _ := w.Fleet.Registry(); !listed {
		return nil // members that are not listed now may still exist
	}
	var list v1alpha1.MemberClusterList
	if err := w.Client.List(ctx, &list); err != nil {
		return fmt.Errorf("list the MemberClusters: %w", err)
	}
	had := map[string]*v1alpha1.MemberCluster{}
	for i := range list.Items {
		had[list.Items[i].Name] = &list.Items[i]
	}
	var units map[string]*Units
	if w.complete = w.complete || w.Complete(); w.complete {
		units = count(w.Reports)
	}
	var errs []error
	found := map[string]latest{}
	for _, c := range w.Fleet.Clusters() {
		o := had[c.Name]
		delete(had, c.Name)
		f, ok := w.gather(c, units)
		if !ok {
			continue
		}
		now, err := w.writeMember(ctx, o, f)
		errs = append(errs, err)
		found[c.Name] = latest{Status: now}
		if f.Units != nil {
			found[c.Name] = latest{Status: now, States: f.Units.States}
		}
	}
	for name, o := range had {
		delete(w.written, name)
		errs = append(errs, client.IgnoreNotFound(w.Client.Delete(ctx, o)))
	}
	w.mu.Lock()
	w.latest = found
	w.mu.Unlock()
	return errors.Join(errs...)
}

// gather collects the facts of a member. Before the first preflight it returns false, because the report would be
// incomplete.
func (w *Writer) gather(c federation.Cluster, units map[string]*Units) (*facts, bool) {
	f := &facts{Cluster: c, Seen: w.Fleet.Observe(c.Name, ""), Now: metav1.NewTime(w.Clock.Now().Truncate(time.Second))}
	var checked bool
	if f.Check, checked = w.LastCheck(c.Name); !checked {
		return nil, false
	}
	if units != nil {
		if f.Units = units[c.Name]; f.Units == nil {
			f.Units = &Units{}
		}
	}
	if units != nil && w.Orphans != nil {
		f.Orphans = w.Orphans(c.Name)
	}
	if w.Nodes != nil {
		f.Nodes = w.Nodes(c.Name)
	}
	f.Identities = w.Identities(c.Name, f.Check.IdentityLimit)
	if f.Identities != nil {
		f.Identities.ObservedAt = f.Now
	}
	f.Dataplane.Identities, f.Dataplane.Labels = w.Labels(c.Name)
	f.Dataplane.Values, f.Dataplane.ValuesKnown = w.Values(c.Name)
	f.Dataplane.NoHTTP, f.Dataplane.NoGroups = w.NoHTTP(c.Name), !w.SupportsGroups()
	return f, true
}

// writeMember writes the MemberCluster if it differs and was not written a moment ago, and returns the member's status.
func (w *Writer) writeMember(ctx context.Context, had *v1alpha1.MemberCluster, f *facts) (v1alpha1.MemberClusterStatus, error) {
	name := f.Cluster.Name
	o := &v1alpha1.MemberCluster{}
	if had != nil {
		o = had
	}
	now := f.status(&o.Status)
	if had != nil && equality.Semantic.DeepEqual(o.Status, now) || w.Pauses.Since(w.written[name]) < w.Interval*9/10 {
		return now, nil
	}
	if had == nil {
		o.Name = name
		err := w.Client.Create(ctx, o)
		if apierrors.IsAlreadyExists(err) {
			err = w.Client.Get(ctx, types.NamespacedName{Name: name}, o) // the list was older than the object
		}
		if err != nil {
			return now, fmt.Errorf("make MemberCluster %s: %w", name, err)
		}
	}
	o.Status = now
	if err := w.Client.Status().Update(ctx, o); err != nil {
		return now, client.IgnoreNotFound(fmt.Errorf("write the status of MemberCluster %s: %w", name, err))
	}
	w.written[name] = w.Pauses.Now()
	return now, nil
}

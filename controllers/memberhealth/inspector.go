package memberhealth

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"

	"github.com/acp-io/acp/internal/backoff"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/guard"
	"github.com/acp-io/acp/internal/federation/preflight"
	"github.com/acp-io/acp/internal/message"
)

// Timing is the timing of the checks.
type Timing struct {
	// Interval is the time between two checks. KubeFed's process ends five minutes after a kind cannot be listed.
	Interval time.Duration
	// RetryInterval is the delay before a check that would have consequences is repeated for confirmation.
	RetryInterval time.Duration
	// MaxAge is how long the configuration of a member counts after it was last read. Zero means that of DefaultTiming.
	MaxAge time.Duration
}

// DefaultTiming detects a member that stops KubeFed within half a minute, and tolerates that three checks in a row cannot
// read a member's configuration.
var DefaultTiming = Timing{Interval: 30 * time.Second, RetryInterval: 5 * time.Second, MaxAge: 2 * time.Minute}

// firstCheckDelay is how long a check of members that were never read waits for more such members.
const firstCheckDelay = 50 * time.Millisecond

const (
	// maxRoundTime is how long a round of checks waits for members that answer slowly. It is the timeout of one request.
	maxRoundTime = preflight.Timeout
	// maxConcurrentChecks is the number of members that are read at the same time.
	maxConcurrentChecks = 64
)

// Inspector checks all registered members periodically. It runs on the leader.
type Inspector struct {
	// Clusters returns the registered members.
	Clusters func() []federation.Cluster
	// Read collects the facts of one member.
	Read func(context.Context, federation.Cluster) preflight.Facts
	// Kinds returns the kinds that KubeFed distributes.
	Kinds func() []federation.Kind
	// Keys returns the labels by which classes select pods.
	Keys func() []preflight.Key
	// Changed is called when a member began or ceased to enforce what is pushed to it, or to enforce policies of
	// others.
	Changed func(cluster string)
	// AfterCheck is called after each round of checks.
	AfterCheck func()
	// Recorded returns the codes of the findings in the last status of a member, which an earlier process may have written; false if there is
	// none, or the member's dataplane was not read for it. If it is nil, nothing is known.
	Recorded func(ctx context.Context, cluster string) (codes []string, read bool)
	// Registrations quarantines and releases members.
	Registrations interface {
		Suspend(ctx context.Context, cluster string, why message.Message) error
		SuspendDowngraded(ctx context.Context, cluster string, mark guard.DowngradeMark) error
		Resume(ctx context.Context, cluster string) error
	}
	Timing Timing
	// Pauses is the clock of the time between two checks, and of the age of what was read; nil means the real one.
	Pauses clock.WithTicker
	Log    logr.Logger

	trigger   chan struct{}
	histories map[string]history
	// lastFacts are the last facts of each member. Only checkAll uses them.
	lastFacts map[string]preflight.Facts
	reads     reads

	mu sync.RWMutex
	// members are the members that were read, and contacted also includes those that were found unreadable.
	members   map[string]dataplaneState
	contacted map[string]bool
	// lacking are the members whose identities may lack a label, and those that never answered.
	lacking sets.Set[string]
	// evaluatedKeys are the label keys that the findings consider.
	evaluatedKeys map[string]bool
	lastResults   map[string]CheckResult
}

// Prepare validates the configuration and sets defaults.
func (i *Inspector) Prepare() error {
	if i.Clusters == nil || i.Read == nil || i.Registrations == nil || i.Kinds == nil || i.Keys == nil {
		return errors.New("memberhealth: Clusters, Read, Kinds, Keys and Registrations are needed")
	}
	if i.Timing == (Timing{}) {
		i.Timing = DefaultTiming
	}
	i.Timing.MaxAge = cmp.Or(i.Timing.MaxAge, DefaultTiming.MaxAge)
	if i.Pauses == nil {
		i.Pauses = clock.RealClock{}
	}
	i.trigger, i.histories, i.lastFacts = make(chan struct{}, 1), map[string]history{}, map[string]preflight.Facts{}
	i.reads.slots, i.reads.running, i.reads.finished = make(chan struct{}, maxConcurrentChecks), sets.New[string](), map[string]preflight.Facts{}
	i.members, i.contacted, i.lastResults = map[string]dataplaneState{}, map[string]bool{}, map[string]CheckResult{}
	i.lacking, i.evaluatedKeys = sets.New[string](), map[string]bool{}
	return nil
}

// Requeue requests an early check, because a member was registered, lost or found again.
func (i *Inspector) Requeue() {
	select {
	case i.trigger <- struct{}{}:
	default:
	}
}

// The preflight lists the kinds as KubeFed does, with its token.
//
// +kubebuilder:rbac:groups=core.kubefed.io,namespace=kube-federation-system,resources=kubefedclusters,verbs=get;patch
// +kubebuilder:rbac:groups="",namespace=kube-federation-system,resources=secrets,verbs=get
// A ClusterProfile is read only if a registration names it.
//
// +kubebuilder:rbac:groups=multicluster.x-k8s.io,resources=clusterprofiles,verbs=get

// Start checks the members until the context ends.
func (i *Inspector) Start(ctx context.Context) error {
	defer i.reads.all.Wait()
	for {
		next := i.Timing.Interval
		if i.checkAll(ctx) {
			next = i.Timing.RetryInterval
		}
		timer := i.Pauses.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-i.trigger:
			timer.Stop()
			if !i.awaitMore(ctx) {
				return nil
			}
		case <-timer.C():
		}
	}
}

// awaitMore waits after a trigger for further ones, because many members may be registered at once. It returns false if the context
// ended. It waits for RetryInterval, but only for firstCheckDelay once a member is registered that was never read, because units wait
// for that member.
func (i *Inspector) awaitMore(ctx context.Context) bool {
	timer := i.Pauses.NewTimer(i.Timing.RetryInterval)
	defer timer.Stop()
	for !i.Pending() {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C():
			return true
		case <-i.trigger:
		}
	}
	return backoff.Pause(ctx, i.Pauses, min(i.Timing.RetryInterval, firstCheckDelay))
}

// checkAll checks every member once, and reports whether a check must be repeated soon. It does not wait for a slow member
// longer than maxRoundTime: the result of such a member is evaluated in the first round after it was read, and until then the
// member is not read again.
func (i *Inspector) checkAll(ctx context.Context) (again bool) {
	clusters := i.Clusters()
	select {
	case <-ctx.Done():
		return false
	case <-i.startReads(ctx, clusters):
	case <-i.Pauses.After(maxRoundTime):
	}
	if ctx.Err() != nil {
		return false
	}
	read := i.reads.takeFinished()
	maps.Copy(i.lastFacts, read)
	needs := preflight.Needs{Kinds: i.Kinds(), Keys: i.Keys()}
	for _, c := range clusters {
		if f, ok := i.lastFacts[c.Name]; ok {
			needs.Others = append(needs.Others, f)
		}
	}
	seen := map[string]history{}
	for _, c := range clusters {
		f, ok := read[c.Name]
		if !ok {
			seen[c.Name] = i.histories[c.Name]
			continue
		}
		findings := i.withoutRestarts(c.Name, preflight.Assess(f, needs))
		i.storeResult(f, needs, findings)
		next, do, why := decide(i.histories[c.Name], c.Quarantined, findings)
		do = applyMark(c, &f, do)
		seen[c.Name] = next
		undecided := do == actionNone && (next.Bad > 0 || c.Quarantined && next.Good > 0)
		if err := i.act(ctx, c, do, why, f.Mark); err != nil {
			undecided = true
		}
		again = again || undecided || i.proxyDown(c.Name)
	}
	i.histories = seen
	maps.DeleteFunc(i.lastFacts, func(cluster string, _ preflight.Facts) bool {
		_, registered := seen[cluster]
		return !registered
	})
	i.forget(seen)
	i.expire()
	if i.AfterCheck != nil {
		i.AfterCheck()
	}
	return again
}

// reads are the reads of members that run or that were not evaluated yet.
type reads struct {
	// all waits for the end of those that run, and slots limits their number.
	all   sync.WaitGroup
	slots chan struct{}

	mu sync.Mutex
	// running are the members that are being read, and finished contains the facts that were not evaluated yet.
	running  sets.Set[string]
	finished map[string]preflight.Facts
}

// startReads starts to read the members that are not being read already. The channel is closed when all of them were read.
func (i *Inspector) startReads(ctx context.Context, clusters []federation.Cluster) <-chan struct{} {
	var round sync.WaitGroup
	for _, c := range clusters {
		if !i.reads.begin(c.Name) {
			continue
		}
		round.Add(1)
		i.reads.all.Go(func() {
			defer round.Done()
			i.read(ctx, c)
		})
	}
	done := make(chan struct{})
	i.reads.all.Go(func() {
		round.Wait()
		close(done)
	})
	return done
}

// read reads a member as soon as few enough others are being read. The result is recorded at once, so that decisions about this
// member do not wait for a slow one.
func (i *Inspector) read(ctx context.Context, c federation.Cluster) {
	select {
	case <-ctx.Done():
		return
	case i.reads.slots <- struct{}{}:
	}
	defer func() { <-i.reads.slots }()
	began := i.Pauses.Now()
	facts := i.Read(ctx, c)
	if ctx.Err() != nil {
		return
	}
	i.record(ctx, c.Name, &facts, began)
	i.reads.finish(c.Name, facts)
}

// begin reports whether a member was not being read, and marks it as being read.
func (r *reads) begin(cluster string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running.Has(cluster) {
		return false
	}
	r.running.Insert(cluster)
	return true
}

func (r *reads) finish(cluster string, facts preflight.Facts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running.Delete(cluster)
	r.finished[cluster] = facts
}

// takeFinished returns the facts that were read since the last call.
func (r *reads) takeFinished() map[string]preflight.Facts {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.finished
	r.finished = map[string]preflight.Facts{}
	return out
}

func (i *Inspector) act(ctx context.Context, c federation.Cluster, do action, why message.Message, mark *guard.DowngradeMark) error {
	var err error
	switch do {
	case actionQuarantine:
		if c.Quarantined && c.QuarantineReason == why && c.DowngradeMark == nil {
			return nil
		}
		err = i.Registrations.Suspend(ctx, c.Name, why)
	case actionSuspendDowngraded:
		if c.DowngradeMark != nil && c.DowngradeMark.Same(*mark) {
			return nil
		}
		why, err = mark.Message(), i.Registrations.SuspendDowngraded(ctx, c.Name, *mark)
	case actionResume:
		err = i.Registrations.Resume(ctx, c.Name)
	case actionNone:
		return nil
	}
	switch {
	case apierrors.IsConflict(err):
		return err // KubeFed writes its status there, too
	case err != nil:
		i.Log.Error(err, "Member's registration cannot be changed; KubeFed may stop for every member", "member", c.Name, "to", do, "because", why.Text)
		return err
	}
	i.Log.Info("Changed a member's registration", "member", c.Name, "to", do, "because", why.Text)
	return nil
}

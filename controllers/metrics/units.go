// Package metrics exports Prometheus metrics about units: the time until a change is in a member, the delay of the
// removal of an expired statement, and the number of changes of managed objects in a member by others. It also exports what concerns the whole
// fleet: nodes, the adapter's clock, and the ends of the members' certificate authorities.
//
// No decision depends on the metrics, and a restart resets them.
package metrics

import (
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/acp-io/acp/api/v1alpha1"
)

// latencyBuckets covers latencies from some milliseconds to some minutes.
var latencyBuckets = []float64{.01, .025, .05, .1, .15, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}

// UnitMetrics records metrics about units. It is safe for concurrent use.
type UnitMetrics struct {
	drift              *prometheus.CounterVec
	realize, propagate *prometheus.HistogramVec
	expiry             prometheus.Histogram
	rollouts           *prometheus.GaugeVec
	rolloutChanges     *prometheus.CounterVec

	mu      sync.Mutex
	waiting map[unitInMember]wait
	// inRollout contains the state of each resource whose rollout is in progress.
	inRollout map[string]string
}

// unitInMember identifies a unit in a member.
type unitInMember struct{ resource, cluster string }

// wait is a revision that has not arrived in a member.
type wait struct {
	desired string
	since   time.Time
	// Either may happen first.
	propagated, realized bool
}

// New creates the metrics, and registers them unless reg is nil.
func New(reg prometheus.Registerer) (*UnitMetrics, error) {
	m := &UnitMetrics{
		drift: prometheus.NewCounterVec(
			prometheus.CounterOpts{Name: "acp_drift_total", Help: "Times that an object of ACP's was found changed in a member."},
			[]string{"cluster"},
		),
		realize: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "acp_realize_seconds", Buckets: latencyBuckets,
			Help: "Time from the change of what a member has to have until it was read back there."}, []string{"cluster"}),
		propagate: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "acp_propagate_seconds",
			Buckets: latencyBuckets,
			Help:    "Time from the change of what a member has to have until KubeFed itself reported that it is there, which may be after it was read back.",
		}, []string{"cluster"}),
		expiry: prometheus.NewHistogram(
			prometheus.HistogramOpts{Name: "acp_expiry_lag_seconds", Buckets: append(latencyBuckets[:len(latencyBuckets):len(latencyBuckets)], 3600*6, 3600*24),
				Help: "Time from the end of a statement until what is pushed to the members was without it."},
		),
		rollouts: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "acp_rollouts",
			Help: "Resources whose change to Enforce, and classes whose change, is in progress in waves, by state (progressing, halted)."}, []string{"state"}),
		rolloutChanges: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "acp_rollout_changes_total",
			Help: "What happened to rollouts in waves (WaveBegun, Halted, Resumed, Completed)."}, []string{"change"}),
		waiting:   map[unitInMember]wait{},
		inRollout: map[string]string{},
	}
	for _, state := range []string{"progressing", "halted"} {
		m.rollouts.WithLabelValues(state).Set(0)
	}
	if err := register(reg, m.drift, m.realize, m.propagate, m.expiry, m.rollouts, m.rolloutChanges); err != nil {
		return nil, err
	}
	return m, nil
}

// register registers collectors, unless reg is nil.
func register(reg prometheus.Registerer, collectors ...prometheus.Collector) error {
	if reg == nil {
		return nil
	}
	for _, c := range collectors {
		if err := reg.Register(c); err != nil {
			return fmt.Errorf("register the adapter's metrics: %w", err)
		}
	}
	return nil
}

// RecordMember records the state of a unit in a member at an instant. before is the last reported state, by this
// process or the previous one. pushed reports whether the member has the unit according to its engine. requestedAt is when the
// change was requested; zero means now.
func (m *UnitMetrics) RecordMember(resource string, before, now v1alpha1.ClusterState, pushed bool, at, requestedAt time.Time) {
	cluster := string(now.Name)
	if now.State == v1alpha1.MemberDrifted && before.State != v1alpha1.MemberDrifted {
		m.drift.WithLabelValues(cluster).Inc()
	}
	there := now.ObservedRevision == now.DesiredRevision
	m.mu.Lock()
	defer m.mu.Unlock()
	key := unitInMember{resource, cluster}
	if now.DesiredRevision == "" {
		delete(m.waiting, key)
		return
	}
	w, waits := m.waiting[key]
	if before.DesiredRevision != now.DesiredRevision && w.desired != now.DesiredRevision {
		delete(m.waiting, key)
		if waits = !there; !waits {
			return // the member had it already
		}
		if requestedAt.IsZero() || requestedAt.After(at) {
			requestedAt = at
		}
		w = wait{desired: now.DesiredRevision, since: requestedAt}
	}
	if !waits {
		return
	}
	if pushed && !w.propagated {
		w.propagated = true
		m.propagate.WithLabelValues(cluster).Observe(at.Sub(w.since).Seconds())
	}
	// An object that is overridden or not enforced has arrived, too.
	if there && !w.realized && now.State != v1alpha1.MemberUnreachable {
		w.realized = true
		m.realize.WithLabelValues(cluster).Observe(at.Sub(w.since).Seconds())
	}
	m.waiting[key] = w
	if w.propagated && w.realized {
		delete(m.waiting, key)
	}
}

// Forget removes the records of a unit.
func (m *UnitMetrics) Forget(resource string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.waiting {
		if key.resource == resource {
			delete(m.waiting, key)
		}
	}
}

// RecordRollout records the state of a resource's rollout, or "" if none is in progress.
func (m *UnitMetrics) RecordRollout(resource, state string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.inRollout[resource]
	if before == state {
		return
	}
	if before != "" {
		m.rollouts.WithLabelValues(before).Dec()
		delete(m.inRollout, resource)
	}
	if state != "" {
		m.rollouts.WithLabelValues(state).Inc()
		m.inRollout[resource] = state
	}
}

// RecordRolloutChange counts something that happened to a rollout.
func (m *UnitMetrics) RecordRolloutChange(change string) {
	m.rolloutChanges.WithLabelValues(change).Inc()
}

// RecordExpiry records how late an expired statement was removed.
func (m *UnitMetrics) RecordExpiry(lag time.Duration) { m.expiry.Observe(max(0, lag.Seconds())) }

package membercluster

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/acp-io/acp/api/v1alpha1"
)

var (
	descState = prometheus.NewDesc("acp_member_state", "1 for the state that a member is in, as in its MemberCluster.", []string{"cluster", "state"}, nil)
	descGuard = prometheus.NewDesc("acp_member_guard", "1 for the state of the guard of a member: Present, Missing, Changed or Unknown.",
		[]string{"cluster", "state"}, nil)
	descFindings = prometheus.NewDesc("acp_member_findings", "Findings in a member, as in its MemberCluster.", []string{"cluster", "severity"}, nil)
	descUnits    = prometheus.NewDesc("acp_units", "Units that a member has to have, has, or may have, by state.", []string{"cluster", "state"}, nil)
	descLeaked   = prometheus.NewDesc("acp_leaked", "Units that are in a member though they should not be.", []string{"cluster"}, nil)
	descUsed     = prometheus.NewDesc("acp_identities_used", "Identities of pods in a member.", []string{"cluster"}, nil)
	descLimit    = prometheus.NewDesc("acp_identities_limit", "Identities of pods that a member can have.", []string{"cluster"}, nil)
	descLabel    = prometheus.NewDesc(
		"acp_identity_label_values",
		"Values of the label keys with the most values in a member's identities.",
		[]string{"cluster", "key"},
		nil,
	)
	descMapEntries = prometheus.NewDesc(
		"acp_policymap_entries",
		"Policy-map entries that the heaviest unit of a member needs, estimated.",
		[]string{"cluster"},
		nil,
	)
)

var (
	memberStates = []v1alpha1.MemberClusterState{v1alpha1.MemberClusterReady, v1alpha1.MemberClusterUnreachable, v1alpha1.MemberClusterLeaving,
		v1alpha1.MemberClusterDowngraded, v1alpha1.MemberClusterQuarantined}
	guardStates = []v1alpha1.GuardState{v1alpha1.GuardPresent, v1alpha1.GuardMissing, v1alpha1.GuardChanged, v1alpha1.GuardUnknown}
	severities  = []v1alpha1.FindingSeverity{v1alpha1.FindingStops, v1alpha1.FindingFails, v1alpha1.FindingWarns}
	unitStates  = []v1alpha1.MemberState{v1alpha1.MemberRealized, v1alpha1.MemberPending, v1alpha1.MemberDrifted, v1alpha1.MemberUnreachable,
		v1alpha1.MemberLeaked, v1alpha1.MemberOverridden, v1alpha1.MemberQuarantined, v1alpha1.MemberDowngraded}
)

// Describe implements prometheus.Collector.
func (w *Writer) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descState, descGuard, descFindings, descUnits, descLeaked, descUsed, descLimit, descLabel, descMapEntries} {
		out <- d
	}
}

// Collect implements prometheus.Collector. It reports the results of the last check. A replica that is not the leader
// has no results.
func (w *Writer) Collect(out chan<- prometheus.Metric) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for cluster, l := range w.latest {
		s := &l.Status
		for _, state := range memberStates {
			gauge(descState, truth(state == s.State), cluster, string(state))
		}
		for _, state := range guardStates {
			gauge(descGuard, truth(state == s.Guard), cluster, string(state))
		}
		found := map[v1alpha1.FindingSeverity]int{}
		for _, f := range s.Findings {
			found[f.Severity]++
		}
		for _, severity := range severities {
			gauge(descFindings, float64(found[severity]), cluster, string(severity))
		}
		if l.States != nil {
			for _, state := range unitStates {
				gauge(descUnits, float64(l.States[state]), cluster, string(state))
			}
			gauge(descLeaked, float64(l.States[v1alpha1.MemberLeaked]), cluster)
		}
		if i := s.Identities; i != nil {
			gauge(descUsed, float64(i.Used), cluster)
			gauge(descLimit, float64(i.Limit), cluster)
			for _, k := range i.Labels {
				gauge(descLabel, float64(k.Values), cluster, k.Key)
			}
		}
		if m := s.PolicyMap; m != nil {
			gauge(descMapEntries, float64(m.Highest), cluster)
		}
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

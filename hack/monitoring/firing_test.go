package monitoring

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"
)

// hour is the duration of the series of these tests, with a sample every minute.
const hour = time.Hour

// healthy contains the series of a fleet without problems.
const healthy = `
leader_election_master_status{name="acp-adapter",instance="a"} 1x60
leader_election_master_status{name="acp-adapter",instance="b"} 0x60
acp_member_state{cluster="m1",state="Ready"} 1x60
acp_member_state{cluster="m1",state="Unreachable"} 0x60
acp_member_state{cluster="m1",state="Quarantined"} 0x60
acp_member_state{cluster="m1",state="Downgraded"} 0x60
acp_member_findings{cluster="m1",severity="Stops"} 0x60
acp_member_findings{cluster="m1",severity="Fails"} 0x60
acp_member_findings{cluster="m1",severity="Warns"} 2x60
acp_member_guard{cluster="m1",state="Present"} 1x60
acp_member_guard{cluster="m1",state="Missing"} 0x60
acp_member_guard{cluster="m1",state="Changed"} 0x60
acp_member_token_failures_total{cluster="m1",account="acp-pusher"} 3x60
acp_units{cluster="m1",state="Realized"} 400x60
acp_units{cluster="m1",state="Pending"} 0x60
acp_units{cluster="m1",state="Drifted"} 0x60
acp_units{cluster="m1",state="Overridden"} 0x60
acp_leaked{cluster="m1"} 0x60
acp_drift_total{cluster="m1"} 1 2x59
acp_realize_seconds_bucket{cluster="m1",le="1.0"} 0+10x60
acp_realize_seconds_bucket{cluster="m1",le="300.0"} 0+10x60
acp_realize_seconds_bucket{cluster="m1",le="+Inf"} 0+10x60
acp_expiry_lag_seconds_bucket{le="60.0"} 0+1x60
acp_expiry_lag_seconds_bucket{le="+Inf"} 0+1x60
acp_expiry_lag_seconds_count 0+1x60
acp_clock_behind_seconds{instance="a"} 0x60
acp_certificate_end_timestamp_seconds{setting="listen",instance="p"} 7776000x60
acp_certificate_end_timestamp_seconds{setting="webhook-address",instance="a"} 7776000x60
acp_member_authority_end_timestamp_seconds{cluster="m1",instance="a"} 7776000x60
controller_runtime_reconcile_errors_total{controller="protectedresource"} 5x60
workqueue_depth{controller="protectedresource",priority="0"} 3x60
acp_requests_waiting{controller="protectedresource"} 4x60
acp_identities_used{cluster="m1"} 9000x60
acp_identities_limit{cluster="m1"} 65536x60
acp_policymap_entries{cluster="m1"} 900x60
acp_portal_event_streams{instance="p"} 12x60
acp_portal_outbox_jobs{instance="p"} 0x60
acp_portal_requests_total{code="200"} 0+600x60
acp_portal_requests_total{code="500"} 0+1x60
acp_portal_request_seconds_bucket{le="0.1"} 0+600x60
acp_portal_request_seconds_bucket{le="+Inf"} 0+600x60
acp_portal_outbox_age_seconds 0x60
acp_portal_tickets{state="failed"} 0x60
acp_portal_tickets{state="effective"} 90x60
acp_ticket_seconds_bucket{stage="effective",cluster="m1",le="1.0"} 0+5x60
acp_ticket_seconds_bucket{stage="effective",cluster="m1",le="1800.0"} 0+5x60
acp_ticket_seconds_bucket{stage="effective",cluster="m1",le="+Inf"} 0+5x60
acp_notifications_overdue_seconds{channel="mail"} 20x60
acp_notifications_dead{channel="mail"} 4x60
acp_flow_store_pending_rollups 100x60
acp_flow_disagreements_total{cluster="m1",decision="allowed",verdict="dropped"} 7x60
acp_flow_source_connected{cluster="m1"} 1x60
acp_flows_lost_total{cluster="m1",reason="ring"} 8x60
acp_flow_losses_joined_total{cluster="m1"} 3x60
acp_flow_store_failures_total 2x60
acp_flow_store_dropped_total{cluster="m1"} 1x60
acp_flow_spool_refused_total 1x60
acp_flow_audit_log_dropped_total{reason="full"} 1x60
`

// wrong contains, for each alert, the series that make it fire, in place of healthy ones. A series without values is removed.
var wrong = map[string]string{
	"ACPNoLeader":          `leader_election_master_status{name="acp-adapter",instance="a"} 0x60`,
	"ACPTwoLeaders":        `leader_election_master_status{name="acp-adapter",instance="b"} 1x60`,
	"ACPMemberUnreachable": `acp_member_state{cluster="m1",state="Unreachable"} 1x60`,
	"ACPMemberQuarantined": `acp_member_state{cluster="m1",state="Quarantined"} 1x60`,
	"ACPMemberDowngraded":  `acp_member_state{cluster="m1",state="Downgraded"} 1x60`,
	"ACPMemberUnfit":       `acp_member_findings{cluster="m1",severity="Fails"} 1x60`,
	"ACPGuardMissing":      `acp_member_guard{cluster="m1",state="Changed"} 1x60`,
	"ACPTokenNotRenewed":   `acp_member_token_failures_total{cluster="m1",account="acp-pusher"} 0+1x60`,
	"ACPLeaked":            `acp_leaked{cluster="m1"} 1x60`,
	"ACPDriftLasts":        `acp_units{cluster="m1",state="Drifted"} 1x60`,
	"ACPDriftRepeats":      `acp_drift_total{cluster="m1"} 0+1x60`,
	"ACPOverridden":        `acp_units{cluster="m1",state="Overridden"} 1x60`,
	"ACPNotInForce":        `acp_units{cluster="m1",state="Pending"} 2x60`,
	"ACPSlowToMember":      `acp_realize_seconds_bucket{cluster="m1",le="1.0"} 0+9x60`,
	"ACPExpiryLate":        `acp_expiry_lag_seconds_bucket{le="60.0"} 0x60`,
	"ACPClockBehind":       `acp_clock_behind_seconds{instance="a"} 600x60`,
	"ACPReconcileErrors":   `controller_runtime_reconcile_errors_total{controller="protectedresource"} 0+60x60`,
	"ACPQueueLong": `workqueue_depth{controller="protectedresource",priority="0"} 400x60` + "\n" +
		`acp_requests_waiting{controller="protectedresource"} 200x60`,
	"ACPIdentitiesFilling": `acp_identities_used{cluster="m1"} 50000x60`,
	"ACPIdentitiesFull":    `acp_identities_used{cluster="m1"} 60000x60`,
	"ACPPolicyMapFilling":  `acp_policymap_entries{cluster="m1"} 9000x60`,
	"ACPNoPortal":          `acp_portal_event_streams{instance="p"}`,
	"ACPPortalStoreAway":   `acp_portal_outbox_jobs{instance="p"}`,
	"ACPPortalErrors":      `acp_portal_requests_total{code="500"} 0+60x60`,
	"ACPPortalSlow":        `acp_portal_request_seconds_bucket{le="0.1"} 0+500x60` + "\n" + `acp_portal_request_seconds_bucket{le="10.0"} 0+600x60`,
	"ACPOutboxStuck":       `acp_portal_outbox_age_seconds 90x60`,
	"ACPTicketsFailed":     `acp_portal_tickets{state="failed"} 1x60`,
	"ACPTicketSlow":        `acp_ticket_seconds_bucket{stage="effective",cluster="m1",le="1.0"} 0+4x60`,
	"ACPNotificationsLate": `acp_notifications_overdue_seconds{channel="mail"} 2000x60`,
	"ACPNotificationsLost": `acp_notifications_dead{channel="mail"} 4+1x60`,
	"ACPNoCollector":       `acp_flow_store_pending_rollups`,
	"ACPDisagreement":      `acp_flow_disagreements_total{cluster="m1",decision="allowed",verdict="dropped"} 0+1x60`,
	"ACPFlowsMissing":      `acp_flow_source_connected{cluster="m1"} 0x60`,
	"ACPFlowsLost":         `acp_flows_lost_total{cluster="m1",reason="ring"} 0+1x60`,
	"ACPFlowLossesJoined":  `acp_flow_losses_joined_total{cluster="m1"} 0+1x60`,
	"ACPFlowStoreFails":    `acp_flow_store_failures_total 0+1x60`,
	"ACPFlowStoreDropped":  `acp_flow_store_dropped_total{cluster="m1"} 0+1x60`,
	"ACPSpoolFull":         `acp_flow_spool_refused_total 0+1x60`,
	"ACPCertificateEnds":   `acp_certificate_end_timestamp_seconds{setting="listen",instance="p"} 1000000x60`,
	"ACPAuthorityEnds":     `acp_member_authority_end_timestamp_seconds{cluster="m1",instance="a"} 1000000x60`,
	"ACPAuditLogDropped":   `acp_flow_audit_log_dropped_total{reason="full"} 0+1x60`,
}

func TestAlertsFire(t *testing.T) {
	calm := promqltest.LoadedStorage(t, load(""))
	defer func() { _ = calm.Close() }() // nothing of it is kept
	for _, file := range files(t, "deploy/alerts/*.yaml") {
		groups, errs := rulefmt.Parse([]byte(read(t, file)), false, model.UTF8Validation, language, discard)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		for _, g := range groups.Groups {
			for _, r := range g.Rules {
				t.Run(r.Alert, func(t *testing.T) {
					if n := results(t, calm, r.Expr); n != 0 {
						t.Errorf("it fires %d times though nothing is wrong", n)
					}
					if wrong[r.Alert] == "" {
						t.Fatal("nothing here makes it fire")
					}
					bad := promqltest.LoadedStorage(t, load(wrong[r.Alert]))
					defer func() { _ = bad.Close() }() // nothing of it is kept
					if n := results(t, bad, r.Expr); n != 1 {
						t.Errorf("it fires %d times", n)
					}
				})
			}
		}
	}
}

// load returns the series of the healthy fleet, with some of them replaced.
func load(instead string) string {
	changed, out := map[string]bool{}, []string{"load 1m"}
	for line := range strings.Lines(instead) {
		series, values, _ := strings.Cut(strings.TrimSpace(line), " ")
		changed[series] = true
		if values != "" {
			out = append(out, "  "+strings.TrimSpace(line))
		}
	}
	for line := range strings.Lines(healthy) {
		line = strings.TrimSpace(line)
		if series, _, _ := strings.Cut(line, " "); line != "" && !changed[series] {
			out = append(out, "  "+line)
		}
	}
	return strings.Join(out, "\n")
}

// results returns the number of series of an expression after the hour.
func results(t *testing.T, data storage.Queryable, expr string) int {
	t.Helper()
	q, err := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery).
		NewInstantQuery(t.Context(), data, nil, expr, time.Unix(0, 0).Add(hour))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	vector, err := q.Exec(t.Context()).Vector()
	if err != nil {
		t.Fatal(err)
	}
	return len(vector)
}

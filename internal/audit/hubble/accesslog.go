package hubble

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	flowpb "github.com/cilium/cilium/api/v1/flow"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/enforcer/istio"
	"github.com/acp-io/acp/internal/policy"
)

// eventAccess is the kind of an event that is an entry of Istio's access log. No event of Cilium's monitor has this number.
const eventAccess = 1 << 16

const (
	// prefixIstio is the source of the label that accessSource gives the client of an entry.
	prefixIstio          = "istio:"
	labelServiceAccount  = "serviceaccount"
	maxDestinationLabels = 64
	maxDuration          = 365 * 24 * time.Hour
)

// errNotAccess reports a line that is not an entry about an incoming connection: a message of the proxy, or an outgoing request.
var errNotAccess = errors.New("not an entry about an incoming connection")

// accessEntry holds the needed fields of an entry, in the format of docs/flows.md. The name of the client's address is another one than in
// Istio's default format, in which clients can choose the address and the path by headers, so that entries of that format are not read.
type accessEntry struct {
	StartTime                    accessText `json:"start_time"`
	Duration                     accessText `json:"duration"`
	Method                       accessText `json:"method"`
	Path                         accessText `json:"path"`
	ResponseCodeDetails          accessText `json:"response_code_details"`
	ConnectionTerminationDetails accessText `json:"connection_termination_details"`
	UpstreamCluster              accessText `json:"upstream_cluster"`
	DownstreamLocalAddress       accessText `json:"downstream_local_address"`
	DownstreamRemoteAddress      accessText `json:"downstream_direct_remote_address"`

	SourcePrincipal      accessText            `json:"source_principal"`
	DestinationPod       accessText            `json:"destination_pod"`
	DestinationNamespace accessText            `json:"destination_namespace"`
	DestinationLabels    map[string]accessText `json:"destination_labels"`
	DryRun               map[string]accessText `json:"dry_run"`
	AuditHint            accessText            `json:"audit_hint"`
	EffectiveRule        loggedText            `json:"effective_rule"`
}

// accessText is a value as text. Envoy writes numbers and booleans for single operators, and null or "-" for missing values.
type accessText string

// UnmarshalJSON implements json.Unmarshaler.
func (t *accessText) UnmarshalJSON(b []byte) error {
	if bytes.Equal(b, []byte("null")) {
		*t = ""
		return nil
	}
	text := string(b)
	switch b[0] {
	case '"':
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
		if text == "-" {
			text = ""
		}
	case '{', '[':
		return errors.New("a list or an object in place of a text")
	}
	*t = accessText(text)
	return nil
}

// loggedText is a text of which it matters whether the entry contains the field at all.
type loggedText struct {
	text   accessText
	logged bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *loggedText) UnmarshalJSON(b []byte) error {
	t.logged = true
	return t.text.UnmarshalJSON(b)
}

// accessAudit is what an entry contains about Istio's policies with the action AUDIT.
type accessAudit struct {
	istio.AuditResult
	// complete reports whether the entry also shows whether an ALLOW policy let the request in, which Envoy reports for requests only.
	complete bool
}

// scanAccessLine reads a line of the access log into an empty event. It returns errNotAccess for a line that does not count, and
// another error for one that cannot be read.
func scanAccessLine(b []byte, e *event) error {
	if b = bytes.TrimSpace(b); len(b) == 0 || b[0] != '{' {
		return errNotAccess // what the proxy writes about itself
	}
	var x accessEntry
	if err := json.Unmarshal(b, &x); err != nil {
		return fmt.Errorf("%w: %w", errUnreadable, err)
	}
	if x.StartTime == "" && x.DownstreamLocalAddress == "" {
		return errNotAccess
	}
	refused := strings.HasPrefix(string(x.ResponseCodeDetails), rbacDenied) || strings.HasPrefix(string(x.ConnectionTerminationDetails), rbacDenied)
	if !refused && !x.incoming() {
		return errNotAccess
	}
	return x.fill(e, b, refused)
}

// rbacDenied begins the details of a connection or a request that an AuthorizationPolicy refused.
const rbacDenied = "rbac_access_denied"

// incoming reports whether the proxy of the destination wrote the entry. AuthorizationPolicies refuse incoming connections only, so
// the entries of refused ones need no such check.
func (x *accessEntry) incoming() bool {
	return strings.HasPrefix(string(x.UpstreamCluster), "inbound|") || strings.HasPrefix(string(x.UpstreamCluster), "InboundPassthrough")
}

func (x *accessEntry) fill(e *event, line []byte, refused bool) error {
	began, err := time.Parse(time.RFC3339Nano, string(x.StartTime))
	if err != nil {
		return fmt.Errorf("%w: start_time is %q", errUnreadable, x.StartTime)
	}
	lasted := time.Duration(0)
	if x.Duration != "" {
		ms, err := strconv.ParseInt(string(x.Duration), 10, 64)
		if err != nil || ms < 0 || ms > maxDuration.Milliseconds() {
			return fmt.Errorf("%w: duration is %q", errUnreadable, x.Duration)
		}
		lasted = time.Duration(ms) * time.Millisecond
	}
	source, err := netip.ParseAddrPort(string(x.DownstreamRemoteAddress))
	if err != nil {
		return fmt.Errorf("%w: downstream_direct_remote_address is %q", errUnreadable, x.DownstreamRemoteAddress)
	}
	destination, err := netip.ParseAddrPort(string(x.DownstreamLocalAddress))
	if err != nil {
		return fmt.Errorf("%w: downstream_local_address is %q", errUnreadable, x.DownstreamLocalAddress)
	}
	if len(x.DestinationLabels) > maxDestinationLabels {
		return fmt.Errorf("%w: destination_labels has %d labels, at most %d", errUnreadable, len(x.DestinationLabels), maxDestinationLabels)
	}
	// The entry is written at the end, so this is the time by which entries arrive in order.
	written := began.Add(lasted)
	path, _, _ := strings.Cut(string(x.Path), "?") // AuthorizationPolicies do not see the query
	*e = event{kind: eventAccess, uuid: line, transport: transportTCP, opened: began.UTC(),
		seconds: written.Unix(), nanos: int32(written.Nanosecond()), //nolint:gosec // below 1e9
		source: []byte(source.Addr().Unmap().String()), destination: []byte(destination.Addr().Unmap().String()),
		sourcePort: uint32(source.Port()), destinationPort: uint32(destination.Port()),
		method: []byte(x.Method), url: []byte(path), node: []byte(x.DestinationPod), verdict: flowpb.Verdict_FORWARDED}
	e.timed = validTime(e.seconds, e.nanos)
	switch {
	case refused:
		e.verdict = flowpb.Verdict_DROPPED
	case x.refusedInDryRun():
		e.verdict = flowpb.Verdict_AUDIT
	default:
		e.audit = x.audit()
	}
	e.from, e.to = x.source(), x.destination()
	return nil
}

// audit returns what the policies with the action AUDIT report; nil if none applies, or if the format does not contain it.
func (x *accessEntry) audit() *accessAudit {
	if x.AuditHint != "true" && x.AuditHint != "false" {
		return nil
	}
	return &accessAudit{complete: x.EffectiveRule.logged && x.Method != "",
		AuditResult: istio.AuditResult{Matched: x.AuditHint == "true", Rule: string(x.EffectiveRule.text)}}
}

// refusedInDryRun reports whether a policy with the annotation istio.io/dry-run would have refused the connection.
func (x *accessEntry) refusedInDryRun() bool {
	for _, result := range x.DryRun {
		if result == "denied" {
			return true
		}
	}
	return false
}

// encodedEndpoint is an endpoint in the JSON of Hubble's exporter.
type encodedEndpoint struct {
	Namespace string   `json:"namespace,omitempty"`
	Labels    []string `json:"labels"`
}

func (x encodedEndpoint) encode() []byte {
	out, err := json.Marshal(x)
	if err != nil { // strings always marshal
		panic(err)
	}
	return out
}

// source returns the client: the service account of its certificate, or what is at the address if it presented none. A certificate
// that is not one of Istio's gives an endpoint with an unknown identity.
func (x *accessEntry) source() []byte {
	if x.SourcePrincipal == "" {
		return encodedEndpoint{Labels: []string{prefixReserved + "world"}}.encode()
	}
	identity, ok := strings.CutPrefix(string(x.SourcePrincipal), "spiffe://")
	parts := strings.Split(identity, "/")
	if !ok || len(parts) != 5 || parts[1] != "ns" || parts[2] == "" || parts[3] != "sa" || parts[4] == "" || strings.Contains(identity, ",") {
		return encodedEndpoint{Labels: []string{}}.encode()
	}
	return encodedEndpoint{Namespace: parts[2], Labels: []string{prefixIstio + labelServiceAccount + "=" + parts[4]}}.encode()
}

// destination returns the pod of the proxy, with the labels that the log contains.
func (x *accessEntry) destination() []byte {
	out := encodedEndpoint{Namespace: string(x.DestinationNamespace), Labels: []string{}}
	for key, value := range x.DestinationLabels {
		if value != "" {
			out.Labels = append(out.Labels, prefixK8s+key+"="+string(value))
		}
	}
	if x.DestinationNamespace != "" {
		out.Labels = append(out.Labels, prefixK8s+labelNamespace+"="+string(x.DestinationNamespace))
	}
	slices.Sort(out.Labels)
	return out.encode()
}

// ingestAccessLine ingests a line of the access log.
func (t *ingester) ingestAccessLine(s *scannedLine) {
	switch {
	case s.err == nil:
		t.ingestFlow(&s.event)
	case errors.Is(s.err, errNotAccess):
		t.counters.skipped[skipEvent].Inc()
	default:
		t.cfg.Sink.AddLoss(*t.unreadable(nil, t.cfg.Now(), s.err))
	}
}

// ingestAccess counts an entry of the access log: a request, or a connection that is not HTTP. If the member's Hubble is a source,
// too, it counts the connections of resources that Cilium enforces, so that the log contributes only what Istio refused of them.
func (t *ingester) ingestAccess(e *event, ends *ends, id uint64, at, now time.Time) skip {
	opened := audit.Earlier(e.opened, now)
	k := t.cacheFor(opened)
	p := ends.pair(e, e.verdict)
	if t.cfg.BesideHubble {
		switch names, istio := t.decider.resourcesOf(k, p.to); {
		case len(names) == 0:
			return skipElsewhere
		case !istio && e.verdict != flowpb.Verdict_DROPPED:
			return skipElsewhere
		}
	}
	if len(e.method) > 0 {
		if request, judged := t.decider.requestOf(k, p.to, p.port, p.transport, e.request()); judged {
			p.request = request
		}
	}
	if !t.seen.observe(id, at, now) {
		t.counters.repeated.Inc()
		return skipNone
	}
	r := t.decider.decide(k, p, opened)
	if t.decider.auditRefuses(k, e.audit, p.to, r.group.Edges[0].Decision, opened) {
		p.verdict = flowpb.Verdict_AUDIT
		r = t.decider.decide(k, p, opened)
	}
	taken := audit.Event{SeenEvent: audit.SeenEvent{ID: id, Time: audit.Earlier(at, now)}}
	t.record(&taken, e, k, r, ends)
	t.emit(taken)
	return skipNone
}

// auditRefuses reports whether Istio's policies with the action AUDIT show that a connection that they let through would be refused in
// Enforce. They are ACP's only for resources in Audit that Istio enforces, and only while the member has the current policies.
//
// The decision has to be the same, unless the entry alone is conclusive: then a connection that the policies allow has the verdict audit, too,
// because the proxies evaluate the policies in another way than the decision.
func (d *decider) auditRefuses(k *decisionCache, a *accessAudit, to *audit.Endpoint, decision policy.Verdict, at time.Time) bool {
	if a == nil || decision != policy.Audited && (decision != policy.Allowed || !a.complete) {
		return false
	}
	names, _ := d.resourcesOf(k, to)
	var audited []string
	for i, name := range names {
		if d.lags.Of(name, at) == nil && k.EffectiveMode(name, d.member, at) == v1alpha1.ModeAudit &&
			slices.Contains(k.EnforcersOf(names[i:i+1]), v1alpha1.EnforcerIstio) {
			audited = append(audited, name)
		}
	}
	return len(audited) > 0 && a.WouldRefuse(audited)
}

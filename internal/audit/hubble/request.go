package hubble

import (
	"bytes"
	"strings"
	"time"

	flowpb "github.com/cilium/cilium/api/v1/flow"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

// maxMethod and maxPath bound what is read of a request, in bytes. Clients choose both, and regular expressions are matched
// against them.
const (
	maxMethod = 32
	maxPath   = 1024
)

// request holds the properties of an HTTP request that actions can match.
type request struct{ method, path string }

// request returns the method and the path with its query, because proxies match both together.
func (e *event) request() request {
	r := request{method: printable(e.method, maxMethod), path: "/"}
	url := e.url
	if _, rest, ok := bytes.Cut(url, []byte("://")); ok {
		url = nil
		if slash := bytes.IndexAny(rest, "/?"); slash >= 0 {
			url = rest[slash:]
		}
	}
	if path := printable(url, maxPath); path != "" {
		r.path = path
	}
	if r.method == "" {
		r.method = policy.NoAction // a value that matches no action
	}
	return r
}

// printable returns the first most bytes of a text, without control characters and invalid UTF-8.
func printable(b []byte, most int) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == '\uFFFD' {
			return -1
		}
		return r
	}, string(b[:min(len(b), most)]))
}

// requestOf returns the representative of all requests to a port of the same resources that match the same actions, so that the caches
// do not grow with the number of paths. It returns nil if the destination is no resource. judged reports whether the port has request
// actions. The actions are those of the cache's policies: a decision by earlier policies, with other actions of requests, is made for
// the path of the representative.
func (d *decider) requestOf(k *decisionCache, to *audit.Endpoint, port uint16, t transport, r request) (same *request, judged bool) {
	names, _ := d.resourcesOf(k, to)
	if len(names) == 0 {
		return nil, false
	}
	key := requestKey{transport: t, port: port}
	var matched strings.Builder
	for _, name := range names {
		actions, has := k.RequestsOn(name, t.protocol(), port, r.method, r.path)
		judged = judged || has
		matched.WriteString(name)
		for _, a := range actions {
			matched.WriteByte(' ')
			matched.WriteString(a)
		}
		matched.WriteByte('\n')
	}
	key.actions = matched.String()
	if same = k.requests[key]; same == nil {
		if k.requests == nil || len(k.requests) >= d.limit {
			k.requests = map[requestKey]*request{}
		}
		same = &r
		k.requests[key] = same
	}
	return same, judged
}

// resourcesOf returns the resources of a destination, and whether Istio alone enforces all of them.
func (d *decider) resourcesOf(k *decisionCache, to *audit.Endpoint) (names []string, istio bool) {
	r, known := k.resources[to]
	if !known {
		if to.Kind == audit.KindWorkload {
			r.names = k.ResourcesOf(to.Labels)
		}
		enforcers := k.EnforcersOf(r.names)
		r.istio = len(enforcers) == 1 && enforcers[0] == v1alpha1.EnforcerIstio
		if k.resources == nil || len(k.resources) >= d.limit {
			k.resources = map[*audit.Endpoint]resources{}
		}
		k.resources[to] = r
	}
	return r.names, r.istio
}

// ingestRequest ingests a request that a proxy reported. The connection was counted already, so a request that the dataplane and
// the policies allow counts for nothing; it only reports, once an hour, that its client uses the action. A request that either of
// them refuses is counted.
func (t *ingester) ingestRequest(e *event, ends *ends, id uint64, at, now time.Time) skip {
	seenAt := at
	at = audit.Earlier(at, now)
	k := t.cacheFor(at)
	p := ends.pair(e, e.verdict)
	if t.countedByIstio(k, &p) {
		return skipElsewhere
	}
	request, judged := t.decider.requestOf(k, p.to, p.port, p.transport, e.request())
	if request == nil || !judged && e.verdict != flowpb.Verdict_DROPPED {
		return skipL7
	}
	p.request = request
	r := t.decider.decide(k, p, at)
	if !r.refused && hourOf(at) <= r.lastHour {
		return skipL7
	}
	if !t.seen.observe(id, seenAt, now) {
		t.counters.repeated.Inc()
		return skipNone
	}
	taken := audit.Event{SeenEvent: audit.SeenEvent{ID: id, Time: at}}
	if r.refused {
		t.record(&taken, e, k, r, ends)
	} else {
		r.lastHour, taken.EdgeGroup = hourOf(at), &r.group
	}
	t.emit(taken)
	return skipNone
}

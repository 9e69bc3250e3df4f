package hubble

import (
	"bytes"
	"strings"
	"time"

	flowpb "github.com/cilium/cilium/api/v1/flow"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

// Bounds of what is read of a request, in bytes. A client chooses both, and regular expressions look at all of it.
const (
	maxMethod = 32
	maxPath   = 1024
)

// request is what the actions of a class may ask about a request.
type request struct{ method, path string }

// request reads the method and the path, with its query, because proxies match both together.
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
		r.method = policy.NoAction // no method that an action could have
	}
	return r
}

// printable is the beginning of a text, without control characters and what is not UTF-8.
func printable(b []byte, most int) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == '\uFFFD' {
			return -1
		}
		return r
	}, string(b[:min(len(b), most)]))
}

// requestOf returns the request that stands for all that are of the same actions of the destination, so that what is remembered
// does not grow with the paths. Nil: the destination is no resource. It also reports whether the port has actions of requests.
func (b *books) requestOf(k *book, to *audit.Endpoint, port uint16, t transport, r request) (same *request, judged bool) {
	names, known := k.resources[to]
	if !known {
		if to.Kind == audit.KindWorkload {
			names = k.ResourcesOf(to.Labels)
		}
		if k.resources == nil || len(k.resources) >= b.limit {
			k.resources = map[*audit.Endpoint][]string{}
		}
		k.resources[to] = names
	}
	if len(names) == 0 {
		return nil, false
	}
	var key strings.Builder
	for _, name := range names {
		actions, has := k.RequestsOn(name, t.protocol(), port, r.method, r.path)
		judged = judged || has
		key.WriteString(strings.Join(actions, " "))
		key.WriteByte('\n')
	}
	if same = k.requests[key.String()]; same == nil {
		if k.requests == nil || len(k.requests) >= b.limit {
			k.requests = map[string]*request{}
		}
		same = &r
		k.requests[key.String()] = same
	}
	return same, judged
}

// takeRequest takes a request that a proxy reports. Its connection was counted already, so a request that passes counts for
// nothing, and shows once an hour that its client uses the action. One that the dataplane or the policies refuse counts.
func (t *intake) takeRequest(e *event, ends *ends, id uint64, at, now time.Time) skip {
	seenAt := at
	at = earlier(at, now)
	k := t.book(at)
	p := ends.pair(e, e.verdict)
	asked, judged := t.books.requestOf(k, p.to, p.port, p.transport, e.request())
	if asked == nil || !judged && e.verdict != flowpb.Verdict_DROPPED {
		return skipL7
	}
	p.asked = asked
	r := t.books.rule(k, p, at)
	if !r.refused && hourOf(at) <= r.shown {
		return skipL7
	}
	if !t.seen.take(id, seenAt, now) {
		t.counters.repeated.Inc()
		return skipNone
	}
	taken := audit.Taken{Seen: audit.Seen{ID: id, Time: at}}
	if r.refused {
		t.settle(&taken, e, k, r, ends)
	} else {
		r.shown, taken.Tally = hourOf(at), &r.tally
	}
	t.hand(taken)
	return skipNone
}

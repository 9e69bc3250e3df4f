package core

import (
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"golang.org/x/time/rate"

	"github.com/acp-io/acp/internal/message"
)

// Budget limits the rate of an operation for one caller.
type Budget struct {
	name    string
	per     rate.Limit // per second
	Burst   int
	bounded bool // and a limited number at the same time; see callerLimit
}

var (
	// BudgetRequests bounds all requests of a person. Opening a page causes about a dozen of them.
	BudgetRequests = Budget{name: "requests", per: 50, Burst: 200}
	// budgetAnonymous bounds requests without a login: pages, their files and the login itself. Offices share an address.
	budgetAnonymous = Budget{name: "strangers", per: 50, Burst: 400}
	// BudgetLogins bounds the starts of logins and device logins, which store data for some minutes.
	BudgetLogins = Budget{name: "logins", per: 5, Burst: 200}
	// BudgetWrongTokens bounds the answers to invalid bearer tokens. It does not bound the reads of the store, one by an index for each attempt: valid
	// tokens may come from the same address.
	BudgetWrongTokens = Budget{name: "wrong-tokens", per: 0.2, Burst: 20}
	// BudgetUserCodes bounds attempts of user codes, which have eight letters: a few dozen during the life of a code (RFC 8628 5.1).
	BudgetUserCodes = Budget{name: "user-codes", per: 0.05, Burst: 10}
	// budgetLargeBodies bounds large bodies. A platform sends forty thousand workloads in forty of them.
	budgetLargeBodies = Budget{name: "large-bodies", per: 0.5, Burst: 60}
	// BudgetFlows bounds flow queries, which read up to a month.
	BudgetFlows = Budget{name: "flows", per: 5, Burst: 100, bounded: true}
	// BudgetReplays bounds replays, proposals and unused grants, which decide all connections of a window.
	BudgetReplays = Budget{name: "replays", per: 1, Burst: 60, bounded: true}
	// BudgetPreviews bounds previews of requests, which compile what each item changes. The page of a request asks for one whenever a person
	// pauses for 0.2 s; the burst is for somebody who edits a long request.
	BudgetPreviews = Budget{name: "previews", per: 2, Burst: 120, bounded: true}
	// BudgetComments bounds comments. Each one notifies the people concerned.
	BudgetComments = Budget{name: "comments", per: 0.1, Burst: 30}
	// BudgetSwitches bounds temporary audits. Each one notifies people and writes to every member.
	BudgetSwitches = Budget{name: "switches", per: 0.5, Burst: 120}
	// BudgetWholeLedger bounds operations that read the whole ledger.
	BudgetWholeLedger = Budget{name: "whole-ledger", per: 0.2, Burst: 5}
)

// rememberedCallers is the maximum number of buckets, because strangers may have many addresses.
const rememberedCallers = 100_000

// limits has a token bucket for each budget and caller. Full buckets are deleted.
type limits struct {
	now     func() time.Time
	mu      sync.Mutex
	buckets map[bucketKey]*rate.Limiter
	swept   time.Time
}

type bucketKey struct{ budget, caller string }

func newLimits(now func() time.Time) *limits {
	return &limits{now: now, buckets: map[bucketKey]*rate.Limiter{}, swept: now()}
}

func (l *limits) allow(b Budget, caller string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if now.Sub(l.swept) > time.Minute || len(l.buckets) >= rememberedCallers {
		l.sweep(now)
	}
	k := bucketKey{b.name, caller}
	x, ok := l.buckets[k]
	if !ok {
		x = rate.NewLimiter(b.per, b.Burst)
		l.buckets[k] = x
	}
	return x.AllowN(now, 1)
}

func (l *limits) sweep(now time.Time) {
	for k, b := range l.buckets {
		if b.TokensAt(now) >= float64(b.Burst()) {
			delete(l.buckets, k)
		}
	}
	if len(l.buckets) >= rememberedCallers { // so many callers are an attack; all buckets are deleted
		clear(l.buckets)
	}
	l.swept = now
}

// rateLimit limits the requests of each person, or of each address without a login.
func (s *Server) rateLimit(c *gin.Context) {
	if a := caller(c); a != nil {
		s.chargeOrFail(c, BudgetRequests, "person "+a.ID)
		return
	}
	s.chargeOrFail(c, budgetAnonymous, s.ClientAddress(c))
}

// limitExpensive charges the budget of a route that reads much, and waits for other such requests of the caller.
func (s *Server) limitExpensive(c *gin.Context) {
	r, _ := s.routeOf(c)
	a := caller(c)
	if r.Costs == nil || a == nil || !s.chargeOrFail(c, *r.Costs, "person "+a.ID) || !r.Costs.bounded {
		return
	}
	done, ok := s.queries.acquire(c.Request.Context(), a.ID)
	if !ok {
		s.fail(c, s.limited(c, *r.Costs))
		return
	}
	defer done()
	c.Next()
}

// chargeOrFail charges a budget of a caller. If it is used up, it refuses the request and returns false.
func (s *Server) chargeOrFail(c *gin.Context, b Budget, caller string) bool {
	err := s.Charge(c, b, caller)
	if err != nil {
		s.fail(c, err)
	}
	return err == nil
}

// Charge charges a caller's budget, and returns a problem if it is used up.
func (s *Server) Charge(c *gin.Context, b Budget, caller string) error {
	if s.limits.allow(b, caller) {
		return nil
	}
	return s.limited(c, b)
}

// ChargePerson charges the budget of the requests of a person who has no session in this request, and returns a problem if it is used up.
func (s *Server) ChargePerson(id string) error {
	if s.limits.allow(BudgetRequests, "person "+id) {
		return nil
	}
	s.metrics.limited(BudgetRequests.name)
	return NewProblem(http.StatusTooManyRequests, "rate-limited", message.CallRateLimited())
}

// limited returns the problem that a budget is used up.
func (s *Server) limited(c *gin.Context, b Budget) error {
	c.Header("Retry-After", strconv.Itoa(int(max(1, 1/float64(b.per)))))
	s.metrics.limited(b.name)
	return NewProblem(http.StatusTooManyRequests, "rate-limited", message.CallRateLimited())
}

// ClientAddress returns the address of the caller. X-Forwarded-For counts only as far as trusted proxies wrote it: the address
// is the first one from the right that is not the address of a trusted proxy. For an IPv6 address it returns the /64, which as a whole belongs
// to the caller.
func (s *Server) ClientAddress(c *gin.Context) string {
	peer, err := netip.ParseAddr(c.RemoteIP())
	if err != nil {
		return "unknown"
	}
	at := peer.Unmap()
	hops := strings.Split(strings.Join(c.Request.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && s.trusted(at); i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		at = hop.Unmap().WithZone("")
	}
	if at.Is6() {
		if p, err := at.Prefix(64); err == nil {
			return p.String()
		}
	}
	return at.String()
}

func (s *Server) trusted(a netip.Addr) bool {
	for _, p := range s.TrustedProxies {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

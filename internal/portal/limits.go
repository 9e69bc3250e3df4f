package portal

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

// budget is how much of something one caller may do.
type budget struct {
	name  string
	per   rate.Limit // per second
	burst int
	turns bool // and few at once; see turns
}

var (
	// A person clicks less; a page that opens asks for a dozen things at once.
	budgetRequests = budget{name: "requests", per: 50, burst: 200}
	// Before the login only pages, their files, and the login itself are asked for. Offices share an address.
	budgetStrangers = budget{name: "strangers", per: 50, burst: 400}
	// A login keeps something in the store for some minutes, and so does the start of a device login.
	budgetLogins = budget{name: "logins", per: 5, burst: 200}
	// Bearer tokens that are wrong; a right one cannot be guessed anyhow, but trying costs the store a read.
	budgetWrongTokens = budget{name: "wrong-tokens", per: 0.2, burst: 20}
	// User codes have eight letters; this bounds guessing to a few dozen in a code's life (RFC 8628 5.1).
	budgetUserCodes = budget{name: "user-codes", per: 0.05, burst: 10}
	// Bodies that are larger than people type; a platform sends forty thousand workloads in forty of them.
	budgetLargeBodies = budget{name: "large-bodies", per: 0.5, burst: 60}
	// Questions about flows read up to a month of them.
	budgetFlows = budget{name: "flows", per: 5, burst: 100, turns: true}
	// Replays, proposals and unused grants decide a window's connections again.
	budgetReplays = budget{name: "replays", per: 1, burst: 60, turns: true}
	// A resource is switched now and then; each time others are told, and every member is written to.
	budgetSwitches = budget{name: "switches", per: 0.5, burst: 120}
	// What reads the whole ledger.
	budgetWhole = budget{name: "whole-ledger", per: 0.2, burst: 5}
)

// rememberCallers bounds what strangers with many addresses make the portal keep.
const rememberCallers = 100_000

// limits keeps a bucket per budget and caller; buckets that are full again are forgotten.
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

func (l *limits) allow(b budget, caller string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if now.Sub(l.swept) > time.Minute || len(l.buckets) >= rememberCallers {
		l.sweep(now)
	}
	k := bucketKey{b.name, caller}
	x, ok := l.buckets[k]
	if !ok {
		x = rate.NewLimiter(b.per, b.burst)
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
	if len(l.buckets) >= rememberCallers { // so many at once are an attack; whoever is in it starts anew
		clear(l.buckets)
	}
	l.swept = now
}

// rateLimit is per person, or per address before the login.
func (s *Server) rateLimit(c *gin.Context) {
	if a := caller(c); a != nil {
		s.spend(c, budgetRequests, "person "+a.ID)
		return
	}
	s.spend(c, budgetStrangers, s.address(c))
}

// patient takes from the budget of what reads much, and waits for the caller's turn.
func (s *Server) patient(c *gin.Context) {
	r := routeByPath[c.Request.Method+" "+c.FullPath()]
	a := caller(c)
	if r.Costs == nil || a == nil || !s.spend(c, *r.Costs, "person "+a.ID) || !r.Costs.turns {
		return
	}
	done, ok := s.turns.take(c.Request.Context(), a.ID)
	if !ok {
		s.fail(c, s.limited(c, *r.Costs))
		return
	}
	defer done()
	c.Next()
}

// spend refuses who has used up a budget, and tells whether there was some left.
func (s *Server) spend(c *gin.Context, b budget, caller string) bool {
	err := s.budgeted(c, b, caller)
	if err != nil {
		s.fail(c, err)
	}
	return err == nil
}

// budgeted takes one from a caller's budget.
func (s *Server) budgeted(c *gin.Context, b budget, caller string) error {
	if s.limits.allow(b, caller) {
		return nil
	}
	return s.limited(c, b)
}

// limited says that a budget is used up.
func (s *Server) limited(c *gin.Context, b budget) error {
	c.Header("Retry-After", strconv.Itoa(int(max(1, 1/float64(b.per)))))
	s.metrics.limited(b.name)
	return newProblem(http.StatusTooManyRequests, "rate-limited", message.CallRateLimited())
}

// address of the caller. X-Forwarded-For counts only as far as trusted proxies wrote it: from the right, the first
// address that is not such a proxy's. An IPv6 caller is his /64, because he has all of it.
func (s *Server) address(c *gin.Context) string {
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

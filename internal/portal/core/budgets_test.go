package core

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
)

func TestBudgets(t *testing.T) {
	now := time.Unix(1700000000, 0)
	l := newLimits(func() time.Time { return now })
	b := Budget{name: "x", per: 2, Burst: 5}
	for range b.Burst {
		if !l.allow(b, "a") {
			t.Fatal("a burst is allowed")
		}
	}
	if l.allow(b, "a") || !l.allow(b, "b") || !l.allow(Budget{name: "y", per: 1, Burst: 1}, "a") {
		t.Error("a caller who has used the burst waits; others do not, and neither does the caller with what is counted separately")
	}
	if now = now.Add(time.Second); !l.allow(b, "a") {
		t.Error("a second later the caller continues")
	}
	now = now.Add(time.Hour)
	if l.allow(b, "c"); len(l.buckets) != 1 {
		t.Errorf("full buckets are forgotten, %d are left", len(l.buckets))
	}
	for i := range rememberedCallers + 10 {
		l.allow(b, netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}).String())
	}
	if len(l.buckets) > rememberedCallers {
		t.Errorf("strangers with many addresses make the portal keep %d", len(l.buckets))
	}
}

func TestAddress(t *testing.T) {
	s := &Server{Config: Config{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24"), netip.MustParsePrefix("fd00::/64")}}}
	for name, tc := range map[string]struct {
		reason, peer string
		forwarded    []string
		want         string
	}{
		"no proxy":             {"the peer is who calls", "192.0.2.1:1", nil, "192.0.2.1"},
		"invented":             {"nobody believes a stranger's header", "192.0.2.1:1", []string{"198.51.100.1"}, "192.0.2.1"},
		"proxy":                {"the proxy wrote who called it", "10.0.0.5:1", []string{"198.51.100.1"}, "198.51.100.1"},
		"invented and proxied": {"what the caller wrote stands further left", "10.0.0.5:1", []string{"127.0.0.1, 198.51.100.1"}, "198.51.100.1"},
		"two headers":          {"they are one list", "10.0.0.5:1", []string{"127.0.0.1", "198.51.100.1"}, "198.51.100.1"},
		"two proxies":          {"one behind the other", "10.0.0.5:1", []string{"198.51.100.1, 10.0.0.6"}, "198.51.100.1"},
		"all proxies":          {"the furthest that is known", "10.0.0.5:1", []string{"10.0.0.7, 10.0.0.6"}, "10.0.0.7"},
		"nonsense":             {"what is no address ends the list", "10.0.0.5:1", []string{"<script>"}, "10.0.0.5"},
		"proxy without header": {"nothing to believe", "10.0.0.5:1", nil, "10.0.0.5"},
		"IPv6":                 {"one caller has a whole /64", "[2001:db8:1:2:3:4:5:6]:1", nil, "2001:db8:1:2::/64"},
		"IPv6 proxy":           {"families mix", "[fd00::1]:1", []string{"198.51.100.1"}, "198.51.100.1"},
		"mapped":               {"one address, two spellings", "[::ffff:192.0.2.1]:1", nil, "192.0.2.1"},
	} {
		t.Run(name, func(t *testing.T) {
			c := gin.CreateTestContextOnly(httptest.NewRecorder(), gin.New())
			c.Request = httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			c.Request.RemoteAddr = tc.peer
			c.Request.Header["X-Forwarded-For"] = tc.forwarded
			if got := s.ClientAddress(c); got != tc.want {
				t.Errorf("%s: %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

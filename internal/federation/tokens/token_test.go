package tokens

import (
	"encoding/base64"
	"testing"
	"time"
)

func TestSpanOf(t *testing.T) {
	jwt := func(claims string) string { return "x." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".y" }
	for _, c := range []struct {
		reason, token string
		from, until   int64
	}{
		{"a bound token", jwt(`{"iat":1700000000,"exp":1800000000}`), 1700000000, 1800000000},
		{"one that never ends", jwt(`{"iss":"kubernetes/serviceaccount"}`), 0, 0},
		{"one of which nobody knows since when", jwt(`{"exp":1800000000}`), 0, 0},
		{"one that ends before it begins", jwt(`{"iat":1800000000,"exp":1700000000}`), 0, 0},
		{"no claims", jwt(`[`), 0, 0},
		{"not a JWT", "a-static-token", 0, 0},
		{"not base64", "a.%.b", 0, 0},
		{"nonsense", jwt(`{"iat":-2,"exp":-1}`), 0, 0},
	} {
		t.Run(c.reason, func(t *testing.T) {
			s := SpanOf(c.token)
			if s.Known() != (c.until > 0) || s.Known() && (s.From.Unix() != c.from || s.Until.Unix() != c.until) {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestDue(t *testing.T) {
	from := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	week := Span{From: from, Until: from.Add(7 * 24 * time.Hour)}
	for _, c := range []struct {
		reason string
		span   Span
		after  time.Duration
		want   bool
	}{
		{"new", week, time.Hour, false},
		{"half of it is not over", week, 84 * time.Hour, false},
		{"half of it is over", week, 84*time.Hour + time.Second, true},
		{"it has ended: trying is all that is left", week, 1000 * time.Hour, true},
		{"a clock that is behind", week, -time.Hour, false},
		{"nothing is known", Span{}, 1000 * time.Hour, false},
	} {
		t.Run(c.reason, func(t *testing.T) {
			if got := c.span.Due(from.Add(c.after)); got != c.want {
				t.Errorf("due: %v", got)
			}
		})
	}
}

func FuzzSpanOf(f *testing.F) {
	f.Add("a.e30.b")
	f.Fuzz(func(t *testing.T, token string) {
		if s := SpanOf(token); s.Known() && s.Lifetime() <= 0 {
			t.Errorf("%q: %+v", token, s)
		}
	})
}

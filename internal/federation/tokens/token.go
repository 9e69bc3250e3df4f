package tokens

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"
)

// Span is the period of validity of a token. The zero Span means that it is unknown: the token never expires, or is not
// a service account token.
type Span struct{ From, Until time.Time }

// SpanOf reads the period from a token without verifying its signature.
func SpanOf(token string) Span {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return Span{}
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return Span{}
	}
	var claims struct {
		From  int64 `json:"iat"`
		Until int64 `json:"exp"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil || claims.From <= 0 || claims.Until <= claims.From {
		return Span{}
	}
	return Span{From: time.Unix(claims.From, 0), Until: time.Unix(claims.Until, 0)}
}

// Known reports whether the period is known.
func (s Span) Known() bool { return !s.Until.IsZero() }

// Lifetime returns the length of the period.
func (s Span) Lifetime() time.Duration { return s.Until.Sub(s.From) }

// Due reports whether half of the period has passed. A failed renewal can then be retried for the other half.
func (s Span) Due(now time.Time) bool { return s.Known() && now.After(s.From.Add(s.Lifetime()/2)) }

// Fingerprint returns a short hash that distinguishes tokens and does not reveal them.
func Fingerprint(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:8])
}

package credential

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
)

// Keys of a session's data that its list shows. Stores read them from what the session manager gives them to keep.
const (
	SessionPerson  = "person"    // string; absent: nobody has logged in yet
	SessionAgent   = "userAgent" // string
	SessionCreated = "created"   // int64, seconds since 1970
)

// MaxAgent bounds what is kept of a browser's name for itself.
const MaxAgent = 200

// SessionID of what a browser holds; the session manager hashes it in the same way before it reaches the store.
func SessionID(token string) string {
	sum := sha256.Sum256([]byte(token))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Printable bounds what a caller says of himself, and takes control characters out of it.
func Printable(s string, most int) string {
	out := make([]rune, 0, min(len(s), most))
	for _, r := range s {
		if len(out) == most {
			break
		}
		if !unprintable(r) {
			out = append(out, r)
		}
	}
	return string(out)
}

type ifThere struct{}

// IfThere makes a session manager's commit change a session only while the store has it: a request that is under way
// when its session is ended must not bring it back.
func IfThere(ctx context.Context) context.Context { return context.WithValue(ctx, ifThere{}, true) }

// OnlyIfThere tells stores what IfThere said.
func OnlyIfThere(ctx context.Context) bool { return ctx.Value(ifThere{}) != nil }

package credential

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
)

// Keys of the values in a session's data that the list of sessions shows. Stores read them from the data that the
// session manager gives them.
const (
	// SessionPerson is a string, the id of the person. It is absent before the login.
	SessionPerson = "person"
	// SessionAgent is a string, the user agent of the browser.
	SessionAgent = "userAgent"
	// SessionCreated is an int64, the time of the login in seconds since 1970.
	SessionCreated = "created"
)

// MaxAgent bounds the stored user agent of a browser, in characters.
const MaxAgent = 200

// SessionID returns the id of the session whose token a browser holds. The session manager hashes the token in the same
// way before it passes it to the store.
func SessionID(token string) string {
	sum := sha256.Sum256([]byte(token))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Printable removes control characters from text that a caller provides, and cuts it to a number of characters.
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

type updateOnlyKey struct{}

// WithUpdateOnly returns a context in which the session manager's commit changes a session only if the store still has
// it: a request in progress must not restore a session that was ended.
func WithUpdateOnly(ctx context.Context) context.Context {
	return context.WithValue(ctx, updateOnlyKey{}, true)
}

// IsUpdateOnly reports whether a context was made by WithUpdateOnly.
func IsUpdateOnly(ctx context.Context) bool { return ctx.Value(updateOnlyKey{}) != nil }

package membership

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// Expiry reads when a service account's token ends, without checking who signed it. Of a token that is none of these, or
// that never ends, nothing is known.
func Expiry(token string) (time.Time, bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}, false
	}
	var claims struct {
		Ends int64 `json:"exp"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil || claims.Ends <= 0 {
		return time.Time{}, false
	}
	return time.Unix(claims.Ends, 0), true
}

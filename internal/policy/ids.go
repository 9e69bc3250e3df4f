package policy

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"strings"
)

const (
	// unitSlug and unitHash make at most 28 characters with the hyphen: "acp:" before them still fits the 32 characters
	// that a dataplane's log value has.
	unitSlug   = 11
	unitHash   = 16
	policySlug = 36
)

// UnitID is the short id of a resource's unit: readable at the front, and 80 bits of the name's hash, so that nobody finds
// two names that meet.
func UnitID(resource string) string {
	sum := sha256.Sum256([]byte(resource))
	hash := strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:unitHash]
	text := resource
	if n, err := ParseName(resource); err == nil {
		text = n.Service + "-" + n.ID
	}
	return slug(text, unitSlug) + "-" + hash
}

// PolicyNameFor is the name of the AccessControlPolicy that holds the portal's grants on a resource: a DNS label with 64
// bits of the name's hash.
func PolicyNameFor(resource string) string {
	sum := sha256.Sum256([]byte(resource))
	text := resource
	if n, err := ParseName(resource); err == nil {
		text = n.Service + "-" + n.Type + "-" + n.ID
	}
	return "portal-" + slug(text, policySlug) + "-" + hex.EncodeToString(sum[:8])
}

// slug makes a part of a DNS label: lower case, everything else a single hyphen, never empty.
func slug(s string, limit int) string {
	var b strings.Builder
	for _, r := range strings.ToLower(s) {
		switch {
		case b.Len() >= limit:
		case 'a' <= r && r <= 'z' || '0' <= r && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	if out := strings.TrimRight(b.String(), "-"); out != "" {
		return out
	}
	return "x"
}

package policy

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
)

const (
	// unitSlug and unitHash make at most 28 characters with the hyphen: "acp:" before them still fits the 32 characters
	// that a dataplane's log value has.
	unitSlug   = 11
	unitHash   = 16
	policySlug = 36
	// maxPolicyShards bounds what an annotation can make the portal read.
	maxPolicyShards = 256
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

// PolicyShard is the name of one of the AccessControlPolicies that hold the portal's grants on a resource when they are too many for
// one. The first shard, number 1, has the name of PolicyNameFor itself.
func PolicyShard(base string, number int) string {
	if number <= 1 {
		return base
	}
	return base + "." + strconv.Itoa(number)
}

// Shards is how many shards a first shard says that there are; nil: one.
func Shards(first *v1alpha1.AccessControlPolicy) int {
	if first == nil {
		return 1
	}
	n, err := strconv.Atoi(first.Annotations[v1alpha1.AnnotationPolicyShards])
	if err != nil || n < 1 || n > maxPolicyShards {
		return 1
	}
	return n
}

// SplitPolicyShard splits the name of a shard into the name of the first shard and the number. A name that PolicyShard does not make
// is a first shard.
func SplitPolicyShard(name string) (base string, number int) {
	base, digits, ok := strings.Cut(name, ".")
	if !ok {
		return name, 1
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 2 || PolicyShard(base, n) != name {
		return name, 1
	}
	return base, n
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

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
	// unitSlug and unitHash give at most 28 characters including the hyphen, so that "acp:" and the ID fit the 32
	// characters of a dataplane's log value.
	unitSlug   = 11
	unitHash   = 16
	policySlug = 36
	// maxPolicyShards bounds how many shards an annotation can make the portal read.
	maxPolicyShards = 256
)

// UnitID returns the short ID of a resource's unit: a readable prefix and 80 bits of the name's hash, so that nobody
// can construct two names with the same ID.
func UnitID(resource string) string {
	sum := sha256.Sum256([]byte(resource))
	hash := strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:unitHash]
	text := resource
	if n, err := ParseName(resource); err == nil {
		text = n.Service + "-" + n.ID
	}
	return slug(text, unitSlug) + "-" + hash
}

// PolicyNameFor returns the name of the AccessControlPolicy that holds the portal's grants on a resource: a DNS label
// with 64 bits of the name's hash.
func PolicyNameFor(resource string) string {
	sum := sha256.Sum256([]byte(resource))
	text := resource
	if n, err := ParseName(resource); err == nil {
		text = n.Service + "-" + n.Type + "-" + n.ID
	}
	return "portal-" + slug(text, policySlug) + "-" + hex.EncodeToString(sum[:8])
}

// StatementsPolicy is the name of the AccessControlPolicy that holds the portal's statements that are about no single pair of an
// application and a resource. PolicyNameFor returns no such name, because it ends with a hash.
const StatementsPolicy = "portal-statements"

// PolicyShard returns the name of one of the AccessControlPolicies that hold the portal's grants on a resource if they
// are too many for one. The first shard, number 1, has the name returned by PolicyNameFor.
func PolicyShard(base string, number int) string {
	if number <= 1 {
		return base
	}
	return base + "." + strconv.Itoa(number)
}

// ShardCount returns the number of shards that the annotation of the first shard declares; 1 for nil.
func ShardCount(first *v1alpha1.AccessControlPolicy) int {
	if first == nil {
		return 1
	}
	n, err := strconv.Atoi(first.Annotations[v1alpha1.AnnotationPolicyShards])
	if err != nil || n < 1 || n > maxPolicyShards {
		return 1
	}
	return n
}

// SplitPolicyShard splits the name of a shard into the name of the first shard and the number. A name that PolicyShard
// does not produce is treated as a first shard.
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

// slug converts text into a part of a DNS label: lower case, with every other sequence of characters replaced by one
// hyphen; never empty.
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

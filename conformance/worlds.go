package conformance

import (
	"time"

	"github.com/acp-io/acp/internal/enforcer/ciliumtest"
	"github.com/acp-io/acp/internal/policy"
)

// Here is the member whose engine decides. Cilium stores a part of its configuration in package variables, so there is
// only one per process.
const Here = ciliumtest.Here

// The random worlds, their translation and its mistakes are those of ciliumtest.
type (
	// Source is the origin of a connection.
	Source = ciliumtest.Source
	// Connection is a connection to a pod in Here.
	Connection = ciliumtest.Connection
	// Objects are the objects of a member.
	Objects = ciliumtest.Objects
	// Group is a CiliumCIDRGroup.
	Group = ciliumtest.Group
	// Translation converts a snapshot into the objects of Here.
	Translation = ciliumtest.Translation
	// Mutant is a translation with a plausible mistake, which the comparison must detect.
	Mutant = ciliumtest.Mutant

	l4 = ciliumtest.Port
)

// Protocols of connections, as in a Query.
const (
	ICMP   = ciliumtest.ICMP
	ICMPv6 = ciliumtest.ICMPv6
)

const (
	appHead  = ciliumtest.AppHead
	svcHead  = ciliumtest.SvcHead
	cidrHead = ciliumtest.CIDRHead

	appKey   = ciliumtest.AppKey
	svcKey   = ciliumtest.SvcKey
	redisKey = ciliumtest.RedisKey
	webKey   = ciliumtest.WebKey
	dnsKey   = ciliumtest.DNSKey
)

var (
	redis = ciliumtest.Redis
	sites = ciliumtest.Sites
	noon  = ciliumtest.Noon
	l4s   = ciliumtest.Ports
)

// generator adds foreign policies to the generator of worlds.
type generator struct{ ciliumtest.Generator }

func newGenerator(seed uint64) generator { return generator{ciliumtest.NewGenerator(seed)} }

func pick[T any](d generator, from ...T) T { return ciliumtest.Pick(d.Generator, from...) }

// Translate is the product's translation.
func Translate(s *policy.Snapshot, at time.Time) (Objects, error) { return ciliumtest.Translate(s, at) }

// Mutants returns translations with one mistake each.
func Mutants() []Mutant { return ciliumtest.Mutants() }

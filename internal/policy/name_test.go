package policy

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseName(t *testing.T) {
	cases := map[string]struct {
		reason string
		in     string
		want   Name
		err    bool
	}{
		"Exact": {reason: "an application", in: app888, want: Name{Org: "trip-com", Service: "iam", Type: "sa", ID: "app/888"}},
		"Prefix": {
			reason: "a wildcard at the end of the id",
			in:     appHead + "app/team-*",
			want:   Name{Org: "trip-com", Service: "iam", Type: "sa", ID: "app/team-", Wildcard: true},
		},
		"All": {
			reason: "the id may be the wildcard alone",
			in:     allRedis,
			want:   Name{Org: "trip-com", Service: "redis", Type: "clusters", Wildcard: true},
		},
		"Colons": {
			reason: "the id is everything after the fifth colon",
			in:     cidrHead + "2001:db8::/32",
			want:   Name{Org: "trip-com", Service: "net", Type: "cidr", ID: "2001:db8::/32"},
		},
		"Longest": {
			reason: "512 bytes are admitted",
			in:     redisHead + strings.Repeat("x", 512-len(redisHead)),
			want:   Name{Org: "trip-com", Service: "redis", Type: "clusters", ID: strings.Repeat("x", 512-len(redisHead))},
		},
		"TooLong":       {reason: "513 bytes are not", in: redisHead + strings.Repeat("x", 513-len(redisHead)), err: true},
		"Empty":         {reason: "nothing is no name", in: "", err: true},
		"OtherScheme":   {reason: "the scheme is fixed", in: "arn:rsc:trip-com:redis:clusters:x", err: true},
		"NoID":          {reason: "the id is missing", in: "trnv1:rsc:trip-com:redis:clusters", err: true},
		"EmptyID":       {reason: "the id is empty", in: redisHead, err: true},
		"UpperCase":     {reason: "org is a DNS label", in: "trnv1:rsc:Trip:redis:clusters:x", err: true},
		"Hyphen":        {reason: "a DNS label does not end in a hyphen", in: "trnv1:rsc:trip-:redis:clusters:x", err: true},
		"LongLabel":     {reason: "a DNS label has at most 63 characters", in: "trnv1:rsc:" + strings.Repeat("a", 64) + ":redis:clusters:x", err: true},
		"WildcardInMid": {reason: "a wildcard only at the end", in: redisHead + "a*b", err: true},
		"TwoWildcards":  {reason: "a single wildcard", in: redisHead + "a**", err: true},
		"WildcardType":  {reason: "no wildcard before the id", in: "trnv1:rsc:trip-com:redis:*:x", err: true},
		"Space":         {reason: "no spaces", in: redisHead + "a b", err: true},
		"Newline":       {reason: "no line breaks, also at the end", in: redisHead + "a\n", err: true},
		"Control":       {reason: "no control characters", in: redisHead + "a\x00", err: true},
		"NotUTF8":       {reason: "valid text only", in: redisHead + "a\xff", err: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ParseName(tc.in)
			if (err != nil) != tc.err || err != nil && !errors.Is(err, ErrInvalidName) {
				t.Fatalf("%s: ParseName(%q) error = %v, want error %v", tc.reason, tc.in, err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: ParseName(%q) -want +got:\n%s", tc.reason, tc.in, diff)
			}
		})
	}
}

func TestParsePrefix(t *testing.T) {
	cases := map[string]struct {
		reason, id, want string
	}{
		"IPv4":     {reason: "an IPv4 range", id: "10.5.0.0/24", want: "10.5.0.0/24"},
		"IPv6":     {reason: "an IPv6 range", id: "2001:db8::/32", want: "2001:db8::/32"},
		"All":      {reason: "everything outside the fleet", id: "0.0.0.0/0", want: "0.0.0.0/0"},
		"HostBits": {reason: "a range that means more than it says", id: "10.5.0.7/24"},
		"Address":  {reason: "an address has no length", id: "10.5.0.7"},
		"Mapped":   {reason: "IPv4 written as IPv6", id: "::ffff:10.5.0.0/120"},
		"Wildcard": {reason: "ranges have no wildcard", id: "10.*"},
		"Text":     {reason: "not an address", id: "office"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n, err := ParseName(cidrHead + tc.id)
			if err != nil || !n.IsPrefix() {
				t.Fatalf("%s: ParseName = %v, %v, want an address range", tc.reason, n, err)
			}
			p, err := n.ParsePrefix()
			if (err != nil) != (tc.want == "") {
				t.Fatalf("%s: ParsePrefix(%q) = %v, %v, want %q", tc.reason, tc.id, p, err, tc.want)
			}
			if err == nil && p.String() != tc.want {
				t.Errorf("%s: ParsePrefix(%q) = %v, want %s", tc.reason, tc.id, p, tc.want)
			}
		})
	}
}

func TestCovers(t *testing.T) {
	cases := map[string]struct {
		reason           string
		a, b             string
		covers, overlaps bool
	}{
		"Same":       {reason: "a name covers itself", a: bobs, b: bobs, covers: true, overlaps: true},
		"Other":      {reason: "two exact names", a: bobs, b: orders},
		"Wildcard":   {reason: "a wildcard covers what begins like it", a: allRedis, b: bobs, covers: true, overlaps: true},
		"Exact":      {reason: "an exact name covers no wildcard", a: bobs, b: allRedis, overlaps: true},
		"Narrower":   {reason: "a wildcard covers a narrower one", a: redisHead + "a*", b: redisHead + "ab*", covers: true, overlaps: true},
		"Wider":      {reason: "and not a wider one, though they overlap", a: redisHead + "ab*", b: redisHead + "a*", overlaps: true},
		"Beside":     {reason: "two wildcards without common names", a: redisHead + "ab*", b: redisHead + "ac*"},
		"OtherType":  {reason: "a wildcard stays in its type", a: "trnv1:rsc:trip-com:redis:cluster:*", b: bobs},
		"CaseCounts": {reason: "names are case-sensitive", a: redisHead + "B*", b: bobs},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, errA := ParseName(tc.a)
			b, errB := ParseName(tc.b)
			if errA != nil || errB != nil {
				t.Fatal(errA, errB)
			}
			if got := a.Covers(b); got != tc.covers {
				t.Errorf("%s: %s covers %s = %v, want %v", tc.reason, a, b, got, tc.covers)
			}
			if a.Overlaps(b) != tc.overlaps || b.Overlaps(a) != tc.overlaps {
				t.Errorf("%s: %s overlaps %s = %v and %v, want %v", tc.reason, a, b, a.Overlaps(b), b.Overlaps(a), tc.overlaps)
			}
		})
	}
}

func TestValidLabelValue(t *testing.T) {
	for s, want := range map[string]bool{
		"888": true, "a.B_c-9": true, "a": true, strings.Repeat("a", 63): true,
		"": false, strings.Repeat("a", 64): false, "-a": false, "a-": false, "a/b": false, "ä": false, "a b": false, ".a": false,
	} {
		if got := ValidLabelValue(s); got != want {
			t.Errorf("ValidLabelValue(%q) = %v, want %v", s, got, want)
		}
	}
}

func TestNamesOfObjects(t *testing.T) {
	for _, r := range []string{bobs, redisHead + strings.Repeat("Long_Name.", 20), redisHead + "///", redisHead + "日本", "garbage", ""} {
		id, name := UnitID(r), PolicyNameFor(r)
		if !validDNSLabel(id) || len("acp:"+id) > 32 {
			t.Errorf("UnitID(%q) = %q, want a DNS label that fits a log value of 32 characters with its prefix", r, id)
		}
		if hash := id[strings.LastIndexByte(id, '-')+1:]; len(hash) != 16 {
			t.Errorf("UnitID(%q) = %q, want it to end in 16 characters of a hash, 5 bits each", r, id)
		}
		if hash := name[strings.LastIndexByte(name, '-')+1:]; len(hash) != 16 {
			t.Errorf("PolicyNameFor(%q) = %q, want it to end in 16 characters of a hash, 4 bits each", r, name)
		}
		if !validDNSLabel(name) || !strings.HasPrefix(name, "portal-") {
			t.Errorf("PolicyNameFor(%q) = %q, want a DNS label that begins with portal-", r, name)
		}
	}
	if got, want := UnitID(bobs), "redis-bobs-"; !strings.HasPrefix(got, want) {
		t.Errorf("UnitID(%q) = %q, want it to begin with %q", bobs, got, want)
	}
	if got, want := PolicyNameFor(bobs), "portal-redis-clusters-bobs-cluster-"; !strings.HasPrefix(got, want) {
		t.Errorf("PolicyNameFor(%q) = %q, want it to begin with %q", bobs, got, want)
	}
	if UnitID(bobs) == UnitID(redisHead+"bobs_cluster") {
		t.Error("names that differ only in what a slug drops must have different ids")
	}
}

func FuzzParseName(f *testing.F) {
	for _, s := range []string{app888, allRedis, cidrHead + "10.5.0.0/24", "*", "", "trnv1:rsc::::", redisHead + "a*b"} {
		f.Add(s, bobs)
	}
	f.Fuzz(func(t *testing.T, s, other string) {
		n, err := ParseName(s)
		if err != nil {
			if !errors.Is(err, ErrInvalidName) {
				t.Fatalf("ParseName(%q) error %v does not wrap ErrInvalidName", s, err)
			}
			return
		}
		if n.String() != s {
			t.Fatalf("ParseName(%q).String() = %q", s, n.String())
		}
		if !n.Covers(n) {
			t.Fatalf("%q does not cover itself", s)
		}
		if got := headOf(n.stem()); !strings.HasPrefix(n.stem(), got) || strings.Count(got, ":") != 5 {
			t.Fatalf("headOf(%q) = %q", n.stem(), got)
		}
		if o, err := ParseName(other); err == nil && !o.Wildcard {
			stem, wild := strings.CutSuffix(s, "*")
			if want := s == other || wild && strings.HasPrefix(other, stem); n.Covers(o) != want {
				t.Fatalf("%q covers %q = %v", s, other, n.Covers(o))
			}
		}
		if n.IsPrefix() {
			if p, err := n.ParsePrefix(); err == nil && p != p.Masked() {
				t.Fatalf("ParsePrefix(%q) = %v with host bits", s, p)
			}
		}
	})
}

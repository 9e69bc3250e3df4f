package cli

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	kjson "sigs.k8s.io/json"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/jsonerror"
	"github.com/acp-io/acp/internal/policy"
)

// query is one line of --queries.
type query struct {
	// Subjects are the names of a pod as a client; empty for nodes and for sources outside the fleet.
	Subjects []string `json:"subjects,omitempty"`
	// Resources are the names of a pod as a server.
	Resources []string `json:"resources,omitempty"`
	// SourceIP is the address of a source outside the fleet, which has no subjects of its own.
	SourceIP string `json:"sourceIP,omitempty"`
	// Cluster is the server's member; empty for the base modes.
	Cluster string `json:"cluster,omitempty"`
	Port    uint16 `json:"port,omitempty"`
	// Protocol is TCP if it is empty.
	Protocol v1alpha1.Protocol `json:"protocol,omitempty"`
	Method   string            `json:"method,omitempty"`
	Path     string            `json:"path,omitempty"`
	// At is an instant in RFC 3339; empty means that of the command.
	At string `json:"at,omitempty"`
	// Expect is the expected decision; empty means any.
	Expect policy.Verdict `json:"expect,omitempty"`
}

const protocolICMP v1alpha1.Protocol = "ICMP"

var (
	words     = []policy.Verdict{policy.Allowed, policy.Denied, policy.DefaultDenied, policy.Audited, policy.Unmanaged}
	protocols = []v1alpha1.Protocol{v1alpha1.ProtocolTCP, v1alpha1.ProtocolUDP, v1alpha1.ProtocolSCTP, protocolICMP}
)

// decodeQuery parses one line. An unknown field is an error, because a misspelt one would change the query; so are a
// duplicate field and a name that no pod can have.
func decodeQuery(line []byte, at time.Time) (policy.Query, policy.Verdict, error) {
	var in query
	problems, err := kjson.UnmarshalStrict(line, &in)
	if err = errors.Join(append(problems, err)...); err != nil {
		return policy.Query{}, "", errors.New("not a query: " + jsonerror.Describe(err))
	}
	return in.question(at)
}

func (in *query) question(at time.Time) (policy.Query, policy.Verdict, error) {
	q := policy.Query{Subjects: in.Subjects, Resources: in.Resources, Cluster: in.Cluster, Port: in.Port,
		Protocol: in.Protocol, Method: in.Method, Path: in.Path, At: at}
	fail := func(format string, args ...any) (policy.Query, policy.Verdict, error) {
		return policy.Query{}, "", fmt.Errorf(format, args...)
	}
	for _, name := range slices.Concat(in.Subjects, in.Resources) {
		n, err := policy.ParseName(name)
		switch {
		case err != nil:
			return fail("%w", err)
		case n.Wildcard || n.IsPrefix():
			return fail("%q stands for several: a connection is between exact names, and addresses go to sourceIP", name)
		}
	}
	if in.SourceIP != "" {
		a, err := netip.ParseAddr(in.SourceIP)
		if err != nil {
			return fail("sourceIP %q is not an address", in.SourceIP)
		}
		if len(in.Subjects) > 0 {
			return fail("sourceIP is for sources outside the fleet, subjects are those of pods: give one of them")
		}
		q.Source = a
	}
	if q.Protocol == "" {
		q.Protocol = v1alpha1.ProtocolTCP
	}
	if !slices.Contains(protocols, q.Protocol) {
		return fail("protocol %q is none of %v", in.Protocol, protocols)
	}
	if (q.Port == 0) != (q.Protocol == protocolICMP) {
		return fail("a port from 1 to 65535 is needed, and ICMP has none")
	}
	if in.At != "" {
		t, err := time.Parse(time.RFC3339, in.At)
		if err != nil {
			return fail("at %q is not an instant such as 2026-01-31T12:00:00Z", in.At)
		}
		q.At = t
	}
	if in.Expect != "" && !slices.Contains(words, in.Expect) {
		return fail("expect %q is none of %v", in.Expect, words)
	}
	return q, in.Expect, nil
}

// queryOf returns the line of a query, so that it can be repeated.
func queryOf(q *policy.Query) *query {
	out := &query{Subjects: q.Subjects, Resources: q.Resources, Cluster: q.Cluster, Port: q.Port, Protocol: q.Protocol,
		Method: q.Method, Path: q.Path, At: q.At.UTC().Format(time.RFC3339)}
	if q.Source.IsValid() {
		out.SourceIP = q.Source.String()
	}
	return out
}

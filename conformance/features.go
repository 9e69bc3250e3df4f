package conformance

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// Feature is a property of a decision: of its source, its destination, or the statements about it.
type Feature string

// Features of sources. A decision has one of them.
const (
	FromPod       Feature = "from pod"
	FromOther     Feature = "from pod of another cluster"
	FromTwoNames  Feature = "from pod with two names"
	FromEmpty     Feature = "from pod with empty labels"
	FromEndpoint  Feature = "from endpoint without namespace"
	FromHost      Feature = "from own node"
	FromReserved  Feature = "from node or other identity"
	FromWorld     Feature = "from world"
	FromAddress   Feature = "from address"
	FromOwned     Feature = "from external workload"
	FromContested Feature = "from contested address"
)

// Features of ports. A decision has one of them.
const (
	OnTCP  Feature = "on TCP"
	OnUDP  Feature = "on UDP"
	OnSCTP Feature = "on SCTP"
	OnICMP Feature = "on ICMP"
)

// Features of destinations and of statements about them. A decision may have any of them.
const (
	Observe        Feature = "Observe"
	Audit          Feature = "Audit"
	Enforce        Feature = "Enforce"
	ClusterMode    Feature = "cluster mode"
	TemporaryAudit Feature = "temporary audit"
	OverAudit      Feature = "temporary audit over"
	TwoForOneName  Feature = "two protected resources"
	SeveralClasses Feature = "several classes"
	OtherPorts     Feature = "other ports"
	Allow          Feature = "allow"
	Deny           Feature = "deny"
	Wildcard       Feature = "wildcard resource"
	Prefix         Feature = "prefix resource"
	WholeClass     Feature = "whole class"
	SubjectPrefix  Feature = "subject prefix"
	Anyone         Feature = "anyone"
	CIDR4          Feature = "IPv4 range"
	CIDR6          Feature = "IPv6 range"
	HTTP           Feature = "requests"
	ManyPorts      Feature = "more ports than a list holds"
	Expired        Feature = "expired"
	NotYet         Feature = "not yet"
	Bounded        Feature = "in force for a time"
	Refused        Feature = "refused"
)

var (
	sourceFeatures = []Feature{
		FromPod,
		FromOther,
		FromTwoNames,
		FromEmpty,
		FromEndpoint,
		FromHost,
		FromReserved,
		FromWorld,
		FromAddress,
		FromOwned,
		FromContested,
	}
	portFeatures = []Feature{OnTCP, OnUDP, OnSCTP, OnICMP}
	freeFeatures = []Feature{Observe, Audit, Enforce, ClusterMode, TemporaryAudit, OverAudit, TwoForOneName, SeveralClasses, OtherPorts,
		Allow, Deny, Wildcard, Prefix, WholeClass, SubjectPrefix, Anyone, CIDR4, CIDR6, HTTP, ManyPorts, Expired, NotYet, Bounded, Refused}
)

func sourceFeature(s *policy.Snapshot, in *policy.Input, source Source) Feature {
	switch {
	case source.Reserved == "host":
		return FromHost
	case strings.HasPrefix(source.Reserved, "world"):
		return FromWorld
	case source.Reserved != "":
		return FromReserved
	case source.Address != "":
		addr := netip.MustParseAddr(source.Address)
		if _, ok := s.SubjectOfAddress(addr); ok {
			return FromOwned
		}
		for _, w := range in.Workloads {
			for _, text := range w.Spec.Addresses {
				if p, err := netip.ParsePrefix(text); err == nil && p.Contains(addr) || text == source.Address {
					return FromContested // somebody's, and nobody's alone
				}
			}
		}
		return FromAddress
	case source.NoNamespace:
		return FromEndpoint
	}
	names := 0
	for _, key := range []string{appKey, svcKey} {
		value, ok := source.Labels[key]
		if ok && value == "" {
			return FromEmpty
		}
		if ok {
			names++
		}
	}
	switch {
	case names > 1:
		return FromTwoNames
	case source.Cluster != Here:
		return FromOther
	}
	return FromPod
}

func portFeature(p v1alpha1.Protocol) Feature {
	switch p {
	case v1alpha1.ProtocolTCP:
		return OnTCP
	case v1alpha1.ProtocolUDP:
		return OnUDP
	case v1alpha1.ProtocolSCTP:
		return OnSCTP
	}
	return OnICMP
}

// destinationFeatures returns the features of a pod and of the statements about its resources. A statement that is not
// in force, or is refused, has no other feature.
func destinationFeatures(s *policy.Snapshot, in *policy.Input, labels map[string]string) []Feature {
	out := map[Feature]bool{}
	resources := s.ResourcesOf(labels)
	out[SeveralClasses] = len(resources) > 1
	for _, r := range resources {
		out[Feature(s.EffectiveMode(r, Here, noon))] = true
		if class, ok := s.ResourceClassOf(r); ok {
			out[OtherPorts] = out[OtherPorts] || class.Spec.OtherPorts == v1alpha1.OtherPortsAllow
		}
		protectionFeatures(out, in, r)
	}
	refused := map[policy.Ref]bool{}
	for _, r := range s.Refusals() {
		refused[r.Ref] = true
	}
	for _, p := range in.Policies {
		for i := range p.Spec.Statements {
			st := &p.Spec.Statements[i]
			for _, r := range st.Resources {
				if slices.ContainsFunc(resources, func(name string) bool { return covers(string(r), name) }) {
					statementFeatures(out, st, string(r), refused[policy.Ref{Policy: p.Name, SID: st.SID}])
				}
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(freeFeatures), func(f Feature) bool { return !out[f] })
}

func covers(written, name string) bool {
	stem, wild := strings.CutSuffix(written, "*")
	return written == name || wild && strings.HasPrefix(name, stem)
}

func protectionFeatures(out map[Feature]bool, in *policy.Input, resource string) {
	objects := 0
	for _, o := range in.Resources {
		if string(o.Spec.Resource) != resource {
			continue
		}
		objects++
		mode := o.Spec.Mode
		for _, m := range o.Spec.ClusterModes {
			if m.Cluster == Here && m.Mode != mode {
				out[ClusterMode], mode = true, m.Mode
			}
		}
		if t := o.Spec.TemporaryAudit; t != nil && mode == v1alpha1.ModeEnforce {
			if noon.Before(t.Until.Time) {
				out[TemporaryAudit] = true
			} else {
				out[OverAudit] = true
			}
		}
	}
	out[TwoForOneName] = out[TwoForOneName] || objects > 1
}

func statementFeatures(out map[Feature]bool, st *v1alpha1.Statement, resource string, refused bool) {
	switch {
	case st.NotAfter != nil && !noon.Before(st.NotAfter.Time):
		out[Expired] = true
		return
	case st.NotBefore != nil && noon.Before(st.NotBefore.Time):
		out[NotYet] = true
		return
	case refused:
		out[Refused] = true
		return
	}
	out[Bounded] = out[Bounded] || st.NotAfter != nil || st.NotBefore != nil
	out[Feature(strings.ToLower(string(st.Effect)))] = true
	switch {
	case strings.HasSuffix(resource, ":*"):
		out[Wildcard] = true
	case strings.HasSuffix(resource, "*"):
		out[Prefix] = true
	}
	for _, subject := range st.Subjects {
		text := string(subject)
		switch {
		case text == "*":
			out[Anyone] = true
		case text == appHead+"*" || text == svcHead+"*":
			out[WholeClass] = true
		case strings.HasSuffix(text, "*"):
			out[SubjectPrefix] = true
		case strings.HasPrefix(text, cidrHead) && strings.Count(text, ":") > 5:
			out[CIDR6] = true
		case strings.HasPrefix(text, cidrHead):
			out[CIDR4] = true
		}
	}
	for _, a := range st.Actions {
		out[HTTP] = out[HTTP] || a == "web:read" || a == "web:orders" || a == "web:*"
		out[ManyPorts] = out[ManyPorts] || a == "dns:*"
	}
}

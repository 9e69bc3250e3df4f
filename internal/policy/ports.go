package policy

import (
	"cmp"
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

const maxPort = 65535

// normalPort sets the default protocol, removes a redundant end, and rejects an invalid port.
func normalPort(p v1alpha1.Port) (v1alpha1.Port, error) {
	if p.Protocol == "" {
		p.Protocol = v1alpha1.ProtocolTCP
	}
	if !slices.Contains(protocols, p.Protocol) {
		return p, message.PortProtocol(message.Quoted(string(p.Protocol))).Err()
	}
	end := lastPort(p)
	if p.Port < 1 || end < p.Port || end > maxPort {
		return p, message.PortRange(int(p.Port), int(end)).Err()
	}
	return portRange(p.Protocol, p.Port, end), nil
}

var protocols = []v1alpha1.Protocol{v1alpha1.ProtocolSCTP, v1alpha1.ProtocolTCP, v1alpha1.ProtocolUDP}

// protocolNumber returns a number for a fast comparison of protocols; 0 means that the API does not have the protocol.
func protocolNumber(p v1alpha1.Protocol) uint8 {
	switch p {
	case v1alpha1.ProtocolTCP:
		return 1
	case v1alpha1.ProtocolUDP:
		return 2
	case v1alpha1.ProtocolSCTP:
		return 3
	default:
		return 0
	}
}

func portRange(proto v1alpha1.Protocol, first, last int32) v1alpha1.Port {
	p := v1alpha1.Port{Port: first, Protocol: proto}
	if last != first {
		p.EndPort = &last
	}
	return p
}

func lastPort(p v1alpha1.Port) int32 {
	if p.EndPort == nil {
		return p.Port
	}
	return *p.EndPort
}

func portsContain(ports []v1alpha1.Port, proto v1alpha1.Protocol, port uint16) bool {
	for i := range ports {
		if p := &ports[i]; p.Protocol == proto && p.Port <= int32(port) && int32(port) <= lastPort(*p) {
			return true
		}
	}
	return false
}

// PortsOverlap reports whether a port is in both lists.
func PortsOverlap(a, b []v1alpha1.Port) bool { return portsOverlap(a, b) }

func portsOverlap(a, b []v1alpha1.Port) bool {
	for _, p := range a {
		for _, q := range b {
			if p.Protocol == q.Protocol && p.Port <= lastPort(q) && q.Port <= lastPort(p) {
				return true
			}
		}
	}
	return false
}

// portsCover reports whether every port of b is in one of a, which is sorted and joined.
func portsCover(a, b []v1alpha1.Port) bool {
	for _, q := range b {
		if !slices.ContainsFunc(a, func(p v1alpha1.Port) bool {
			return p.Protocol == q.Protocol && p.Port <= q.Port && lastPort(q) <= lastPort(p)
		}) {
			return false
		}
	}
	return true
}

// maskedRanges returns the number of aligned power-of-two ranges that make up the ports: a dataplane that matches ports
// by mask needs an entry for each.
func maskedRanges(ports []v1alpha1.Port) int {
	n := 0
	for _, p := range ports {
		for first, end := int(p.Port), int(lastPort(p))+1; first < end; n++ {
			size := first & -first
			for size > end-first {
				size /= 2
			}
			first += size
		}
	}
	return n
}

func comparePorts(a, b v1alpha1.Port) int {
	return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Port, b.Port), cmp.Compare(lastPort(a), lastPort(b)))
}

// JoinPorts sorts ports and joins those that overlap.
func JoinPorts(ports []v1alpha1.Port) []v1alpha1.Port { return sortPorts(ports) }

// sortPorts orders normalized ports and joins those that overlap, so that equal sets are always written the same way.
func sortPorts(ports []v1alpha1.Port) []v1alpha1.Port {
	ports = slices.SortedFunc(slices.Values(ports), comparePorts)
	var out []v1alpha1.Port
	for _, p := range ports {
		if n := len(out); n > 0 && out[n-1].Protocol == p.Protocol && p.Port <= lastPort(out[n-1]) {
			out[n-1] = portRange(p.Protocol, out[n-1].Port, max(lastPort(out[n-1]), lastPort(p)))
			continue
		}
		out = append(out, p)
	}
	return out
}

// otherPorts returns all ports of all protocols except the given ones.
func otherPorts(ports []v1alpha1.Port) []v1alpha1.Port {
	taken := sortPorts(ports)
	var out []v1alpha1.Port
	for _, proto := range protocols {
		next := int32(1)
		for _, p := range taken {
			if p.Protocol != proto {
				continue
			}
			if next < p.Port {
				out = append(out, portRange(proto, next, p.Port-1))
			}
			next = lastPort(p) + 1
		}
		if next <= maxPort {
			out = append(out, portRange(proto, next, maxPort))
		}
	}
	return out
}

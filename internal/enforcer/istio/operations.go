package istio

import (
	"slices"
	"strconv"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// maxOpenPorts bounds the list of ports that stay closed under otherPorts: Allow.
const maxOpenPorts = 1024

// operationsOf returns the entries of a rule's `to`: one for whole connections, and one for each HTTP match. Every
// entry has ports; without them, a deny of requests would apply to every connection that is not HTTP.
func operationsOf(st *policy.UnitStatement, p profile) ([]any, *flaw) {
	var whole []string
	var requests []any
	for _, a := range st.Actions {
		ports, flaw := portTexts(a)
		if flaw != nil {
			return nil, flaw
		}
		if len(a.HTTP) == 0 {
			whole = append(whole, ports...)
			continue
		}
		if p.ambient && !p.waypoint.carriesOnly(ports) {
			return nil, unsupported(message.IstioAmbientRequests(a.Name))
		}
		for _, h := range a.HTTP {
			fields := map[string]any{"ports": list(ports)}
			for field, expression := range map[string]string{"methods": h.Method, "paths": h.Path} {
				if expression == "" {
					continue
				}
				values, err := matchesOf(expression)
				if err != nil {
					return nil, unsupported(message.IstioExpression(a.Name, message.Of(err)))
				}
				fields[field] = list(values)
			}
			requests = append(requests, operation(fields))
		}
	}
	var out []any
	if len(whole) > 0 {
		slices.Sort(whole)
		out = append(out, operation(map[string]any{"ports": list(slices.Compact(whole))}))
	}
	return append(out, distinct(requests)...), nil
}

func operation(fields map[string]any) any { return map[string]any{"operation": fields} }

// portTexts returns an action's ports. A port that Istio does not enforce makes the action unsupported.
func portTexts(a policy.UnitAction) ([]string, *flaw) {
	var out []string
	for _, p := range a.Ports {
		switch {
		case p.Protocol != v1alpha1.ProtocolTCP:
			return nil, unsupported(message.IstioProtocol(a.Name, string(p.Protocol), int(p.Port)))
		case p.EndPort != nil:
			return nil, unsupported(message.IstioPortRange(a.Name, int(p.Port), int(*p.EndPort)))
		}
		out = append(out, strconv.Itoa(int(p.Port)))
	}
	slices.Sort(out)
	return out, nil
}

// otherPortsRule allows every source on the open TCP ports, written as all ports except the closed ones.
func otherPortsRule(open []v1alpha1.Port) (any, *flaw) {
	var closed []string
	next := int32(1)
	for _, p := range open {
		if p.Protocol != v1alpha1.ProtocolTCP {
			continue
		}
		for ; next < p.Port; next++ {
			closed = append(closed, strconv.Itoa(int(next)))
		}
		next = lastPort(p) + 1
	}
	if next == 1 {
		return nil, unsupported(message.IstioEveryPort())
	}
	for ; next <= 65535 && len(closed) <= maxOpenPorts; next++ {
		closed = append(closed, strconv.Itoa(int(next)))
	}
	switch {
	case len(closed) > maxOpenPorts:
		return nil, unsupported(message.IstioTooManyPorts(maxOpenPorts))
	case len(closed) == 0:
		return map[string]any{}, nil
	}
	return map[string]any{"to": []any{operation(map[string]any{"notPorts": list(closed)})}}, nil
}

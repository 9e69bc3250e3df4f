package views

import (
	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/openapi"
)

// NodesOfResource returns on how many nodes the resource's newest revision is enforced; nil if no member is targeted, or if the adapter
// has not handled the last change of the resource yet.
func NodesOfResource(who approval.Actor, p *v1alpha1.ProtectedResource) *openapi.NodeSummary {
	if p == nil || p.Status.ObservedGeneration < p.Generation {
		return nil
	}
	return nodeSummary(who, p.Status.Nodes, p.Status.Counts().Targeted)
}

// NodesOfUnit returns on how many nodes the revision of a policy's unit is enforced. The counts are in the status of the resource; they
// are not known (nil) while that is about another revision. Units of wildcards have no such status.
func (d *Data) NodesOfUnit(who approval.Actor, u *v1alpha1.PolicyUnit) *openapi.NodeSummary {
	p := d.Host.Protection(string(u.Resource))
	switch {
	case p == nil:
		return nodeSummary(who, nil, u.Counts().Targeted)
	case p.Status.Revision != u.Revision:
		return nil
	}
	return nodeSummary(who, p.Status.Nodes, u.Counts().Targeted)
}

// nodeSummary returns on how many nodes a revision is enforced. n is the summary of the resource's status, nil if no targeted member
// reports on its nodes; targeted is the number of members that must have the revision. Without such members there is nothing to show,
// and the result is nil. Only the security team and auditors get the names of nodes, as in flows.
func nodeSummary(who approval.Actor, n *v1alpha1.NodeSummary, targeted int32) *openapi.NodeSummary {
	if targeted == 0 {
		return nil
	}
	out := &openapi.NodeSummary{Unreported: int(targeted), Clusters: []openapi.MemberNodes{}, Messages: []openapi.Message{}}
	if n == nil || n.Members == 0 {
		out.Messages = append(out.Messages, message.NodesAccepted())
		return out
	}
	out.Members, out.Unreported = int(n.Members), int(max(targeted-n.Members, 0))
	out.Total, out.Realized, out.Lagging, out.Unknown = int(n.Total), int(n.Realized), int(n.Lagging), int(n.Unknown)
	rest := out.Total - out.Realized
	for _, one := range n.Clusters {
		if !who.Security && !who.Auditor {
			one.LaggingNodes, one.UnknownNodes = nil, nil
		}
		c := memberNodes(&one)
		rest -= c.Total - c.Realized
		out.Clusters = append(out.Clusters, c)
	}
	out.Messages = append(out.Messages, message.NodesRealized(out.Realized, out.Total))
	if rest > 0 {
		out.Messages = append(out.Messages, message.NodesMore(rest))
	}
	if out.Unreported > 0 {
		out.Messages = append(out.Messages, message.NodesUnreported(out.Unreported))
	}
	return out
}

// memberNodes returns the view of the nodes of one member.
func memberNodes(n *v1alpha1.MemberNodes) openapi.MemberNodes {
	var problems []message.Message
	if n.Lagging > 0 {
		problems = append(problems, message.NodesLagging(nodeNames(n.LaggingNodes, n.Lagging)))
	}
	if n.Unknown > 0 {
		problems = append(problems, message.NodesUnknown(nodeNames(n.UnknownNodes, n.Unknown)))
	}
	return openapi.MemberNodes{
		Cluster: string(n.Name), Total: int(n.Total), Realized: int(n.Realized), Lagging: int(n.Lagging), Unknown: int(n.Unknown),
		LaggingNodes: listed(n.LaggingNodes), UnknownNodes: listed(n.UnknownNodes),
		Message: message.NodesMember(string(n.Name), int(n.Realized), int(n.Total), problems),
	}
}

// nodeNames returns the names of the listed nodes and how many others there are, or without names only how many there are.
func nodeNames(names []string, count int32) message.Message {
	if len(names) == 0 {
		return message.NodesCount(int(count))
	}
	if more := int(count) - len(names); more > 0 {
		return message.NamesListAndMore(names, more)
	}
	return message.NamesList(names)
}

// NodeReporting returns the view of what is known about the nodes of a member; nil if there are no reports.
func NodeReporting(n *v1alpha1.NodeReporting) *openapi.NodeReporting {
	if n == nil {
		return nil
	}
	return &openapi.NodeReporting{
		Total: int(n.Total), Reporting: int(n.Reporting), Unhealthy: int(n.Unhealthy), Silent: int(n.Silent),
		UnhealthyNodes: listed(n.UnhealthyNodes), SilentNodes: listed(n.SilentNodes),
	}
}

// listed returns the names as a list that is never nil, because the API's lists are never null.
func listed(names []string) []string { return append([]string{}, names...) }

package cli

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

const (
	// example stands for what a wildcard covers and nobody names.
	example = "acp-example"
	// anyoneElse is a source that no statement names; otherPorts are the ports of no action.
	anyoneElse = "(anyone else)"
	otherPorts = "(other ports)"
)

// connection is one whose decision changes. A wildcard or an address range stands for what it covers and nothing else
// names.
type connection struct {
	Subject  string `json:"subject"`
	Resource string `json:"resource"`
	Action   string `json:"action"`
	// Cluster is set where a member differs from the rest.
	Cluster string `json:"cluster,omitempty"`
	// Change is possible, impossible or judged-otherwise.
	Change string      `json:"change"`
	Before policy.Word `json:"before"`
	After  policy.Word `json:"after"`
	// Statements decide afterwards, or decided before when none does.
	Statements []policy.Ref `json:"statements,omitempty"`
	// Example is the connection that was asked about.
	Example query `json:"example"`
}

const (
	changePossible   = "possible"
	changeImpossible = "impossible"
	changeJudged     = "judged-otherwise"
)

// origin is a source that stands for what is written in a statement.
type origin struct {
	label   string
	subject string
	address netip.Addr
}

// comparison asks two snapshots the same questions.
type comparison struct {
	old, now *policy.Snapshot
	at       time.Time
	out      []connection
}

// compareConnections finds the connections of which the two inputs think otherwise. It asks, for every resource that
// either names, about every source that a statement on it names, and about anyone else.
func compareConnections(before, after policy.Input, at time.Time) []connection {
	c := comparison{old: policy.NewSnapshot(before), now: policy.NewSnapshot(after), at: at, out: []connection{}}
	moved := movedAddresses(before.Workloads, after.Workloads)
	clusters := map[string]map[string]bool{}
	for _, in := range []policy.Input{before, after} {
		for _, r := range in.Resources {
			name := string(r.Spec.Resource)
			if clusters[name] == nil {
				clusters[name] = map[string]bool{}
			}
			for _, m := range r.Spec.ClusterModes {
				clusters[name][string(m.Cluster)] = true
			}
		}
	}
	for _, resource := range resourcesOf(before, after) {
		asked := strings.Replace(resource, "*", example, 1)
		clients := c.clients(asked, moved)
		for _, port := range c.ports(asked) {
			for _, from := range clients {
				c.ask(from, resource, asked, port, slices.Sorted(maps.Keys(clusters[resource])))
			}
		}
	}
	return c.out
}

func resourcesOf(inputs ...policy.Input) []string {
	names := map[string]bool{}
	for _, in := range inputs {
		for _, p := range in.Policies {
			for _, st := range p.Spec.Statements {
				for _, r := range st.Resources {
					names[string(r)] = true
				}
			}
		}
		for _, r := range in.Resources {
			names[string(r.Spec.Resource)] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// clients are the sources that statements on the resource name, those whose address moved, and anyone else.
func (c *comparison) clients(resource string, moved []netip.Addr) []origin {
	names := map[string]bool{}
	for _, s := range []*policy.Snapshot{c.old, c.now} {
		for _, g := range s.WhoCanReach(resource, c.at) {
			names[g.Subject] = true
		}
	}
	var out []origin
	for _, name := range slices.Sorted(maps.Keys(names)) {
		n, err := policy.ParseName(name)
		switch {
		case err != nil: // "*" is anyone else
		case n.IsPrefix():
			if p, err := n.ParsePrefix(); err == nil {
				out = append(out, origin{label: name, address: p.Addr()})
			}
		default:
			out = append(out, origin{label: name, subject: strings.Replace(name, "*", example, 1)})
		}
	}
	for _, a := range moved {
		out = append(out, origin{label: a.String(), address: a})
	}
	return append(out, origin{label: anyoneElse})
}

// movedAddresses are those that act as another subject afterwards.
func movedAddresses(before, after []*v1alpha1.ExternalWorkload) []netip.Addr {
	subjects := func(list []*v1alpha1.ExternalWorkload) map[string]string {
		out := map[string]string{}
		for _, w := range list {
			for _, a := range w.Spec.Addresses {
				out[a] += " " + string(w.Spec.Subject)
			}
		}
		return out
	}
	old, now := subjects(before), subjects(after)
	moved := map[netip.Addr]bool{}
	for _, pair := range [][2]map[string]string{{old, now}, {now, old}} {
		for text, subject := range pair[0] {
			if pair[1][text] == subject {
				continue
			}
			if p, err := netip.ParsePrefix(text); err == nil {
				moved[p.Masked().Addr()] = true
			} else if a, err := netip.ParseAddr(text); err == nil {
				moved[a] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(moved), netip.Addr.Compare)
}

// port is one to ask about, as part of an action.
type port struct {
	action   string
	protocol v1alpha1.Protocol
	number   uint16
}

// ports are those at which an action begins or ends before or afterwards, and one of no action.
func (c *comparison) ports(resource string) []port {
	asked := map[port]bool{}
	var all []port
	taken := map[uint16]bool{}
	for _, s := range []*policy.Snapshot{c.old, c.now} {
		class, ok := s.ResourceClassOf(resource)
		if !ok {
			continue
		}
		for _, a := range class.Spec.Actions {
			for _, p := range a.Ports {
				last := p.Port
				if p.EndPort != nil {
					last = *p.EndPort
				}
				protocol := p.Protocol
				if protocol == "" {
					protocol = v1alpha1.ProtocolTCP
				}
				for _, n := range []int32{p.Port, last} {
					one := port{a.Name, protocol, uint16(n)} //nolint:gosec // the schema bounds ports
					if !asked[one] {
						asked[one] = true
						all = append(all, one)
					}
					taken[one.number] = true
				}
			}
		}
	}
	if len(all) == 0 {
		return nil // a resource without class has no actions: nothing is decided about it
	}
	for n := uint16(1); ; n++ {
		if !taken[n] && len(c.old.ActionsOn(resource, v1alpha1.ProtocolTCP, n)) == 0 && len(c.now.ActionsOn(resource, v1alpha1.ProtocolTCP, n)) == 0 {
			return append(all, port{otherPorts, v1alpha1.ProtocolTCP, n})
		}
		if n == 1<<16-1 {
			return all
		}
	}
}

// ask adds what changes, for the rest of the members first and then for those that differ from it. Ports of one action
// that change alike are told once.
func (c *comparison) ask(from origin, resource, asked string, p port, clusters []string) {
	var rest connection
	for _, cluster := range append([]string{""}, clusters...) {
		q := policy.Query{Resources: []string{asked}, Source: from.address, Cluster: cluster, Protocol: p.protocol, Port: p.number, At: c.at}
		ex := query{Resources: q.Resources, Cluster: cluster, Port: p.number, Protocol: p.protocol}
		if from.subject != "" {
			q.Subjects, ex.Subjects = []string{from.subject}, []string{from.subject}
		}
		if from.address.IsValid() {
			ex.SourceIP = from.address.String()
		}
		before, after := c.old.Decide(q), c.now.Decide(q)
		found := connection{Subject: from.label, Resource: resource, Action: p.action, Cluster: cluster, Change: changeOf(before.Word, after.Word),
			Before: before.Word, After: after.Word, Statements: after.Statements, Example: ex}
		if len(found.Statements) == 0 {
			found.Statements = before.Statements
		}
		if cluster == "" {
			rest = found
		} else if found.Before == rest.Before && found.After == rest.After {
			continue
		}
		if found.Before != found.After && !slices.ContainsFunc(c.out, found.same) {
			c.out = append(c.out, found)
		}
	}
}

// same tells whether two are the same but for the port.
func (c *connection) same(o connection) bool {
	return c.Subject == o.Subject && c.Resource == o.Resource && c.Action == o.Action && c.Cluster == o.Cluster && c.Before == o.Before && c.After == o.After
}

func changeOf(before, after policy.Word) string {
	passes := func(w policy.Word) bool { return w != policy.Denied && w != policy.DefaultDenied }
	switch {
	case !passes(before) && passes(after):
		return changePossible
	case passes(before) && !passes(after):
		return changeImpossible
	}
	return changeJudged
}

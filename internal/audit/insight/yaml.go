package insight

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/acp-io/acp/api/v1alpha1"
)

// YAML renders Policy for review: every subject with its evidence and, as comments, what the policy does not contain
// and why.
func (p *Proposal) YAML() string {
	w := &comments{}
	w.add("Proposed for %s, by what was seen from %s to %s.", p.Resource, instant(p.Since), instant(p.Until))
	if p.Policy == nil {
		w.add("There is nothing to add.")
	} else {
		w.add("Nothing of it is in force. Remove what is not needed, then request the rest.")
	}
	w.section("Already allowed:", p.lines(StateCovered))
	w.section("Refused today; request an allow only if the refusal is not intended:", p.lines(StateDenied))
	w.section("Sources without a name; register them to allow them:", p.unnamed())
	w.section("At ports that no action of the class has, where no client can be allowed:", p.unknown())
	if p.Policy == nil {
		return w.String()
	}
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	enc.CompactSeqIndent()
	if err := errors.Join(enc.Encode(p.document()), enc.Close()); err != nil { // Neither the nodes nor the Builder can fail.
		panic(err)
	}
	return w.String()
}

func (p *Proposal) lines(s State) (out []string) {
	for _, l := range p.Lines {
		if l.State == s {
			text := fmt.Sprintf("%s %s: %s", l.Subject, l.Action, l.Evidence)
			for i, ref := range l.Statements {
				text += [...]string{"; by ", ", "}[min(i, 1)] + ref.String()
			}
			out = append(out, text)
		}
	}
	return out
}

func (p *Proposal) unnamed() (out []string) {
	for _, u := range p.Unattributed {
		var ports []string
		for _, port := range u.Ports {
			ports = append(ports, portText(port.Protocol, port.Port))
		}
		out = append(out, fmt.Sprintf("%s to %s, %s: %s", u.Source, strings.Join(ports, " "), u.State, u.Evidence))
	}
	return out
}

// clientsShown bounds the clients that a comment lists.
const clientsShown = 5

func (p *Proposal) unknown() (out []string) {
	for _, u := range p.UnknownPorts {
		clients := strings.Join(u.Clients[:min(len(u.Clients), clientsShown)], ", ")
		if more := len(u.Clients) - clientsShown; more > 0 {
			clients += fmt.Sprintf(" and %d more", more)
		}
		open := ""
		if u.Open {
			open = " (stays open to everyone)"
		}
		out = append(out, fmt.Sprintf("%s%s: %s; by %s", portText(u.Protocol, u.Port), open, u.Evidence, clients))
	}
	return out
}

func portText(proto v1alpha1.Protocol, port uint16) string {
	if port == 0 {
		return string(proto)
	}
	return fmt.Sprintf("%s/%d", proto, port)
}

// String describes the evidence for users.
func (s FlowEvidence) String() string {
	what := fmt.Sprintf("%d connections", s.Count)
	switch s.Count {
	case 0: // opened before the window, and still in use
		what = "open connections"
	case 1:
		what = "1 connection"
	}
	return fmt.Sprintf(
		"%s, first %s, last %s, on %d of %d days, in %s",
		what,
		instant(s.First),
		instant(s.Last),
		s.Days,
		s.DaysObserved,
		strings.Join(s.Clusters, " "),
	)
}

func instant(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") }

// comments collects the lines of comments in front of a policy.
type comments struct{ strings.Builder }

func (c *comments) add(format string, args ...any) {
	fmt.Fprintf(c, "# %s\n", printable(fmt.Sprintf(format, args...)))
}

func (c *comments) section(heading string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintln(c, "#")
	c.add("%s", heading)
	for _, l := range lines {
		c.add("- %s", l)
	}
}

// printable keeps a comment on one line, whatever a member's flows contain.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}

// document returns Policy with the evidence of each subject as a comment.
func (p *Proposal) document() *yaml.Node {
	statements := &yaml.Node{Kind: yaml.SequenceNode}
	for _, st := range p.Policy.Spec.Statements {
		subjects := &yaml.Node{Kind: yaml.SequenceNode}
		for _, s := range st.Subjects {
			i := slices.IndexFunc(p.Lines, func(l ProposalLine) bool { return l.Subject == string(s) && l.Action == string(st.Actions[0]) })
			subject := scalar(string(s))
			subject.HeadComment = "# " + printable(fmt.Sprintf("%s: %s", p.Lines[i].State, p.Lines[i].Evidence))
			subjects.Content = append(subjects.Content, subject)
		}
		statements.Content = append(statements.Content, mapping(
			field{"sid", scalar(st.SID)},
			field{"effect", scalar(string(st.Effect))},
			field{"subjects", subjects},
			field{"actions", sequence(string(st.Actions[0]))},
			field{"resources", sequence(p.Resource)}))
	}
	return mapping(
		field{"apiVersion", scalar(p.Policy.APIVersion)},
		field{"kind", scalar(p.Policy.Kind)},
		field{"metadata", mapping(field{"name", scalar(p.Policy.Name)})},
		field{"spec", mapping(field{"statements", statements})})
}

type field struct {
	key   string
	value *yaml.Node
}

func mapping(fields ...field) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range fields {
		n.Content = append(n.Content, scalar(f.key), f.value)
	}
	return n
}

func sequence(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{scalar(value)}}
}

// scalar returns a string, which the encoder quotes where YAML would read another type.
func scalar(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	return n
}

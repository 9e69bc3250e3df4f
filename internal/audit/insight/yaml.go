package insight

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/acp-io/acp/api/v1alpha1"
)

// YAML renders Policy for review: every subject with its evidence and, as comments, what the policy does not contain
// and why.
func (p *Proposal) YAML() string {
	w := &yamlWriter{}
	w.comment(0, "Proposed for %s, by what was seen from %s to %s.", p.Resource, instant(p.Since), instant(p.Until))
	if p.Policy == nil {
		w.comment(0, "There is nothing to add.")
	} else {
		w.comment(0, "Nothing of it is in force. Take out what does not belong, then ask for the rest.")
	}
	w.apart("Already allowed:", p.lines(StateCovered))
	w.apart("Refused today; an allow has to be asked for by somebody who knows why:", p.lines(StateDenied))
	w.apart("Without a name; somebody who knows them has to say who they are:", p.unnamed())
	w.apart("At ports that no action of the class has; nobody can be allowed there:", p.unknown())
	if p.Policy != nil {
		w.policy(p)
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
func (s Seen) String() string {
	what := fmt.Sprintf("%d connections", s.Count)
	switch s.Count {
	case 0: // opened before the window, and still in use
		what = "open connections"
	case 1:
		what = "1 connection"
	}
	return fmt.Sprintf("%s, first %s, last %s, on %d of %d days, in %s", what, instant(s.First), instant(s.Last), s.Days, s.DaysObserved, strings.Join(s.Clusters, " "))
}

func instant(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") }

type yamlWriter struct{ strings.Builder }

func (w *yamlWriter) line(indent int, format string, args ...any) {
	fmt.Fprintf(w, "%*s%s\n", indent, "", fmt.Sprintf(format, args...))
}

// comment keeps text on one line, whatever a member's flows contain.
func (w *yamlWriter) comment(indent int, format string, args ...any) {
	text := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, fmt.Sprintf(format, args...))
	w.line(indent, "# %s", text)
}

func (w *yamlWriter) apart(heading string, lines []string) {
	if len(lines) == 0 {
		return
	}
	w.line(0, "#")
	w.comment(0, "%s", heading)
	for _, l := range lines {
		w.comment(0, "- %s", l)
	}
}

func (w *yamlWriter) policy(p *Proposal) {
	w.line(0, "apiVersion: %s", scalar(p.Policy.APIVersion))
	w.line(0, "kind: %s", scalar(p.Policy.Kind))
	w.line(0, "metadata:")
	w.line(2, "name: %s", scalar(p.Policy.Name))
	w.line(0, "spec:")
	w.line(2, "statements:")
	for _, st := range p.Policy.Spec.Statements {
		w.line(2, "- sid: %s", scalar(st.SID))
		w.line(4, "effect: %s", scalar(string(st.Effect)))
		w.line(4, "subjects:")
		for _, s := range st.Subjects {
			i := slices.IndexFunc(p.Lines, func(l ProposalLine) bool { return l.Subject == string(s) && l.Action == string(st.Actions[0]) })
			w.comment(4, "%s: %s", p.Lines[i].State, p.Lines[i].Evidence)
			w.line(4, "- %s", scalar(string(s)))
		}
		w.line(4, "actions:")
		w.line(4, "- %s", scalar(string(st.Actions[0])))
		w.line(4, "resources:")
		w.line(4, "- %s", scalar(p.Resource))
	}
}

// plainScalar matches text that needs no quotes in YAML.
var plainScalar = regexp.MustCompile(`^[A-Za-z][-A-Za-z0-9_./]*(:[-A-Za-z0-9_./]+)*$`)

// words need quotes, because YAML interprets them as another type.
var otherWords = []string{"true", "false", "yes", "no", "on", "off", "null", "y", "n"}

// scalar returns a YAML scalar; JSON's quoting is valid YAML.
func scalar(s string) string {
	if plainScalar.MatchString(s) && !slices.Contains(otherWords, strings.ToLower(s)) {
		return s
	}
	text, err := json.Marshal(s)
	if err != nil {
		return `""` // a string cannot fail
	}
	return string(text)
}

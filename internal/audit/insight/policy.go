package insight

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// Limits of the API; see api/v1alpha1.
const (
	maxSubjects = 256
	maxSID      = 63
)

// Wanted reports whether Proposal.Policy contains the line: it is let in today without a statement that allows it
// permanently.
func (l ProposalLine) Wanted() bool { return l.State == StateNew || l.State == StateAudited }

// PolicyFor returns a policy that allows the accepted lines, with one statement for each action, or several if one has
// too many subjects. It returns nil if no line is accepted.
func (p *Proposal) PolicyFor(accept func(ProposalLine) bool) *v1alpha1.AccessControlPolicy {
	var statements []v1alpha1.Statement
	number := 0 // of the statements of the action
	for _, l := range p.Lines {
		if !accept(l) {
			continue
		}
		action := v1alpha1.Action(l.Action)
		last := len(statements) - 1
		switch {
		case last < 0 || statements[last].Actions[0] != action:
			number = 0
		case len(statements[last].Subjects) < maxSubjects:
			statements[last].Subjects = append(statements[last].Subjects, v1alpha1.Subject(l.Subject))
			continue
		}
		number++
		statements = append(
			statements,
			v1alpha1.Statement{SID: sidOf(l.Action, number), Effect: v1alpha1.EffectAllow, Subjects: []v1alpha1.Subject{v1alpha1.Subject(l.Subject)},
				Actions: []v1alpha1.Action{action}, Resources: []v1alpha1.ResourceName{v1alpha1.ResourceName(p.Resource)}},
		)
	}
	if len(statements) == 0 {
		return nil
	}
	unique(statements)
	return &v1alpha1.AccessControlPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "AccessControlPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: "proposed-" + policy.UnitID(p.Resource)},
		Spec:       v1alpha1.AccessControlPolicySpec{Statements: statements},
	}
}

// sidOf derives a sid from an action: letters, digits, '-', '_' and '.', with a letter or digit at both ends.
func sidOf(action string, number int) string {
	text := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '.':
			return r
		}
		return '-'
	}, action)
	suffix := ""
	if number > 1 {
		suffix = fmt.Sprintf("-%d", number)
	}
	if room := maxSID - len(suffix) - len("seen-"); len(text) > room {
		text = text[:room]
	}
	return "seen-" + strings.TrimRight(text, "-_.") + suffix
}

// unique numbers sids that are equal for two actions.
func unique(statements []v1alpha1.Statement) {
	taken := map[string]bool{}
	for i := range statements {
		base := statements[i].SID
		for n := 2; taken[statements[i].SID]; n++ {
			suffix := fmt.Sprintf(".%d", n)
			statements[i].SID = base[:min(len(base), maxSID-len(suffix))] + suffix
		}
		taken[statements[i].SID] = true
	}
}

package insight

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// Bounds of the API, see api/v1alpha1.
const (
	maxSubjects = 256
	maxSID      = 63
)

// Wanted tells whether Proposal.Policy has the line: it is let in today, and nothing says that it may stay.
func (l ProposalLine) Wanted() bool { return l.State == StateNew || l.State == StateAudited }

// PolicyFor allows the lines that are accepted, with one statement for each action, or several where the subjects of one
// are too many. Nil when there is none.
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
		statements = append(statements, v1alpha1.Statement{SID: sidOf(l.Action, number), Effect: v1alpha1.EffectAllow, Subjects: []v1alpha1.Subject{v1alpha1.Subject(l.Subject)},
			Actions: []v1alpha1.Action{action}, Resources: []v1alpha1.ResourceName{v1alpha1.ResourceName(p.Resource)}})
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

// sidOf makes a sid from an action: letters, digits, '-', '_' and '.', and what is at its ends a letter or digit.
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

// unique numbers sids that two actions would share.
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

package admission

import (
	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval/rules"
)

// ApprovalPolicy reviews an approval policy that is created (old is nil) or updated: every expression that the change
// adds has to compile.
func ApprovalPolicy(old, now *v1alpha1.ApprovalPolicy) Verdict {
	var v Verdict
	before := map[rules.Problem]bool{}
	if old != nil {
		_, problems := rules.Compile(old)
		for _, p := range problems {
			before[p] = true
		}
	}
	p, problems := rules.Compile(now)
	for _, x := range problems {
		v.fault(!before[x], "%s", x)
	}
	if len(problems) == 0 {
		for _, w := range p.Warnings() {
			v.warn("%s", w)
		}
	}
	return v
}

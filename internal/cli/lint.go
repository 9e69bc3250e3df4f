package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-io/acp/internal/admission"
	"github.com/acp-io/acp/internal/manifest"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/organization"
	"github.com/acp-io/acp/internal/policy"
)

const (
	severityError   = "error"
	severityWarning = "warning"

	// kindOutOfBounds is the kind of findings about objects that exceed the bounds of their organization.
	kindOutOfBounds = "out-of-bounds"
)

// finding is one line of lint.
type finding struct {
	// Severity is error for an invalid object or one without effect as written, else warning.
	Severity string `json:"severity"`
	// Kind is invalid, ignored, left-out, refused, out-of-bounds, odd, limit, shadowed, redundant or contradictory.
	Kind string `json:"kind"`
	// Object is "Kind/name"; Statement is "<policy>/<sid>" if the finding is about one.
	Object    string      `json:"object,omitempty"`
	Statement *policy.Ref `json:"statement,omitempty"`
	// Others are the statements because of which it is shadowed, redundant or contradictory.
	Others   []policy.Ref      `json:"others,omitempty"`
	Position manifest.Position `json:"position,omitzero"`
	Message  message.Message   `json:"message"`
	// Example is a connection that demonstrates the finding.
	Example *query `json:"example,omitempty"`
}

type lintOptions struct {
	source
	output
	declarations
	failOn string
}

func newLint(s Streams) *cobra.Command {
	o := &lintOptions{source: source{streams: s}}
	cmd := &cobra.Command{
		Use:   "lint [-f FILE|DIR...]",
		Short: "Find what is invalid, not enforceable, suspicious or without effect",
		Long: `Find what is invalid, not enforceable, suspicious or without effect.

Errors are objects that an API server would refuse, objects that are not used or exceed the bounds of their organization, and
statements that no member receives.
Warnings are valid but suspicious objects, and statements that are shadowed, redundant or contradictory. The exit code is 3 if
an object is invalid, otherwise 1 if there are findings (with --fail-on error: errors).`,
		Example: `  kubectl acp lint -f policies/ --strict
  kubectl acp lint -o json | jq '.[] | select(.severity == "error")'`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	o.flags(cmd)
	o.output.flag(cmd, asTable)
	o.declarations.flag(cmd)
	cmd.Flags().StringVar(&o.failOn, "fail-on", severityWarning, "lowest `SEVERITY` for which the exit code is 1: warning or error")
	return cmd
}

func (o *lintOptions) run(cmd *cobra.Command, args []string) error {
	at, err := o.instant()
	if err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	if o.failOn != severityWarning && o.failOn != severityError {
		return usage("--fail-on %q is neither warning nor error", o.failOn)
	}
	declared, err := o.declared()
	if err != nil {
		return err
	}
	set, err := o.read(cmd.Context(), args)
	if err != nil {
		return err
	}
	if err := o.replace(declared, set); err != nil {
		return err
	}
	if set.Empty() && !set.Failed() {
		for _, i := range set.Issues {
			fmt.Fprintln(o.streams.Err, i.Render(language()))
		}
		return invalid(errors.New("there is no object of ACP to check: name the files or folders that hold them with -f"))
	}
	findings, err := lint(set, at)
	if err != nil {
		return err
	}
	if err := o.print(findings); err != nil {
		return err
	}
	switch {
	case set.Failed():
		return &failure{code: ExitInvalid}
	case slices.ContainsFunc(findings, func(f finding) bool { return o.failOn == severityWarning || f.Severity == severityError }):
		return errFindings
	}
	return nil
}

// lint returns all findings, by position.
func lint(set *manifest.Set, at time.Time) ([]finding, error) {
	out := []finding{}
	for _, i := range set.Issues {
		f := finding{Severity: severityError, Kind: "invalid", Object: i.Object, Position: i.Position, Message: i.Message}
		if i.Warning {
			f.Severity, f.Kind = severityWarning, "ignored"
		}
		out = append(out, f)
	}
	snapshot := policy.NewSnapshot(set.Input)
	for _, p := range snapshot.Problems() {
		k := manifest.Key{Kind: p.Kind, Name: p.Name}
		f := finding{Severity: severityWarning, Kind: "odd", Object: k.String(), Position: set.PositionOf(k), Message: p.Message}
		if p.LeftOut {
			f.Severity, f.Kind = severityError, "left-out"
		}
		out = append(out, f)
	}
	out = append(out, outOfBounds(set)...)
	r := renderer{snapshot: snapshot, at: at}
	result, err := r.render()
	if err != nil {
		return nil, err
	}
	for _, r := range result.refused {
		f := finding{Severity: severityError, Kind: "refused", Message: message.LintRefused(r.Reason, r.Message)}
		if where := refusedWhere(&result, r); where != "" {
			f.Message = message.LintWhere(strings.TrimPrefix(where, " "), f.Message)
		}
		if r.Ref == (policy.Ref{}) {
			f.Object = r.Resource
		} else {
			f = about(set, r.Ref, f)
		}
		out = append(out, f)
	}
	for _, w := range result.warnings {
		out = append(out, finding{Severity: severityWarning, Kind: "limit", Object: w.about, Message: w.message})
	}
	for _, a := range snapshot.Analyze(at) {
		out = append(
			out,
			about(set, a.Ref, finding{Severity: severityWarning, Kind: string(a.Kind), Others: a.Other, Message: a.Message, Example: queryOf(&a.Example)}),
		)
	}
	for _, n := range admission.Lint(snapshot, set.Input, at) {
		f := finding{Severity: severityWarning, Kind: "odd", Message: n.Message}
		if n.Ref != (policy.Ref{}) {
			out = append(out, about(set, n.Ref, f))
			continue
		}
		k := manifest.Key{Kind: n.Kind, Name: n.Name}
		f.Object, f.Position = k.String(), set.PositionOf(k)
		out = append(out, f)
	}
	slices.SortStableFunc(out, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.Position.File, b.Position.File), cmp.Compare(a.Position.Line, b.Position.Line),
			cmp.Compare(a.Object, b.Object), cmp.Compare(a.statement(), b.statement()), cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Kind, b.Kind))
	})
	return out, nil
}

// outOfBounds returns the classes and approval policies that are outside of the bounds of their organizations, and organizations whose teams
// others name, too. Without any organization in the set nothing is known about bounds, so nothing is found.
func outOfBounds(set *manifest.Set) []finding {
	if len(set.Organizations) == 0 {
		return nil
	}
	var out []finding
	for _, p := range organization.NewIndex(set.Organizations).Problems(set.Input.ResourceClasses, set.Approvals) {
		k := manifest.Key{Kind: p.Kind, Name: p.Name}
		f := finding{Severity: severityError, Kind: kindOutOfBounds, Object: k.String(), Position: set.PositionOf(k), Message: p.Message}
		if p.Kind == "Organization" {
			f.Severity, f.Kind = severityWarning, "odd"
		}
		out = append(out, f)
	}
	return out
}

// about completes a finding about a statement.
func about(set *manifest.Set, ref policy.Ref, f finding) finding {
	f.Object, f.Statement, f.Position = "AccessControlPolicy/"+ref.Policy, &ref, set.PositionOfStatement(ref)
	return f
}

func (f *finding) statement() string {
	if f.Statement == nil {
		return ""
	}
	return f.Statement.SID
}

func (o *lintOptions) print(findings []finding) error {
	if o.format != asTable {
		return o.document(o.streams.Out, findings)
	}
	if len(findings) == 0 {
		return nil
	}
	rows := [][]string{{"SEVERITY", "KIND", "WHERE", "OBJECT", "MESSAGE"}}
	for i := range findings {
		f := &findings[i]
		object := f.Object
		if f.Statement != nil {
			object = f.Statement.String()
		}
		rows = append(rows, []string{f.Severity, f.Kind, f.Position.String(), object, f.Message.Render(language())})
	}
	return table(o.streams.Out, rows)
}

func joinRefs(refs []policy.Ref) string {
	var out []string
	for _, r := range refs {
		out = append(out, r.String())
	}
	return strings.Join(out, ",")
}

package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/manifest"
	"github.com/acp-io/acp/internal/policy"
)

const (
	added   = "added"
	removed = "removed"
	changed = "changed"
)

// difference is the output of diff.
type difference struct {
	Connections []connection      `json:"connections"`
	Statements  []statementChange `json:"statements"`
	Objects     []objectChange    `json:"objects"`
}

// statementChange is a statement that is added, removed or changed.
type statementChange struct {
	Statement policy.Ref          `json:"statement"`
	Change    string              `json:"change"`
	Before    *v1alpha1.Statement `json:"before,omitempty"`
	After     *v1alpha1.Statement `json:"after,omitempty"`
}

// objectChange is an object of an enforcer that is added, removed or changed.
type objectChange struct {
	Enforcer v1alpha1.EnforcerName `json:"enforcer"`
	Kind     string                `json:"kind"`
	Name     string                `json:"name"`
	// About is the resource, or the subject of an object that several units refer to.
	About  string `json:"about"`
	Change string `json:"change"`
	// Diff compares the objects as YAML, including those of single members.
	Diff string `json:"diff"`
}

type diffOptions struct {
	source
	output
	declarations
}

func newDiff(s Streams) *cobra.Command {
	o := &diffOptions{source: source{streams: s}}
	cmd := &cobra.Command{
		Use:   "diff -f OLD -f NEW | -f NEW",
		Short: "Show which connections become possible or impossible",
		Long: `Show which connections become possible or impossible, and which statements and enforcer objects change.

With two -f, the first is the state before the change and the second the state after it. With one -f, the state before is the
cluster, and the state after is the cluster with the objects of the file or folder applied (no object is removed).

The comparison includes every resource that one of the states names, and every source that a statement about it names. A
wildcard or range is compared as one source for all names and addresses that no other statement names. The exit code is 1 if
anything changes.`,
		Example: `  kubectl acp diff -f main/ -f branch/
  kubectl acp diff -f policies/ -o json | jq '.connections[] | select(.change == "possible")'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.flags(cmd)
	o.output.flag(cmd, asTable)
	o.declarations.flag(cmd)
	return cmd
}

func (o *diffOptions) run(cmd *cobra.Command) error {
	at, err := o.instant()
	if err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	declared, err := o.declared()
	if err != nil {
		return err
	}
	before, after, err := o.sides(cmd.Context())
	if err != nil {
		return err
	}
	if len(before.Members) == 0 { // files without members are rendered for those of the other side
		before.Input = policy.NewInput(before.Input.Objects(), after.Input.Fleet())
	}
	if err := o.replace(declared, before, after); err != nil {
		return err
	}
	d := difference{Connections: compareConnections(before.Input, after.Input, at), Statements: compareStatements(before.Input.Policies, after.Input.Policies)}
	if d.Objects, err = compareObjects(before.Input, after.Input, at); err != nil {
		return err
	}
	if err := o.print(&d); err != nil {
		return err
	}
	if len(d.Connections)+len(d.Statements)+len(d.Objects) > 0 {
		return errFindings
	}
	return nil
}

// sides are the states before and after the change.
func (o *diffOptions) sides(ctx context.Context) (before, after *manifest.Set, err error) {
	read := func(path string) (*manifest.Set, error) {
		one := o.source
		one.paths = []string{path}
		return one.load(ctx, nil)
	}
	switch len(o.paths) {
	case 1:
		cluster := o.source
		cluster.paths = nil
		if before, err = cluster.load(ctx, nil); err != nil {
			return nil, nil, err
		}
		if after, err = read(o.paths[0]); err != nil {
			return nil, nil, err
		}
		after, err = o.completed(before.Over(after), nil)
		return before, after, err
	case 2:
		if before, err = read(o.paths[0]); err != nil {
			return nil, nil, err
		}
		after, err = read(o.paths[1])
		return before, after, err
	}
	return nil, nil, usage("-f is needed twice (before and afterwards), or once to compare with the cluster")
}

func compareStatements(before, after []*v1alpha1.AccessControlPolicy) []statementChange {
	collect := func(list []*v1alpha1.AccessControlPolicy) map[policy.Ref]*v1alpha1.Statement {
		out := map[policy.Ref]*v1alpha1.Statement{}
		for _, p := range list {
			for i := range p.Spec.Statements {
				out[policy.Ref{Policy: p.Name, SID: p.Spec.Statements[i].SID}] = &p.Spec.Statements[i]
			}
		}
		return out
	}
	old, now := collect(before), collect(after)
	out := []statementChange{}
	for ref, st := range old {
		if other := now[ref]; other == nil {
			out = append(out, statementChange{Statement: ref, Change: removed, Before: st})
		} else if !equality.Semantic.DeepEqual(st, other) {
			out = append(out, statementChange{Statement: ref, Change: changed, Before: st, After: other})
		}
	}
	for ref, st := range now {
		if old[ref] == nil {
			out = append(out, statementChange{Statement: ref, Change: added, After: st})
		}
	}
	slices.SortFunc(out, func(a, b statementChange) int {
		return cmp.Or(cmp.Compare(a.Statement.Policy, b.Statement.Policy), cmp.Compare(a.Statement.SID, b.Statement.SID))
	})
	return out
}

func compareObjects(before, after policy.Input, at time.Time) ([]objectChange, error) {
	type entry struct {
		change objectChange
		text   string
	}
	collect := func(in policy.Input) (map[string]entry, error) {
		r := renderer{snapshot: policy.NewSnapshot(in), at: at}
		result, err := r.render()
		if err != nil {
			return nil, err
		}
		out := map[string]entry{}
		for i := range result.objects {
			r := &result.objects[i]
			var text bytes.Buffer
			for _, d := range r.everywhere() {
				one, err := yaml.Marshal(d)
				if err != nil {
					return nil, fmt.Errorf("encode %s: %w", r.object.Object.Name, err)
				}
				text.WriteString("---\n")
				text.Write(one)
			}
			out[strings.Join([]string{string(r.enforcer), r.object.Object.Kind, r.object.Object.Name}, "/")] = entry{text: text.String(), change: objectChange{
				Enforcer: r.enforcer, Kind: r.object.Object.Kind, Name: r.object.Object.Name, About: r.about}}
		}
		return out, nil
	}
	old, err := collect(before)
	if err != nil {
		return nil, err
	}
	now, err := collect(after)
	if err != nil {
		return nil, err
	}
	keys := maps.Clone(old)
	maps.Copy(keys, now)
	out := []objectChange{}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		a, was := old[k]
		b, is := now[k]
		c := keys[k].change
		switch {
		case was && is && a.text == b.text:
			continue
		case was && is:
			c.Change = changed
		case is:
			c.Change = added
		default:
			c.Change = removed
		}
		c.Diff = udiff.Unified("before", "after", a.text, b.text)
		out = append(out, c)
	}
	return out, nil
}

func (o *diffOptions) print(d *difference) error {
	if o.format != asTable {
		return o.document(o.streams.Out, d)
	}
	section := func(title string, rows [][]string) error {
		if len(rows) <= 1 {
			return nil
		}
		if err := write(o.streams.Out, []byte(title+"\n")); err != nil {
			return err
		}
		return table(o.streams.Out, rows)
	}
	rows := [][]string{{"BECOMES", "SUBJECT", "RESOURCE", "ACTION", "CLUSTER", "BEFORE", "AFTER", "STATEMENTS"}}
	for _, c := range d.Connections {
		rows = append(rows, []string{c.Change, c.Subject, c.Resource, c.Action, c.Cluster, string(c.Before), string(c.After), joinRefs(c.Statements)})
	}
	if err := section("Connections", rows); err != nil {
		return err
	}
	rows = [][]string{{"STATEMENT", "CHANGE"}}
	for _, s := range d.Statements {
		rows = append(rows, []string{s.Statement.String(), s.Change})
	}
	if err := section("Statements", rows); err != nil {
		return err
	}
	for _, c := range d.Objects {
		if err := write(o.streams.Out, fmt.Appendf(nil, "%s %s for %s: %s\n%s", c.Kind, c.Name, c.About, c.Change, c.Diff)); err != nil {
			return err
		}
	}
	return nil
}

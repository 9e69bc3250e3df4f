package cli

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer/registry"
	"github.com/acp-io/acp/internal/manifest"
	"github.com/acp-io/acp/internal/policy"
)

// annotationCluster marks an object for one member only, where a member differs from the others.
const annotationCluster = "acp.io/cluster"

type renderOptions struct {
	source
	output
	declarations
	enforcer  string
	cluster   string
	federated bool
}

func newRender(s Streams) *cobra.Command {
	o := &renderOptions{source: source{streams: s}}
	cmd := &cobra.Command{
		Use:   "render [-f FILE|DIR...] [--enforcer NAME] [--cluster NAME | --federated]",
		Short: "Print the objects for the members",
		Long: `Print the objects for the members.

A member with a mode of its own has another spec, which is printed as a separate object with the annotation acp.io/cluster.
With --cluster, only that member's objects are printed; with --federated, the Federated objects for KubeFed. Statements that
cannot be rendered are reported on standard error, and then the exit code is 1.`,
		Example: `  kubectl acp render -f policies/ --enforcer cilium
  kubectl acp render --federated -o json`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	o.flags(cmd)
	o.output.flag(cmd, asYAML)
	cmd.Flags().StringVar(&o.enforcer, "enforcer", "", "`NAME` of the enforcer for which every unit is rendered (default: the enforcers of the class)")
	o.declarations.flag(cmd)
	cmd.Flags().StringVar(&o.cluster, "cluster", "", "`NAME` of a member: print only its objects")
	cmd.Flags().BoolVar(&o.federated, "federated", false, "wrap the objects for KubeFed")
	return cmd
}

func (o *renderOptions) run(cmd *cobra.Command, args []string) error {
	at, err := o.instant()
	if err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	if o.federated && o.cluster != "" {
		return usage("--federated and --cluster exclude each other")
	}
	only := v1alpha1.EnforcerName(o.enforcer)
	if only != "" {
		if err := registry.Check(only); err != nil {
			return usage("--enforcer: %w", err)
		}
	}
	declared, err := o.declared()
	if err != nil {
		return err
	}
	set, err := o.load(cmd.Context(), args)
	if err != nil {
		return err
	}
	if err := o.replace(declared, set); err != nil {
		return err
	}
	snapshot := policy.NewSnapshot(set.Input)
	r := renderer{snapshot: snapshot, at: at, only: only}
	result, err := r.render()
	if err != nil {
		return err
	}
	documents, err := o.documents(result.objects, set.Members)
	if err != nil {
		return err
	}
	if err := o.print(result.objects, documents); err != nil {
		return err
	}
	for _, p := range snapshot.Problems() {
		fmt.Fprintf(
			o.streams.Err,
			"%s: %s/%s: %s: %s\n",
			set.PositionOf(manifest.Key{Kind: p.Kind, Name: p.Name}),
			p.Kind,
			p.Name,
			p.Reason,
			p.Message.Render(language()),
		)
	}
	for _, w := range result.warnings {
		fmt.Fprintf(o.streams.Err, "warning: %s: %s\n", w.about, w.message.Render(language()))
	}
	for _, n := range result.notes {
		fmt.Fprintf(o.streams.Err, "note: %s: %s\n", n.about, n.message.Render(language()))
	}
	refused := o.refusalsToPrint(&result)
	for _, line := range refusalLines(set, refused, &result) {
		fmt.Fprintln(o.streams.Err, line)
	}
	if len(refused) > 0 || slices.ContainsFunc(snapshot.Problems(), func(p policy.Problem) bool { return p.LeftOut }) {
		return errFindings
	}
	return nil
}

// refusalsToPrint returns the refusals to print: for one member, only those that apply there.
func (o *renderOptions) refusalsToPrint(r *rendering) []refusal {
	if o.cluster == "" {
		return r.refused
	}
	return slices.DeleteFunc(slices.Clone(r.refused), func(f refusal) bool {
		return (f.cluster != "" && f.cluster != o.cluster) || slices.Contains(r.granted, refusal{f.Refusal, o.cluster})
	})
}

func refusalLines(set *manifest.Set, refused []refusal, r *rendering) []string {
	var out []string
	for _, f := range refused {
		where := refusedWhere(r, f)
		if f.Ref == (policy.Ref{}) {
			out = append(out, fmt.Sprintf("not everything is rendered%s: %s: %s", where, f.Reason, f.Message.Render(language())))
			continue
		}
		out = append(
			out,
			fmt.Sprintf("%s: statement %s is refused%s: %s: %s", set.PositionOfStatement(f.Ref), f.Ref, where, f.Reason, f.Message.Render(language())),
		)
	}
	return out
}

// refusedWhere names the resource and the members of a refusal.
func refusedWhere(r *rendering, f refusal) string {
	where := ""
	if f.Resource != "" {
		where = " in " + f.Resource
	}
	if f.cluster != "" {
		return where + " for member " + f.cluster
	}
	var but []string
	for _, g := range r.granted {
		otherwise := func(o refusal) bool { return o.cluster == g.cluster && o.Ref == g.Ref && o.Resource == g.Resource }
		if g.Refusal == f.Refusal && !slices.ContainsFunc(r.refused, otherwise) {
			but = append(but, g.cluster)
		}
	}
	if len(but) > 0 {
		where += " but for " + strings.Join(but, ", ")
	}
	return where
}

// documents returns the objects to print, in the order of their units.
func (o *renderOptions) documents(objects []rendered, members []manifest.Member) ([]map[string]any, error) {
	var out []map[string]any
	unknown := false
	for i := range objects {
		r := &objects[i]
		switch {
		case o.federated:
			d, without, err := r.federated(members)
			if err != nil {
				return nil, invalid(fmt.Errorf("class %s: %w", r.class, err))
			}
			unknown = unknown || without
			out = append(out, d)
		case o.cluster != "":
			targets, known, err := r.placed(members)
			if err != nil {
				return nil, invalid(fmt.Errorf("class %s: %w", r.class, err))
			}
			if known && !slices.Contains(targets, o.cluster) {
				continue
			}
			if d, ok := r.in(o.cluster); ok {
				out = append(out, d)
			}
		default:
			out = append(out, r.everywhere()...)
		}
	}
	if unknown {
		fmt.Fprintln(o.streams.Err, "note: no KubeFedCluster was read, so placements are the classes' selectors; the adapter writes names")
	}
	return out, nil
}

// everywhere returns the object, and the marked objects of the members that differ.
func (r *rendered) everywhere() []map[string]any {
	var out []map[string]any
	members := r.differing()
	switch {
	case r.object.Only != nil:
		members = r.object.Only
	case r.mode == v1alpha1.ModeObserve:
		members = slices.Sorted(maps.Keys(r.modes)) // no other member has the object
	default:
		out = append(out, plain(&r.object.Object, r.object.Object.Spec, r.object.Revision))
	}
	for _, c := range members {
		if d, ok := r.in(c); ok {
			d["metadata"].(map[string]any)["annotations"] = map[string]any{annotationCluster: c}
			out = append(out, d)
		}
	}
	return out
}

func (o *renderOptions) print(objects []rendered, documents []map[string]any) error {
	switch o.format {
	case asTable:
		rows := [][]string{{"ENFORCER", "KIND", "NAME", "ABOUT", "MODE", "REVISION", "DIFFERS IN"}}
		for _, r := range objects {
			rows = append(rows, []string{string(r.enforcer), r.object.Object.Kind, r.object.Object.Name, r.about,
				string(r.mode), r.object.Revision, strings.Join(r.differing(), ",")})
		}
		return table(o.streams.Out, rows)
	case asJSON:
		items := documents
		if items == nil {
			items = []map[string]any{}
		}
		return o.document(o.streams.Out, map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	}
	var b bytes.Buffer
	for i, d := range documents {
		text, err := o.encode(d)
		if err != nil {
			return err
		}
		if i > 0 {
			b.WriteString("---\n")
		}
		b.Write(text)
	}
	return write(o.streams.Out, b.Bytes())
}

package cli

import (
	"context"
	"fmt"
	"net/url"
	"slices"

	"github.com/spf13/cobra"

	"github.com/acp-io/acp/internal/audit/insight"
	"github.com/acp-io/acp/internal/portalclient"
)

type evidenceOptions struct {
	flowSource
	resources, clusters []string
	span                string
	threshold           int
}

// resourceScore is one line of output.
type resourceScore struct {
	Resource string `json:"resource"`
	insight.Score
}

func newEvidence(s Streams) *cobra.Command {
	o := &evidenceOptions{flowSource: newFlowSource(s)}
	cmd := &cobra.Command{
		Use:   "evidence [--resource NAME...] [--store STORE [-f FILE|DIR...]]",
		Short: "Score whether the flows of a resource suffice to enforce it",
		Long: `Score whether the observed flows of a resource suffice to enforce it: 0 to 100, in parts, with what is missing. How the parts
are computed is described in docs/evidence.md.

With --store the flows are read from the store, and the policies from files or the cluster; without --resource all protected
resources are scored. The score of a resource considers the members in which its class places it: those that the class names,
or the KubeFedClusters that are read with the policies, or --cluster. Without --store the portal computes the score, and NAME
is a catalog id. The exit code is 1 if the evidence for a resource does not suffice.`,
		Example: `  kubectl acp evidence --store sqlite:flows.db -f policies/
  kubectl acp evidence --store sqlite:flows.db --resource trnv1:rsc:trip-com:redis:clusters:bobs-cluster --cluster m1,m2
  kubectl acp evidence --resource bobs-cluster`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.flags(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&o.resources, "resource", nil, "`NAME` of a resource; repeatable")
	f.StringSliceVar(&o.clusters, "cluster", nil, clusterUsage)
	f.StringVar(&o.span, "window", windowPreset, "`SPAN` before now from which flows are considered; with --store")
	f.IntVar(&o.threshold, "threshold", insight.DefaultThreshold, "lowest `SCORE` that suffices; with --store")
	return cmd
}

func (o *evidenceOptions) run(ctx context.Context) error {
	switch err := o.check(); {
	case err != nil:
		return err
	case o.threshold < 1 || o.threshold > 100:
		return usage("--threshold %d is not from 1 to 100", o.threshold)
	case o.store == "" && len(o.resources) == 0:
		return usage("--resource is needed, or --store for all protected resources")
	case o.store == "":
		return remotely(o.ask(ctx))
	}
	return flowsFailed(o.work(ctx))
}

func (o *evidenceOptions) work(ctx context.Context) error {
	for _, name := range o.resources {
		if err := exactName("--resource", name); err != nil {
			return err
		}
	}
	in := insight.EvidenceInput{Threshold: o.threshold}
	var err error
	if in.Window, err = parseSpan("--window", o.span); err != nil {
		return err
	}
	r, err := o.read(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	in.Snapshot, in.Now, in.Fleet = r.snapshot, r.now, fleetOf(r.set, o.clusters)
	names := o.resources
	if len(names) == 0 {
		for _, p := range r.set.Input.Resources {
			names = append(names, string(p.Spec.Resource))
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	scores, err := insight.EvidenceOf(ctx, r, in, names)
	if err != nil {
		return err
	}
	out := make([]resourceScore, 0, len(names))
	for _, name := range names {
		out = append(out, resourceScore{name, scores[name]})
	}
	counts := [][]string{{"CLIENTS", "UNCOVERED", "UNNAMED"}}
	for _, s := range out {
		counts = append(counts, []string{fmt.Sprint(s.Clients), fmt.Sprint(s.Uncovered), fmt.Sprint(s.Unattributed)})
	}
	return o.printScores(out, out, counts)
}

// printScores prints the scores, or tables with more columns.
func (o *evidenceOptions) printScores(all any, scores []resourceScore, more [][]string) error {
	enough := true
	rows := [][]string{{"RESOURCE", "SCORE", "NEEDED", "ENOUGH"}}
	missing := [][]string{{"RESOURCE", "PART", "POINTS", "MISSING"}}
	for _, s := range scores {
		enough = enough && s.Enough
		rows = append(rows, []string{s.Resource, fmt.Sprint(s.Value), fmt.Sprint(s.Threshold), yes(s.Enough)})
		for _, p := range s.Parts {
			if !p.Missing.IsZero() {
				missing = append(missing, []string{s.Resource, string(p.Name), fmt.Sprintf("%d of %d", p.Points, p.Of), p.Missing.Render(language())})
			}
		}
	}
	for i := range more {
		rows[i] = append(rows[i], more[i]...)
	}
	if err := o.print(all, section{"", rows}, section{"Missing", missing}); err != nil {
		return err
	}
	if !enough {
		return errFindings
	}
	return nil
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func (o *evidenceOptions) ask(ctx context.Context) error {
	if len(o.clusters) > 0 || o.span != windowPreset || o.threshold != insight.DefaultThreshold {
		return usage("--cluster, --window and --threshold go with --store: the portal has its own")
	}
	c, err := o.portal.connect()
	if err != nil {
		return err
	}
	scores, all := make([]resourceScore, len(o.resources)), map[string]portalclient.EvidenceScore{}
	for i, id := range o.resources {
		var s portalclient.EvidenceScore
		if err := c.Get(ctx, "/resources/"+url.PathEscape(id)+"/evidence", nil, &s); err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
		all[id] = s
		scores[i] = resourceScore{id, insight.Score{Value: s.Value, Threshold: s.Threshold, Enough: s.Enough}}
		for _, p := range s.Parts {
			scores[i].Parts = append(scores[i].Parts, insight.Part{Name: insight.PartName(p.Name), Points: p.Points, Of: p.Of, Missing: value(p.Missing)})
		}
	}
	return o.printScores(all, scores, nil)
}

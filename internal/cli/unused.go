package cli

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-io/acp/internal/audit/insight"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portalclient"
)

type unusedOptions struct {
	flowSource
	resources   []string
	clusters    []string
	application string
	policy      string
	quiet       string
}

func newUnused(s Streams) *cobra.Command {
	o := &unusedOptions{flowSource: newFlowSource(s)}
	cmd := &cobra.Command{
		Use:   "unused [--resource NAME...] [--store STORE [-f FILE|DIR...]]",
		Short: "Find grants without traffic, and propose their removal",
		Long: `Find grants without traffic, and propose their removal. A grant is listed if it was in force
for the whole span and every member of its resource was observed for nearly all of it. The members of a resource are those that
its class names, or the KubeFedClusters that are read with the policies, or --cluster. A wildcard is used if any of its
resources was used through it.

With --store the flows are read from the store, and the policies from files or the cluster; without it the portal answers, and
NAME is a catalog id. The exit code is 1 if there are unused grants, or if it cannot be determined.`,
		Example: `  kubectl acp unused --store sqlite:flows.db -f policies/ --quiet 30d
  kubectl acp unused --store sqlite:flows.db -o json | jq -r '.[].ref | .policy + "/" + .sid'
  kubectl acp unused --resource bobs-cluster`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.flags(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&o.resources, "resource", nil, "only statements about this resource, by `NAME`; repeatable with --store")
	f.StringVar(&o.application, "app", "", "only statements for this application, by catalog `ID`, in the portal")
	f.StringVar(&o.policy, "policy", "", "only statements of this policy, by `NAME`; with --store")
	f.StringVar(&o.quiet, "quiet", "30d", "`SPAN` without traffic")
	f.StringSliceVar(&o.clusters, "cluster", nil, clusterUsage)
	return cmd
}

func (o *unusedOptions) run(ctx context.Context) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.store == "" {
		return remotely(o.ask(ctx))
	}
	if o.application != "" {
		return usage("--app is for the portal, which knows the catalog")
	}
	return flowsFailed(o.work(ctx))
}

func (o *unusedOptions) work(ctx context.Context) error {
	for _, name := range o.resources {
		if err := exactName("--resource", name); err != nil {
			return err
		}
	}
	quiet, err := parseSpan("--quiet", o.quiet)
	if err != nil {
		return err
	}
	r, err := o.read(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	watch, err := insight.WatchedDays(ctx, r, r.now.Add(-quiet), r.now, nil)
	if err != nil {
		return err
	}
	fleet := fleetOf(r.set, o.clusters)
	found, err := insight.Unused(
		ctx,
		r,
		insight.UnusedInput{Snapshot: r.snapshot, Fleet: fleet, Resources: o.resources, Policy: o.policy, QuietFor: quiet, Now: r.now},
	)
	if err != nil {
		return err
	}
	silent := false
	for _, name := range statedResources(r.snapshot, o.resources) {
		if !watch.Covers(fleet, r.snapshot, name) {
			silent = true
			fmt.Fprintf(
				o.streams.Err,
				"The last %s were not watched from end to end in every member that %s is placed in, so nothing is said about it: see kubectl acp evidence.\n",
				o.quiet,
				name,
			)
		}
	}
	rows := [][]string{{"STATEMENT", "SUBJECTS", "ACTIONS", "RESOURCES", "LAST USED", "WHY"}}
	for _, u := range found {
		last := "never"
		if u.LastUsed != nil {
			last = moment(*u.LastUsed)
		}
		rows = append(
			rows,
			[]string{u.Ref.String(), join(u.Statement.Subjects), join(u.Statement.Actions), join(u.Statement.Resources), last, u.Reason.Render(language())},
		)
	}
	if err := o.print(found, section{"", rows}); err != nil {
		return err
	}
	if len(found) > 0 || silent {
		return errFindings
	}
	return nil
}

// statedResources returns the resources that statements name, exactly or with a wildcard, or the requested ones.
func statedResources(s *policy.Snapshot, given []string) []string {
	names := slices.Clone(given)
	if len(names) == 0 {
		for _, w := range s.Statements() {
			for _, r := range w.Statement.Resources {
				names = append(names, string(r))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func join[T ~string](list []T) string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return strings.Join(out, ",")
}

func (o *unusedOptions) ask(ctx context.Context) error {
	if o.policy != "" || len(o.resources) > 1 || len(o.resources) == 1 && o.application != "" {
		return usage("without --store give one --resource, or one --app, or neither for all that you own")
	}
	quiet, err := parseSpan("--quiet", o.quiet)
	if err != nil {
		return err
	}
	path := "/unused"
	switch {
	case len(o.resources) == 1:
		path = "/resources/" + url.PathEscape(o.resources[0]) + "/unused"
	case o.application != "":
		path = "/applications/" + url.PathEscape(o.application) + "/unused"
	}
	c, err := o.portal.connect()
	if err != nil {
		return err
	}
	days := max(int(quiet.Hours()/24), 1)
	q := url.Values{"quietDays": {strconv.Itoa(days)}}
	found := []portalclient.Unused{}
	rows := [][]string{{"STATEMENT", "SUBJECTS", "ACTIONS", "RESOURCES", "LAST USED", "WHY"}}
	silent := false
	for {
		var page portalclient.UnusedList
		if err := c.Get(ctx, path, q, &page); err != nil {
			return err
		}
		found = append(found, page.Items...)
		if page.Unobserved != nil {
			for _, name := range *page.Unobserved {
				silent = true
				fmt.Fprintf(o.streams.Err, "%s was not watched well enough to say anything.\n", name)
			}
		}
		if page.NextCursor == nil {
			break
		}
		q.Set("cursor", *page.NextCursor)
	}
	for _, u := range found {
		last := "never"
		if u.LastUsed != nil {
			last = moment(*u.LastUsed)
		}
		rows = append(
			rows,
			[]string{u.Policy + "/" + u.Sid, join(namesOf(u.Subjects)), join(u.Actions), join(namesOf(u.Resources)), last, u.Reason.Render(language())},
		)
	}
	if err := o.print(found, section{"", rows}); err != nil {
		return err
	}
	if len(rows) > 1 || silent {
		return errFindings
	}
	return nil
}

func namesOf(list []portalclient.CatalogRef) []string {
	out := make([]string, len(list))
	for i, n := range list {
		out[i] = n.Name
	}
	return out
}

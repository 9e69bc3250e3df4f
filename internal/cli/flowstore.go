package cli

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/flowstore"
	"github.com/acp-io/acp/internal/audit/insight"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/manifest"
	"github.com/acp-io/acp/internal/policy"
)

// windowPreset is the default window of questions about policies.
const windowPreset = "14d"

// window selects flows. Both ends are instants, or spans such as 14d before the instant of the question.
type window struct{ since, until string }

func (w *window) flags(cmd *cobra.Command, preset string) {
	w.since = preset
	cmd.Flags().StringVar(&w.since, "since", preset, "`INSTANT|SPAN` at which the window begins: 2026-01-31T12:00:00Z, or 14d, 36h, 90m before --until")
	cmd.Flags().StringVar(&w.until, "until", "", "`INSTANT|SPAN` at which the window ends (default: now)")
}

func (w *window) bounds(now time.Time) (since, until time.Time, err error) {
	until = now
	if w.until != "" {
		if until, err = instantBefore("--until", w.until, now); err != nil {
			return since, until, err
		}
	}
	if since, err = instantBefore("--since", w.since, until); err != nil {
		return since, until, err
	}
	if !since.Before(until) {
		return since, until, usage("--since %s is not before --until: there are no flows between them", w.since)
	}
	return since, until, nil
}

func instantBefore(flag, text string, end time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	d, err := parseSpan(flag, text)
	if err != nil {
		return time.Time{}, usage("%s %q is neither an instant such as 2026-01-31T12:00:00Z nor a span such as 14d or 36h", flag, text)
	}
	return end.Add(-d), nil
}

// maxSpan is longer than any store keeps flows.
const maxSpan = 10 * 366 * 24 * time.Hour

// parseSpan parses a duration, which may be in days.
func parseSpan(flag, text string) (time.Duration, error) {
	var d time.Duration
	var err error
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		d = time.Duration(n) * 24 * time.Hour
	} else {
		d, err = time.ParseDuration(text)
	}
	if err != nil || d <= 0 || d > maxSpan {
		return 0, usage("%s %q is not a span such as 14d or 36h", flag, text)
	}
	return d, nil
}

// flowSource is a flow store with the policies by which its flows are decided, or the portal, which has both.
type flowSource struct {
	output
	streams  Streams
	store    string
	policies source
	portal   remote
}

func newFlowSource(s Streams) flowSource {
	return flowSource{streams: s, policies: source{streams: s}, portal: remote{streams: s}}
}

func (o *flowSource) flags(cmd *cobra.Command) {
	o.storeFlags(cmd)
	o.policies.flags(cmd)
}

// storeFlags adds the flags of a command that needs no policies.
func (o *flowSource) storeFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.store, "store", "", "flow `STORE` to read: "+flowstore.Forms+" (default: the portal)")
	o.portal.flags(cmd)
	o.flag(cmd, asTable)
}

// check validates the flags of all commands about flows: either a store, or a portal.
func (o *flowSource) check() error {
	if err := o.output.check(); err != nil {
		return err
	}
	p := &o.policies
	if o.store == "" && (len(p.paths) > 0 || p.kubeconfig != "" || p.context != "" || p.known != "" || p.at != "" || p.strict) {
		return usage("-f, --strict, --kubeconfig, --context, --known-names and --at go with --store: the portal has policies of its own")
	}
	return nil
}

// open opens the store. The caller closes it.
func (o *flowSource) open(ctx context.Context) (flowstore.Reader, error) {
	where, err := flowstore.Parse(o.store, os.ReadFile)
	if err != nil {
		return nil, usage("--store: %v", err)
	}
	r, err := where.OpenReader(ctx)
	if err != nil {
		return nil, invalid(err)
	}
	return r, nil
}

// reading is an open store, the policies, and the instant of the question.
type reading struct {
	flowstore.Reader
	set      *manifest.Set
	snapshot *policy.Snapshot
	now      time.Time
}

// read opens the store and loads the policies. The caller closes the reading.
func (o *flowSource) read(ctx context.Context) (*reading, error) {
	now, err := o.policies.instant()
	if err != nil {
		return nil, err
	}
	r, err := o.open(ctx)
	if err != nil {
		return nil, err
	}
	set, err := o.policies.load(ctx, nil)
	if err != nil {
		_ = r.Close() // it is only read
		return nil, err
	}
	return &reading{Reader: r, set: set, snapshot: policy.NewSnapshot(set.Input), now: now}, nil
}

// clusterUsage is the usage text of the flag --cluster.
const clusterUsage = "`MEMBERS` that serve the resources; none: those that the classes place them in; with --store"

// fleetOf returns in which members resources are placed: the named ones, or else those that the classes select from the
// KubeFedClusters.
func fleetOf(set *manifest.Set, named []string) insight.Fleet {
	f := insight.Fleet{Everywhere: named, Known: len(set.Members) > 0}
	for _, m := range set.Members {
		f.Members = append(f.Members, insight.Member{Name: m.Name, Labels: m.Labels, Leaving: m.Annotations[federation.AnnotationLeaving] != ""})
	}
	return f
}

// print prints a value as JSON or YAML, or its tables.
func (o *flowSource) print(v any, tables ...section) error {
	if o.format != asTable {
		return o.document(o.streams.Out, v)
	}
	first := true
	for _, s := range tables {
		if len(s.rows) <= 1 {
			continue
		}
		title := s.title + "\n"
		if s.title == "" {
			title = ""
		}
		if !first {
			title = "\n" + title
		}
		first = false
		if err := write(o.streams.Out, []byte(title)); err != nil {
			return err
		}
		if err := table(o.streams.Out, s.rows); err != nil {
			return err
		}
	}
	return nil
}

// section is a table with a title. It is left out if it has only a heading.
type section struct {
	title string
	rows  [][]string
}

// flowsFailed returns a failure of the store with its exit code.
func flowsFailed(err error) error {
	var known *failure
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case errors.Is(err, audit.ErrInvalidQuery):
		return &failure{code: ExitUsage, err: err}
	}
	return invalid(err)
}

// exactName rejects a name that is not exact: it would find nothing, which looks like a result.
func exactName(flag, name string) error {
	n, err := policy.ParseName(name)
	if err != nil {
		return usage("%s: %v", flag, err)
	}
	if n.Wildcard || n.IsPrefix() {
		return usage("%s %q stands for several: give one exact name", flag, name)
	}
	return nil
}

// moment formats an instant without a time zone, for comparison by users.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04")
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/backup"
	"github.com/acp-io/acp/internal/configuration"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/hostcluster"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/ledger/anchor"
	"github.com/acp-io/acp/internal/version"
	"github.com/acp-io/acp/internal/wallclock"
)

// backupOptions are the settings of the commands backup and restore in addition to those of the portal.
type backupOptions struct {
	options
	to, from, laterLedger, held string
	anchorFiles                 []string
	holdGrants, nothingSince    bool
}

// command is a subcommand of portal.
type command struct {
	about string
	parse func(s *configuration.Settings, o *backupOptions)
	check func(o *backupOptions) error
	run   func(ctx context.Context, o *backupOptions, out io.Writer) error
}

func commands() map[string]command {
	return map[string]command{
		"backup": {
			about: "portal backup writes the portal's database, the ledger and ACP's objects of the host cluster into one file, " +
				"while everything runs. It takes the settings of the portal.",
			parse: func(s *configuration.Settings, o *backupOptions) {
				s.Group("Backup").StringVar(&o.to, "to", "", "`file` to write, which must not exist; required")
			},
			check: func(o *backupOptions) error {
				if o.to == "" {
					return errors.New("--to is required: the file that the backup is written to")
				}
				return nil
			},
			run: writeBackup,
		},
		"restore": {
			about: "portal restore restores a backup into an empty database and a host cluster that has ACP's CRDs and no objects of ACP, " +
				"while no portal runs. It takes the settings of the portal, and one of --later-ledger, --hold-grants and --nothing-since.",
			parse: func(s *configuration.Settings, o *backupOptions) {
				f := s.Group("Restore")
				f.StringVar(&o.from, "from", "", "`file` that portal backup wrote; required")
				f.StringVar(
					&o.laterLedger,
					"later-ledger",
					"",
					"`file` with an export of the ledger that contains what followed the backup: grants that ended in it are not restored",
				)
				f.BoolVar(
					&o.holdGrants,
					"hold-grants",
					false,
					"nothing is known about the time after the backup: no grant is restored, and every access must be requested again",
				)
				f.BoolVar(
					&o.nothingSince,
					"nothing-since",
					false,
					"no portal ran after the backup and nobody changed ACP's objects, as when everything moves: all grants are restored",
				)
				f.StringSliceVar(&o.anchorFiles, "anchor-heads", nil, "`files` with heads of the ledger that anchors kept; the ledger must reach them")
				f.StringVar(&o.held, "held", "held-statements.yaml", "`file` to write statements to that were not made in the portal and are not restored")
			},
			check: checkRestore,
			run:   restoreBackup,
		},
	}
}

func checkRestore(o *backupOptions) error {
	if o.from == "" {
		return errors.New("--from is required: the file that portal backup wrote")
	}
	ways := 0
	for _, given := range []bool{o.laterLedger != "", o.holdGrants, o.nothingSince} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		return errors.New("give one of --later-ledger, --hold-grants and --nothing-since: what was revoked after the backup must not come back")
	}
	return nil
}

// program returns the command as a program of its own.
func (c command) program(name string) configuration.Program[*backupOptions] {
	return configuration.Program[*backupOptions]{
		Name: "portal " + name,
		Parse: func(args []string, stdout io.Writer) (*backupOptions, error) {
			return parseCommand(name, c, args, stdout)
		},
		Serve: func(ctx context.Context, o *backupOptions, stdout, _ io.Writer) error {
			return o.explain(c.run(ctx, o, stdout))
		},
	}
}

// parseCommand parses the settings of a subcommand.
func parseCommand(name string, c command, args []string, out io.Writer) (*backupOptions, error) {
	o := &backupOptions{}
	s := settingsFor("portal "+name, c.about, &o.options)
	c.parse(s, o)
	o.explain = s.Explain
	if err := s.ParseProcess(args, out); err != nil {
		return o, err
	}
	err := c.check(o)
	if err == nil {
		err = o.checkDatabase(s)
	}
	if err != nil {
		return o, s.Explain(err)
	}
	o.complete()
	return o, s.Print(out)
}

func (o *backupOptions) hostClient(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register ACP's kinds: %w", err)
	}
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 200, 400
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make the host cluster's client: %w", err)
	}
	return c, nil
}

// open opens the database and the host cluster, and reads the anchored heads. The caller closes the database.
func (o *backupOptions) open(ctx context.Context) (db *database.DB, c client.Client, heads []ledger.Witness, err error) {
	config, err := hostcluster.Config(o.kubeconfig)
	if err != nil {
		return nil, nil, nil, err
	}
	if c, err = o.hostClient(config); err != nil {
		return nil, nil, nil, err
	}
	cluster, err := typedcorev1.NewForConfig(config)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("make the host cluster's client: %w", err)
	}
	anchors, err := anchor.Parse(o.ledgerAnchors, cluster, o.namespace)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("--ledger-anchor %w", err)
	}
	if heads, err = anchor.Witnesses(ctx, anchors); err != nil {
		return nil, nil, nil, fmt.Errorf("read the anchored heads of the ledger (--ledger-anchor=none reads none): %w", err)
	}
	dsn, err := o.dsn()
	if err != nil {
		return nil, nil, nil, err
	}
	db, err = database.Open(ctx, dsn)
	return db, c, heads, err
}

func writeBackup(ctx context.Context, o *backupOptions, out io.Writer) (err error) {
	db, c, witnesses, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	heads := make([]ledger.Head, len(witnesses))
	for i, w := range witnesses {
		heads[i] = w.Head
	}
	m, err := backup.Write(ctx, backup.Source{Database: db, Host: c, Heads: heads, Version: version.String(), Now: wallclock.Now}, o.to)
	if err != nil {
		return err
	}
	var records int64
	for _, f := range m.Files {
		records += f.Records
	}
	_, err = fmt.Fprintf(
		out,
		"wrote %s: %d records, the ledger up to line %d\n"+
			"it contains no credentials, but who may reach what and why: keep it encrypted, away from the host cluster and the database\n",
		o.to,
		records,
		m.Head.Seq,
	)
	return err
}

func restoreBackup(ctx context.Context, o *backupOptions, out io.Writer) (err error) {
	a, err := backup.Open(o.from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	t := backup.Target{Mode: backup.ModeNothingSince, Now: wallclock.Now, Progress: func(what string) { _, _ = fmt.Fprintln(out, what, "…") }}
	switch {
	case o.holdGrants:
		t.Mode = backup.ModeHoldGrants
	case o.laterLedger != "":
		t.Mode, t.LedgerExport = backup.ModeLedger, exported(o.laterLedger)
	}
	if t.Database, t.Host, t.Heads, err = o.open(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Database.Close()) }()
	for _, file := range o.anchorFiles {
		heads, err := (&anchor.File{Path: file}).Heads(ctx)
		if err == nil && len(heads) == 0 {
			err = errors.New("it has no heads")
		}
		if err != nil {
			return fmt.Errorf("--anchor-heads %s: %w", file, err)
		}
		for _, h := range heads {
			t.Heads = append(t.Heads, ledger.Witness{Anchor: file, Head: h})
		}
	}
	held := &lazyFile{path: o.held}
	defer func() { err = errors.Join(err, held.close()) }()
	t.Withheld = held
	r, err := backup.Restore(ctx, a, t)
	if err != nil {
		return err
	}
	return describe(out, r, held)
}

// exported returns the lines of an exported ledger.
func exported(file string) iter.Seq2[ledger.Line, error] {
	return func(yield func(ledger.Line, error) bool) {
		f, err := os.Open(file)
		if err != nil {
			yield(ledger.Line{}, fmt.Errorf("--later-ledger: %w", err))
			return
		}
		defer func() { _ = f.Close() }() // only read
		for l, err := range ledger.ReadExport(f) {
			if !yield(l, err) || err != nil {
				return
			}
		}
	}
}

// mostListed is the maximum number of names of a kind that the report lists.
const mostListed = 20

func describe(out io.Writer, r backup.Report, held *lazyFile) error {
	var b strings.Builder
	fmt.Fprintf(&b, "restored the backup of %s: %d tickets, %d objects\n", r.Backup.At.Format("2006-01-02 15:04:05 MST"), r.Tickets, r.Objects)
	list := func(title string, names []string) {
		if len(names) == 0 {
			return
		}
		shown := names[:min(len(names), mostListed)]
		fmt.Fprintf(&b, "%s (%d): %s", title, len(names), strings.Join(shown, ", "))
		if len(shown) < len(names) {
			b.WriteString(", …")
		}
		b.WriteString("\n")
	}
	list("not restored, because they may have ended since: grants and requests of the tickets", r.Ended)
	list("ended, because decisions made since are not known: access reviews", r.EndedReviews)
	list("ended, because decisions made since are not known: versions of access packages for existing holders", r.EndedUpdates)
	list("not restored, or without some statements", r.Withheld)
	if held.file != nil {
		fmt.Fprintf(&b, "the statements that were not made in the portal are in %s: look at them, and apply those that still stand with kubectl\n", held.path)
	}
	list("changed after the backup, and now as they were then: look at them before members join", r.Changed)
	var other []string
	for action, n := range r.OtherLines {
		other = append(other, fmt.Sprintf("%s ×%d", action, n))
	}
	slices.Sort(other)
	list("other changes after the backup, which are lost", other)
	if r.Mode == backup.ModeLedger && !r.Anchored {
		b.WriteString("no anchor vouches that the later ledger is complete: what ended after its last line may have come back\n")
	}
	b.WriteString("next: start the portal and the adapter, and let the members join again (docs/backup.md)\n")
	_, err := io.WriteString(out, b.String())
	return err
}

// lazyFile is a file that is created by the first write. Only its owner may read it.
type lazyFile struct {
	path string
	file *os.File
}

func (l *lazyFile) Write(p []byte) (n int, err error) {
	if l.file == nil {
		if l.file, err = os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
			return 0, fmt.Errorf("--held: %w", err)
		}
	}
	return l.file.Write(p)
}

func (l *lazyFile) close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

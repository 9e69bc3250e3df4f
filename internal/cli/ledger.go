package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/message"
)

func newLedger(s Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ledger",
		Short: "Verify and export the record of decisions",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newLedgerVerify(s), newLedgerExport(s))
	return cmd
}

type ledgerVerifyOptions struct {
	output
	remote
	file    string
	anchors []string
	from    int64
}

func newLedgerVerify(s Streams) *cobra.Command {
	o := &ledgerVerifyOptions{remote: remote{streams: s}}
	cmd := &cobra.Command{
		Use:   "verify [--file FILE | --server URL] [--anchor FILE...]",
		Short: "Recompute the chain of the ledger and compare it with anchored heads",
		Long: `Recompute the chain of an export, or of a portal's ledger, and compare it with anchored heads. The verification runs on
this machine: the portal only provides the lines.

Every line contains the hash of the line before it, so a line that was changed, removed, added or moved is detected and named.
Somebody who can write the whole database could write another consistent chain; heads that were anchored elsewhere exclude
that for the lines up to them. An anchor file has one head per line. The heads of the ConfigMap are printed by
  kubectl -n acp-system get configmap acp-ledger-anchor -o jsonpath='{.data.heads\.jsonl}'

Exit codes: 0 the ledger is whole, 1 it is broken and the first broken line is named, 2 wrong usage, 3 a file cannot be read,
4 the portal refused or could not be reached.`,
		Example: `  kubectl acp ledger verify --server https://acp.example.com --anchor heads.jsonl
  kubectl acp ledger verify --file ledger.jsonl --anchor heads.jsonl`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.StringVar(&o.file, "file", "", "`FILE` with an export, or - for standard input (default: the portal)")
	f.StringArrayVar(&o.anchors, "anchor", nil, "`FILE` with anchored heads; repeatable")
	f.Int64Var(&o.from, "from", 1, "first `LINE` to verify; only an anchored head can verify the lines before it")
	o.flag(cmd, asTable)
	o.flags(cmd)
	return cmd
}

// ledgerVerdict is the output of verify.
type ledgerVerdict struct {
	Intact bool   `json:"intact"`
	First  int64  `json:"first"` // the range of valid lines
	Last   int64  `json:"last"`
	Hash   string `json:"hash,omitempty"` // of the last line
	// Anchored is what anchors confirm; absent if the lines contain no anchored head.
	Anchored *ledgerCoverage `json:"anchored,omitempty"`
	Broken   *ledgerBreak    `json:"broken,omitempty"`
}

type ledgerCoverage struct {
	Line   int64     `json:"line"`
	Since  time.Time `json:"since"`
	Latest time.Time `json:"latest"`
	Heads  int       `json:"heads"`
}

type ledgerBreak struct {
	// Line is the number of a ledger line, or FileLine of a line of the file that is not a line of an export.
	Line     int64  `json:"line,omitempty"`
	FileLine int64  `json:"fileLine,omitempty"`
	Reason   string `json:"reason"`
	// Message is the reason with its code, for Line.
	Message message.Message `json:"message,omitzero"`
}

func (b *ledgerBreak) text() string {
	if b.Message.IsZero() {
		return b.Reason
	}
	return b.Message.Render(language())
}

func (o *ledgerVerifyOptions) run(ctx context.Context) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.file != "" && o.server != "" {
		return usage("--file and --server: name one of them")
	}
	if o.from < 1 {
		return usage("--from %d: lines count from 1", o.from)
	}
	var witnesses []ledger.Witness
	for _, path := range o.anchors {
		heads, err := readAnchor(path)
		if err != nil {
			return invalid(err)
		}
		witnesses = append(witnesses, heads...)
	}
	verdict, err := o.verdict(ctx, witnesses)
	if err != nil {
		return err
	}
	if err := o.print(verdict); err != nil {
		return err
	}
	if !verdict.Intact {
		return errFindings
	}
	return nil
}

func (o *ledgerVerifyOptions) verdict(ctx context.Context, witnesses []ledger.Witness) (ledgerVerdict, error) {
	if o.file == "" {
		return o.verifyPortal(ctx, witnesses)
	}
	in := o.streams.In
	if o.file != "-" {
		file, err := os.Open(o.file)
		if err != nil {
			return ledgerVerdict{}, invalid(fmt.Errorf("read the export: %w", err))
		}
		defer func() { _ = file.Close() }() // it is only read
		in = file
	}
	v, err := verify(in, o.from, witnesses)
	if err != nil {
		return v, invalid(fmt.Errorf("read the export: %w", err))
	}
	return v, nil
}

// verifyPortal verifies the lines while they are received.
func (o *ledgerVerifyOptions) verifyPortal(ctx context.Context, witnesses []ledger.Witness) (ledgerVerdict, error) {
	client, err := o.connect()
	if err != nil {
		return ledgerVerdict{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in, out := io.Pipe()
	go func() { _ = out.CloseWithError(export(ctx, client, o.from, out)) }() // the reader receives the error
	v, err := verify(in, o.from, witnesses)
	_ = in.CloseWithError(io.ErrClosedPipe) // an invalid line ends the reading
	return v, remotely(err)
}

func readAnchor(path string) ([]ledger.Witness, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the anchor: %w", err)
	}
	defer func() { _ = file.Close() }() // it is only read
	var out []ledger.Witness
	for h, err := range ledger.ReadHeads(file) {
		if err != nil {
			return nil, fmt.Errorf("read the anchor %s: %w", path, err)
		}
		out = append(out, ledger.Witness{Anchor: path, Head: h})
	}
	return out, nil
}

// verify verifies an export. It returns an error if the export could not be read.
func verify(in io.Reader, from int64, witnesses []ledger.Witness) (ledgerVerdict, error) {
	r, err := ledger.Check(ledger.ReadExport(in), from, witnesses)
	v := ledgerVerdict{Intact: err == nil, First: r.First, Last: r.Last, Hash: r.Hash}
	if c := r.Covered; c != nil {
		v.Anchored = &ledgerCoverage{Line: c.Line, Since: c.Since.UTC(), Latest: c.Latest.UTC(), Heads: c.Heads}
	}
	var broken *ledger.BrokenError
	var form *ledger.FormatError
	switch {
	case errors.As(err, &broken):
		v.Broken = &ledgerBreak{Line: broken.Seq, Reason: broken.Error(), Message: broken.Message()}
	case errors.As(err, &form):
		v.Broken = &ledgerBreak{FileLine: form.Line, Reason: form.Error()}
	case err != nil:
		return v, err
	}
	return v, nil
}

func (o *ledgerVerifyOptions) print(v ledgerVerdict) error {
	if o.format != asTable {
		return o.document(o.streams.Out, v)
	}
	text := fmt.Sprintf("lines %d to %d are whole\n", v.First, v.Last)
	if v.Last < v.First {
		text = "no line is whole\n"
		if v.Intact {
			text = "there are no lines\n"
		}
	}
	switch {
	case v.Broken != nil:
		text += v.Broken.text() + "\n"
	case v.Anchored != nil:
		text += fmt.Sprintf("anchored up to line %d: heads kept since %s, the latest at %s\n",
			v.Anchored.Line, v.Anchored.Since.Format(time.RFC3339), v.Anchored.Latest.Format(time.RFC3339))
		if v.Anchored.Line < v.Last {
			text += fmt.Sprintf("lines after %d were not anchored yet\n", v.Anchored.Line)
		}
	default:
		text += "no anchored head is among them: another chain that fits itself would look the same\n"
	}
	return write(o.streams.Out, []byte(text))
}

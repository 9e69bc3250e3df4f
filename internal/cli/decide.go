package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// maxQuery bounds one line of queries.
const maxQuery = 1 << 20

type decideOptions struct {
	source
	output
	declarations
	queries string
}

// answer is one line of output.
type answer struct {
	Decision policy.Verdict  `json:"decision,omitempty"`
	Reason   message.Message `json:"reason,omitzero"`
	// Statements contains the statements that determined the decision; never null.
	Statements []policy.Ref `json:"statements"`
	// Written is the decision by the statements as written, if the members differ because of LeftOut.
	Written policy.Verdict `json:"written,omitempty"`
	// LeftOut are the statements that the members do not have, with the reason.
	LeftOut []leftOut `json:"leftOut,omitempty"`
	// Waiting are allows of requests that do not count until their own resource is in Enforce.
	Waiting []policy.Ref `json:"waiting,omitempty"`
	// Expected is set if it differs from the decision.
	Expected policy.Verdict `json:"expected,omitempty"`
	// Error is why the line is not a valid query; there is then no decision.
	Error string `json:"error,omitempty"`
}

// leftOut is a statement that the members do not have.
type leftOut struct {
	policy.Ref
	Reason  string          `json:"reason"`
	Message message.Message `json:"message"`
}

func effectiveAnswer(d *policy.Effective) answer {
	a := answer{Decision: d.Verdict, Reason: d.Explain(), Statements: append([]policy.Ref{}, d.Statements...), Waiting: d.Waiting}
	if d.Differs() {
		a.Written = d.Written.Verdict
	}
	for _, r := range d.LeftOut {
		a.LeftOut = append(a.LeftOut, leftOut{Ref: r.Ref, Reason: r.Reason, Message: r.Message})
	}
	return a
}

func newDecide(s Streams) *cobra.Command {
	o := &decideOptions{source: source{streams: s}}
	cmd := &cobra.Command{
		Use:   "decide [-f FILE|DIR...] --queries FILE|-",
		Short: "Evaluate the policies for connections",
		Long: `Evaluate the policies for connections: one JSON object per input line, one per output line, in the same order.

A query has subjects and resources (names), or sourceIP for a source outside the fleet; port, protocol (TCP), and
optionally cluster, method, path, at (an instant) and expect (the decision that is expected). The answer has decision
(allowed, denied, default-denied, audited, unmanaged), reason and statements. It is the decision of the members: if refused
statements change it, written is the decision that the statements define, and leftOut lists the refused statements. A prefix
matches the names of --known-names and of the objects. What Istio enforces depends on what its members declare, as in render.
If the members are known, a cluster that is not one of them is an error. The exit code is 1 if a decision differs from the
expected one, and 3 if a line is not a query; the other lines are evaluated nevertheless.`,
		Example: `  echo '{"subjects":["trnv1:rsc:trip-com:iam:sa:app/888"],"resources":["trnv1:rsc:trip-com:redis:clusters:bobs-cluster"],"port":6379}' |
    kubectl acp decide -f policies/ --queries -`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	o.flags(cmd)
	o.output.flag(cmd, asJSON)
	o.declarations.flag(cmd)
	cmd.Flags().StringVar(&o.queries, "queries", "", "`FILE` with one query per line, or - for standard input (required)")
	return cmd
}

func (o *decideOptions) run(cmd *cobra.Command, args []string) error {
	at, err := o.instant()
	if err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	if o.queries == "" {
		return usage("--queries is needed: a file, or - for standard input")
	}
	if o.queries == "-" && slices.Contains(slices.Concat(o.paths, args), "-") {
		return usage("objects and queries cannot both come from standard input")
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
	in := o.streams.In
	if o.queries != "-" {
		f, err := os.Open(o.queries)
		if err != nil {
			return invalid(fmt.Errorf("read the queries: %w", err))
		}
		defer f.Close()
		in = f
	}
	out := bufio.NewWriter(o.streams.Out)
	p := &printer{format: o.format, w: out}
	snapshot := policy.NewSnapshot(set.Input)
	result := eachLine(in, func(number int, line []byte) error {
		q, expected, err := decodeQuery(line, at)
		if err == nil {
			err = snapshot.CheckCluster(q.Cluster)
		}
		if err != nil {
			fmt.Fprintf(o.streams.Err, "%s:%d: %v\n", o.queries, number, err)
			return p.print(number, answer{Error: fmt.Sprintf("line %d: %v", number, err), Statements: []policy.Ref{}})
		}
		d := snapshot.DecideEffective(&q)
		a := effectiveAnswer(&d)
		if expected != "" && expected != d.Verdict {
			fmt.Fprintf(o.streams.Err, "%s:%d: %s, expected %s: %s\n", o.queries, number, d.Verdict, expected, a.Reason.Render(language()))
			a.Expected = expected
		}
		return p.print(number, a)
	})
	if err := errors.Join(result, p.finish()); err != nil {
		return invalid(err)
	}
	if err := out.Flush(); err != nil {
		return invalid(fmt.Errorf("write the answers: %w", err))
	}
	switch {
	case p.errors > 0:
		return &failure{code: ExitInvalid}
	case p.unexpected > 0:
		return errFindings
	}
	return nil
}

// eachLine calls f for every line that is not empty.
func eachLine(r io.Reader, f func(number int, line []byte) error) error {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxQuery)
	number := 0
	for s.Scan() {
		number++
		if line := bytes.TrimSpace(s.Bytes()); len(line) > 0 {
			if err := f(number, line); err != nil {
				return err
			}
		}
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("read the queries after line %d: %w", number, err)
	}
	return nil
}

// printer prints the answers: immediately in JSON and YAML, at the end as a table.
type printer struct {
	format             string
	w                  io.Writer
	rows               [][]string
	errors, unexpected int
}

func (p *printer) print(number int, a answer) error {
	if a.Error != "" {
		p.errors++
	}
	if a.Expected != "" {
		p.unexpected++
	}
	var text []byte
	var err error
	switch p.format {
	case asTable:
		var refs []string
		for _, r := range a.Statements {
			refs = append(refs, r.String())
		}
		note := a.Reason.Render(language())
		switch {
		case a.Error != "":
			note = "error: " + a.Error
		case a.Expected != "":
			note = "expected " + string(a.Expected) + ": " + note
		}
		p.rows = append(p.rows, []string{fmt.Sprint(number), string(a.Decision), strings.Join(refs, ","), note})
		return nil
	case asYAML:
		if text, err = yaml.Marshal(a); err == nil {
			text = append([]byte("---\n"), text...)
		}
	default:
		if text, err = json.Marshal(a); err == nil {
			text = append(text, '\n')
		}
	}
	if err != nil {
		return fmt.Errorf("encode an answer: %w", err)
	}
	return write(p.w, text)
}

func (p *printer) finish() error {
	if p.format != asTable {
		return nil
	}
	return table(p.w, slices.Insert(p.rows, 0, []string{"LINE", "DECISION", "STATEMENTS", "REASON"}))
}

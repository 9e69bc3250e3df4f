package main

import (
	"fmt"
	"iter"
	"os"
	"time"

	"github.com/acp-io/acp/internal/ledger"
)

const ledgerLines = 1_000_000

// measureLedger verifies an export of a million lines from a file, with an anchored head for every thousandth.
func measureLedger() (err error) {
	file, err := os.CreateTemp("", "acp-bench-ledger-*")
	if err != nil {
		return fmt.Errorf("make a ledger: %w", err)
	}
	defer func() {
		_ = file.Close() // only read
		if gone := os.Remove(file.Name()); err == nil {
			err = gone
		}
	}()
	var witnesses []ledger.Witness
	if _, err := ledger.Export(file, manyLines(&witnesses)); err != nil {
		return err
	}
	var problem error
	took := fastest(3, func() {
		if _, err := file.Seek(0, 0); err != nil {
			problem = err
			return
		}
		r, err := ledger.Check(ledger.ReadExport(file), 1, witnesses)
		if err != nil || r.Last != ledgerLines || r.Covered.Heads != len(witnesses) {
			problem = fmt.Errorf("a whole ledger is called %+v: %w", r, err)
		}
	})
	if problem != nil {
		return problem
	}
	report("ledger_verify_lines_per_s", ledgerLines/took.Seconds(), "lines/s")
	return nil
}

func manyLines(witnesses *[]ledger.Witness) iter.Seq2[ledger.Line, error] {
	return func(yield func(ledger.Line, error) bool) {
		prev := ledger.Line{Hash: ledger.Genesis}
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for i := range ledgerLines {
			e := ledger.Entry{
				At:     at.Add(time.Duration(i) * time.Second),
				Actor:  fmt.Sprintf("person.%d", i%997),
				Action: "ticket.step-approved",
				Object: fmt.Sprintf(
					"T-%d",
					i/5,
				),
				Details: map[string]string{"state": "pending", "step": "owner", "comment": "It is needed for the spring sale."},
			}
			l, err := ledger.Append(prev.Seq, prev.Hash, e)
			if !yield(l, err) || err != nil {
				return
			}
			if prev = l; l.Seq%1000 == 0 {
				*witnesses = append(*witnesses, ledger.Witness{Anchor: "bench", Head: ledger.Head{Seq: l.Seq, Hash: l.Hash, At: at}})
			}
		}
	}
}

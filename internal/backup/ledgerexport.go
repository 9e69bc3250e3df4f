package backup

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/acp-io/acp/internal/accessreview"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/ledger"
)

// ledgerExport is the content of an export of the ledger about the time after a backup.
type ledgerExport struct {
	lines []ledger.Line
	// items has the last state of each item of a ticket that a line names.
	items map[int64]map[int]approval.State
	// ended are the tickets of which all items ended, and withdrawn those whose pending items did.
	ended, withdrawn map[int64]bool
	// shortened are the items of tickets that got an earlier end.
	shortened map[approval.Target]bool
	// objects are the objects, as KIND/NAME, that were changed outside of the portal, or by a ticket.
	objects map[string]bool
	// workloads are the names of ExternalWorkloads that were registered or removed.
	workloads map[string]bool
	// delegations were made or ended, as "FROM -> TO".
	delegations map[string]bool
	// lastTicket is the highest number of a ticket.
	lastTicket int64
	// lastReview is the highest number of an access review.
	lastReview int64
	// other counts the remaining lines by action, for the report.
	other map[string]int
}

// readLedgerExport collects the lines after the backup's ledger. It does not verify them: see Restore.
func readLedgerExport(lines iter.Seq2[ledger.Line, error], after int64) (*ledgerExport, error) {
	l := newLedgerExport()
	for line, err := range lines {
		if err != nil {
			return nil, err
		}
		if line.Seq <= after {
			continue
		}
		e, err := line.Entry()
		if err != nil {
			return nil, err
		}
		l.lines = append(l.lines, line)
		l.add(e)
	}
	return l, nil
}

func newLedgerExport() *ledgerExport {
	return &ledgerExport{
		items:       map[int64]map[int]approval.State{},
		ended:       map[int64]bool{},
		withdrawn:   map[int64]bool{},
		objects:     map[string]bool{},
		workloads:   map[string]bool{},
		delegations: map[string]bool{},
		shortened:   map[approval.Target]bool{},
		other:       map[string]int{},
	}
}

func (l *ledgerExport) add(e ledger.Entry) {
	kind, _, _ := strings.Cut(e.Action, ".")
	switch {
	case kind == "ticket":
		l.ticket(e)
	case kind == "review":
		if number, ok := accessreview.ParseID(e.Object); ok {
			l.lastReview = max(l.lastReview, number)
		}
		l.other[e.Action]++
	case kind == "object":
		l.objects[e.Object] = true
	case e.Action == "workloads.registered" || e.Action == "workloads.removed":
		for id := range e.Details {
			l.workloads[e.Object+"."+id] = true
		}
	case kind == "delegation":
		l.delegations[e.Object] = true
	case kind == "member" || kind == "token" || kind == "sessions" || kind == "device": // nothing of it is restored
	default:
		l.other[e.Action]++
	}
}

func (l *ledgerExport) ticket(e ledger.Entry) {
	number, ok := approval.ParseID(e.Object)
	if !ok {
		return
	}
	l.lastTicket = max(l.lastTicket, number)
	if o := e.Details["object"]; o != "" {
		l.objects[o] = true
	}
	state := approval.State(e.Details["state"])
	if n, err := strconv.Atoi(e.Details["item"]); err == nil && n > 0 {
		if e.Action == "ticket."+string(approval.EventShortened) {
			l.shortened[approval.Target{Ticket: number, Item: n - 1}] = true
		}
		if l.items[number] == nil {
			l.items[number] = map[int]approval.State{}
		}
		l.items[number][n-1] = state
		return
	}
	// The line is about the whole ticket, and its state is the sum of the items' states.
	l.withdrawn[number] = l.withdrawn[number] || e.Action == "ticket."+string(approval.EventWithdrawn)
	l.ended[number] = slices.Contains(
		[]approval.State{approval.StateRevoked, approval.StateExpired, approval.StateRejected, approval.StateTimedOut, approval.StateWithdrawn},
		state,
	)
}

// stands reports whether an item that a backup has in a state is, according to the later lines, still in it or further on. A grant
// whose approvals became void later does not stand, and neither does one that failed.
func (l *ledgerExport) stands(number int64, item int, state approval.State) bool {
	// The backup has a later end than the grant has; its new end is not in the ledger in a form that can be restored.
	if l.shortened[approval.Target{Ticket: number, Item: item}] {
		return false
	}
	if l.ended[number] || l.withdrawn[number] && state == approval.StatePending {
		return false
	}
	now, recorded := l.items[number][item]
	switch {
	case !recorded:
		return true
	case now == approval.StatePending:
		return state == approval.StatePending
	default:
		return now.MayBeOnHost() && now != approval.StateFailed
	}
}

// mentions reports whether a line is about a ticket.
func (l *ledgerExport) mentions(number int64) bool {
	_, recorded := l.ended[number]
	return recorded || len(l.items[number]) > 0
}

// objectNames returns the objects that changed, in order.
func (l *ledgerExport) objectNames() []string {
	var out []string
	for o := range l.objects {
		out = append(out, o)
	}
	slices.Sort(out)
	return out
}

// checkLedger verifies the whole chain, the backup's lines and the later ones, and that it reaches every head that was kept.
func checkLedger(a *Archive, l *ledgerExport, heads []ledger.Witness) error {
	lines := func(yield func(ledger.Line, error) bool) {
		for line, err := range ledgerLines(a) {
			if !yield(line, err) || err != nil {
				return
			}
		}
		for _, line := range l.lines {
			if !yield(line, nil) {
				return
			}
		}
	}
	if _, err := ledger.Check(lines, 1, heads); err != nil {
		return fmt.Errorf("the ledger of the backup and what follows it do not fit: %w", err)
	}
	return nil
}

// readLedger reads and verifies what is known about the time after the backup.
func (t Target) readLedger(a *Archive, r *Report) (*ledgerExport, error) {
	l, err := newLedgerExport(), error(nil)
	if t.Mode == ModeLedger {
		if l, err = readLedgerExport(t.LedgerExport, a.Head.Seq); err != nil {
			return nil, fmt.Errorf("read the later ledger: %w", err)
		}
	}
	heads := slices.Clone(t.Heads)
	for h, err := range decode[ledger.Head](a, headsFile) {
		if err != nil {
			return nil, err
		}
		heads = append(heads, ledger.Witness{Anchor: "the backup", Head: h})
	}
	last := a.Head.Seq + int64(len(l.lines))
	for _, h := range heads {
		r.Anchored = r.Anchored || h.Seq == last
	}
	switch t.Mode {
	case ModeLedger:
	case ModeNothingSince:
		for _, h := range heads {
			if h.Seq > last {
				return nil, fmt.Errorf(
					"%s kept line %d of the ledger, and the backup ends at line %d: something happened after the backup, so give the later ledger, "+
						"or hold the grants",
					h.Anchor,
					h.Seq,
					last,
				)
			}
		}
	case ModeHoldGrants:
		heads = slices.DeleteFunc(heads, func(h ledger.Witness) bool { return h.Seq > last })
	default:
		return nil, fmt.Errorf("%q is not a way to restore", t.Mode)
	}
	r.Changed, r.OtherLines = l.objectNames(), l.other
	return l, checkLedger(a, l, heads)
}

// ledgerLines yields the lines of the ledger in an archive.
func ledgerLines(a *Archive) iter.Seq2[ledger.Line, error] {
	return func(yield func(ledger.Line, error) bool) {
		var cols []column
		for text, err := range a.records(tableFile("ledger")) {
			if err != nil {
				yield(ledger.Line{}, err)
				return
			}
			if cols == nil {
				var h header
				if err := json.Unmarshal(text, &h); err != nil || len(h.Columns) == 0 {
					yield(ledger.Line{}, errors.New("the ledger in the backup has no columns"))
					return
				}
				cols = h.Columns
				continue
			}
			row, err := parseRow(text, cols)
			var line ledger.Line
			for i, c := range cols {
				switch c.Name {
				case "seq":
					line.Seq, _ = columnValue[int64](row, i)
				case "hash":
					line.Hash, _ = columnValue[string](row, i)
				case "text":
					line.Text, _ = columnValue[string](row, i)
				}
			}
			if !yield(line, err) || err != nil {
				return
			}
		}
	}
}

func columnValue[T any](row []any, i int) (v T, ok bool) {
	if i < len(row) {
		v, ok = row[i].(T)
	}
	return v, ok
}

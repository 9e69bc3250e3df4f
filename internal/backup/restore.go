package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"gorm.io/gorm"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	packagestore "github.com/acp-io/acp/internal/accesspackage/gormstore"
	"github.com/acp-io/acp/internal/accesspackage/holderupdate"
	"github.com/acp-io/acp/internal/accessreview"
	reviewstore "github.com/acp-io/acp/internal/accessreview/gormstore"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/gormstore"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/ledger"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
	"github.com/acp-io/acp/internal/message"
)

// Mode is what a restore assumes about the time since the backup.
type Mode string

const (
	// ModeLedger restores what, by an export of the ledger, has not ended since the backup.
	ModeLedger Mode = "ledger"
	// ModeNothingSince restores everything: the operator states that no portal ran and nobody changed ACP's objects after the
	// backup, as for a move.
	ModeNothingSince Mode = "nothing-since"
	// ModeHoldGrants restores no allow, because nothing is known about the time since the backup.
	ModeHoldGrants Mode = "hold-grants"
)

// ActionRestored is the ledger's action of a restore.
const ActionRestored = "portal.restored"

// skippedNumbers is how many numbers of tickets are left out when it is not known which were used after the backup. A statement is
// named after its ticket's number, so a number must not be used twice.
const skippedNumbers = 100_000

// Target is the destination of a restore, with its options.
type Target struct {
	// Database must be empty, and Host must have ACP's CRDs and none of its objects but those that an earlier try of the same restore
	// placed.
	Database *database.DB
	Host     client.Client
	Mode     Mode
	// LedgerExport contains the lines that followed the backup; required for ModeLedger.
	LedgerExport iter.Seq2[ledger.Line, error]
	// Heads are the heads of the ledger that anchors have stored, in addition to those in the backup.
	Heads []ledger.Witness
	// Withheld gets the statements that were not made in the portal and are not restored, as policies in YAML.
	Withheld io.Writer
	Now      func() time.Time
	// Progress is called with each step before it begins, unless it is nil.
	Progress func(string)
}

// Report contains the results of a restore.
type Report struct {
	Backup  Manifest
	Tickets int64
	Objects int
	Mode    Mode
	// Anchored reports whether a head that was stored elsewhere confirms the end of the ledger.
	Anchored bool
	// Ended are the grants and requests that did not come back, as T-NUMBER.
	Ended []string
	// EndedReviews are the access reviews that were in progress and ended, as R-NUMBER.
	EndedReviews []string
	// EndedUpdates are the updates of holders of access packages that were in progress and ended, as package/version.
	EndedUpdates []string
	// Withheld are the policies that lack statements which were not made in the portal, and the objects that are not restored.
	Withheld []string
	// Changed are the objects that changed after the backup and are restored as they were at the backup, as KIND/NAME.
	Changed []string
	// OtherLines counts, by action, the lines since the backup of which nothing was restored.
	OtherLines map[string]int
	// Delegations is the number of delegations that were ended.
	Delegations int
}

// Restore restores an archive.
func Restore(ctx context.Context, a *Archive, t Target) (r Report, err error) {
	if t.Progress == nil {
		t.Progress = func(string) {}
	}
	r = Report{Backup: a.Manifest, Mode: t.Mode}
	if err := checkTarget(ctx, a, t.Database); err != nil {
		return r, err
	}
	t.Progress("verifying the ledger")
	l, err := t.readLedger(a, &r)
	if err != nil {
		return r, err
	}
	dir, err := os.MkdirTemp("", "acp-restore-")
	if err != nil {
		return r, fmt.Errorf("make a folder for the scratch database: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	scratch, err := database.Open(ctx, "sqlite:"+filepath.Join(dir, "scratch.db"))
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, scratch.Close()) }()
	t.Progress("reading the tables")
	if err := load(ctx, a, l, scratch); err != nil {
		return r, err
	}
	t.Progress("ending what may have ended since the backup")
	if err := t.end(ctx, a, l, scratch, &r); err != nil {
		return r, err
	}
	if t.Mode != ModeNothingSince {
		if r.EndedUpdates, err = holderupdate.AfterRestore(ctx, packagestore.New(scratch), a.At, t.Now()); err != nil {
			return r, fmt.Errorf("end the updates of holders of access packages: %w", err)
		}
	}
	if r.EndedReviews, err = accessreview.AfterRestore(ctx, reviewstore.New(scratch), a.At, t.Now(), t.Mode == ModeNothingSince); err != nil {
		return r, fmt.Errorf("change the access reviews in progress: %w", err)
	}
	if err := finishScratch(ctx, a, l, t, scratch, &r); err != nil {
		return r, err
	}
	wanted, err := t.objects(ctx, a, l, scratch, &r)
	if err != nil {
		return r, err
	}
	r.Changed = slices.DeleteFunc(r.Changed, func(o string) bool { return slices.Contains(r.Withheld, o) })
	t.Progress(fmt.Sprintf("creating %d objects in the host cluster", len(wanted)))
	if err := check(ctx, t.Host, wanted); err != nil {
		return r, err
	}
	for _, o := range wanted {
		if err := place(ctx, t.Host, o); err != nil {
			return r, err
		}
	}
	r.Objects = len(wanted)
	t.Progress("writing the database")
	if err := copyTables(ctx, scratch, t.Database); err != nil {
		return r, fmt.Errorf("write the database: %w", err)
	}
	return r, nil
}

// checkTarget reports why a database cannot be restored into.
func checkTarget(ctx context.Context, a *Archive, db *database.DB) error {
	full, err := used(ctx, db)
	if err != nil {
		return err
	}
	if full {
		return errors.New("the database is not empty: stop every portal, and give a database that no portal has used")
	}
	return db.Read(ctx, func(tx *gorm.DB) error {
		have, err := schema(tx)
		if err != nil {
			return err
		}
		if !slices.Equal(have, a.Schema) {
			return fmt.Errorf(
				"the backup was written by %s, whose database has another schema: restore it with that version, then start the newer portal",
				a.Version,
			)
		}
		return nil
	})
}

// load writes an archive and the later ledger into the scratch database; the jobs come in finishScratch.
func load(ctx context.Context, a *Archive, l *ledgerExport, scratch *database.DB) error {
	return scratch.Write(ctx, func(tx *gorm.DB) error {
		if err := clear(tx); err != nil {
			return err
		}
		for _, t := range tables() {
			if t.name == "outbox" {
				continue
			}
			if err := importTable(tx, false, a, t); err != nil {
				return err
			}
			if t.serial == "" {
				continue
			}
			if err := restart(tx, false, t, 0); err != nil {
				return err
			}
		}
		rows := make([][]any, 0, len(l.lines))
		for _, x := range l.lines {
			rows = append(rows, []any{x.Seq, x.Text, x.Hash})
		}
		if len(rows) == 0 {
			return nil
		}
		_, err := database.Insert(tx, "ledger (seq, text, hash)", "", rows)
		return err
	})
}

// end ends the items and delegations of which it is not known that they still stand.
func (t Target) end(ctx context.Context, a *Archive, l *ledgerExport, scratch *database.DB, r *Report) error {
	if t.Mode == ModeNothingSince {
		return nil
	}
	store := gormstore.New(scratch)
	why := message.TicketRestoredUnknown(a.At.Format(time.RFC3339))
	if t.Mode == ModeLedger {
		why = message.TicketRestoredEnded(a.At.Format(time.RFC3339))
	}
	now := t.Now()
	list, err := store.List(
		ctx,
		approval.Filter{
			Oldest:     true,
			ItemStates: []approval.State{approval.StatePending, approval.StateApproved, approval.StateApplying, approval.StateEffective, approval.StateFailed},
		},
	)
	if err != nil {
		return err
	}
	for _, listed := range list {
		ended := false
		_, err := store.Update(ctx, listed.Number, func(x *approval.Ticket) error {
			ended = false
			for i, it := range x.Items {
				// A change of an object that was decided further after the backup is not written again: a later one may have undone it.
				redone := x.Kind.Object() && it.State != approval.StatePending && it.WrittenGeneration == 0 && l.mentions(x.Number)
				if t.Mode == ModeLedger && !redone && l.stands(x.Number, i, it.State) {
					continue
				}
				ended = x.NotRestored(i, why, now) || ended
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("end %s: %w", listed.ID(), err)
		}
		if ended {
			r.Ended = append(r.Ended, listed.ID())
		}
	}
	delegations, err := store.Delegations(ctx, approval.DelegationFilter{})
	if err != nil {
		return err
	}
	for _, d := range delegations {
		if !d.EndedAt.IsZero() || !now.Before(d.End) || t.Mode == ModeLedger && !l.delegations[d.LedgerEntry().Object] {
			continue
		}
		if _, err := store.EndDelegation(ctx, d.ID, func(d *approval.Delegation) error { d.EndedAt = now; return nil }); err != nil {
			return err
		}
		r.Delegations++
	}
	return nil
}

// finishScratch adds the jobs, reserves the numbers of tickets, and records the restore.
func finishScratch(ctx context.Context, a *Archive, l *ledgerExport, t Target, scratch *database.DB, r *Report) error {
	return scratch.Write(ctx, func(tx *gorm.DB) error {
		all := tables()
		if err := importJobs(tx, a, all[len(all)-1]); err != nil {
			return err
		}
		if _, err := database.Exec(tx, "UPDATE outbox SET worker = '', lease_until = 0, run_after = 0, attempts = 0, parked = ?", false); err != nil {
			return err
		}
		number, err := lastNumber(tx, all[0])
		if err != nil {
			return err
		}
		number = max(number, l.lastTicket)
		if t.Mode == ModeHoldGrants {
			number += skippedNumbers
		}
		if err := restart(tx, false, all[0], number); err != nil {
			return err
		}
		if err := reserveReviews(tx, all, l, t.Mode); err != nil {
			return err
		}
		for _, f := range a.Files {
			if f.Name == tableFile("tickets") {
				r.Tickets = f.Records - 1
			}
		}
		return ledgerstore.Append(tx, ledger.Entry{At: t.Now(), Action: ActionRestored, Object: "backup " + a.ID, Details: map[string]string{
			"at": a.At.Format(time.RFC3339), "line": strconv.FormatInt(a.Head.Seq, 10), "known": string(t.Mode), "anchored": strconv.FormatBool(r.Anchored),
			"ended": strconv.Itoa(len(r.Ended)), "later": strconv.Itoa(len(l.lines))}})
	})
}

// reserveReviews leaves out the numbers of access reviews that may have been used after the backup: tickets and the ledger name
// reviews by them.
func reserveReviews(tx *gorm.DB, all []table, l *ledgerExport, mode Mode) error {
	reviews := all[slices.IndexFunc(all, func(x table) bool { return x.name == "reviews" })]
	number, err := lastNumber(tx, reviews)
	if err != nil {
		return err
	}
	number = max(number, l.lastReview)
	if mode == ModeHoldGrants {
		number += skippedNumbers
	}
	return restart(tx, false, reviews, number)
}

// importJobs adds the jobs of the archive behind those that remove what ended, with new numbers. A job whose item ended does nothing.
func importJobs(tx *gorm.DB, a *Archive, t table) error {
	cols, err := columns(tx, false, t.name)
	if err != nil {
		return err
	}
	last, err := lastNumber(tx, t)
	if err != nil {
		return err
	}
	number := slices.IndexFunc(cols, func(c column) bool { return c.Name == t.serial })
	first := true
	return insert(tx, t, cols, func(yield func([]any, error) bool) {
		for text, err := range a.records(tableFile(t.name)) {
			if err == nil && first {
				first = false
				continue
			}
			var row []any
			if err == nil {
				row, err = parseRow(text, cols)
			}
			if err == nil {
				last++
				row[number] = last
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	})
}

// objects returns the objects to create, in order, without what does not come back.
func (t Target) objects(ctx context.Context, a *Archive, l *ledgerExport, scratch *database.DB, r *Report) ([]client.Object, error) {
	var out []client.Object
	add := func(kind string, o client.Object) {
		o.GetObjectKind().SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
		out = append(out, o)
	}
	organizations, err := objects[v1alpha1.Organization](a, "Organization")
	if err != nil {
		return nil, err
	}
	for _, o := range organizations {
		add("Organization", o)
	}
	resources, err := objects[v1alpha1.ResourceClass](a, "ResourceClass")
	if err != nil {
		return nil, err
	}
	for _, o := range resources {
		add("ResourceClass", o)
	}
	subjects, err := objects[v1alpha1.SubjectClass](a, "SubjectClass")
	if err != nil {
		return nil, err
	}
	for _, o := range subjects {
		add("SubjectClass", o)
	}
	machines, err := objects[v1alpha1.ExternalWorkload](a, "ExternalWorkload")
	if err != nil {
		return nil, err
	}
	for _, o := range machines {
		// An address may belong to another application by now. Platforms register their workloads again with the next full sync.
		if t.Mode == ModeHoldGrants || l.workloads[o.Name] {
			r.Withheld = append(r.Withheld, "ExternalWorkload/"+o.Name)
			continue
		}
		add("ExternalWorkload", o)
	}
	policies, err := objects[v1alpha1.AccessControlPolicy](a, "AccessControlPolicy")
	if err != nil {
		return nil, err
	}
	store := gormstore.New(scratch)
	for _, p := range policies {
		held, err := t.withhold(ctx, store, l, p)
		if err != nil {
			return nil, err
		}
		if held != nil {
			r.Withheld = append(r.Withheld, "AccessControlPolicy/"+p.Name)
			if err := writeHeld(t.Withheld, held); err != nil {
				return nil, err
			}
		}
		add("AccessControlPolicy", p)
	}
	approvals, err := objects[v1alpha1.ApprovalPolicy](a, "ApprovalPolicy")
	if err != nil {
		return nil, err
	}
	for _, o := range approvals {
		add("ApprovalPolicy", o)
	}
	protected, err := objects[v1alpha1.ProtectedResource](a, "ProtectedResource")
	if err != nil {
		return nil, err
	}
	for _, o := range protected {
		o.Spec.TemporaryAudit = nil // it may have been ended early
		add("ProtectedResource", o)
	}
	return out, nil
}

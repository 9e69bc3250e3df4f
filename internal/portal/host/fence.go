package host

import (
	"context"
	"fmt"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/message"
)

// annotationLedger is the last ledger line, as "SEQUENCE HASH", of the database whose portal wrote the policy last. A database without
// this line was restored from an older state, or is another one. Its waiting grants may have been revoked since, so it may only
// remove statements.
const annotationLedger = "acp.io/portal-ledger"

// Ledger is the interface to the database that the fence needs; see ledger.Reader.
type Ledger interface {
	Line(ctx context.Context, seq int64) (ledger.Line, bool, error)
	Last(ctx context.Context) (ledger.Line, bool, error)
}

// fenced reports whether a newer database has written the policy.
func (w *Writer) fenced(ctx context.Context, p *v1alpha1.AccessControlPolicy) (bool, error) {
	mark, marked := p.Annotations[annotationLedger]
	if w.Ledger == nil || !marked {
		return false, nil
	}
	var seq int64
	var hash string
	if n, _ := fmt.Sscanf(mark, "%d %s", &seq, &hash); n != 2 {
		return true, nil // an annotation by others proves nothing
	}
	l, ok, err := w.Ledger.Line(ctx, seq)
	return !ok || l.Hash != hash, err
}

// mark sets the annotation to this database's last line.
func (w *Writer) mark(ctx context.Context, p *v1alpha1.AccessControlPolicy) error {
	if w.Ledger == nil {
		return nil
	}
	l, ok, err := w.Ledger.Last(ctx)
	if err != nil || !ok {
		return err
	}
	p.Annotations[annotationLedger] = fmt.Sprintf("%d %s", l.Seq, l.Hash)
	return nil
}

func behind(policy string) error {
	return &approval.RefusedError{Message: message.WriteRefusedDatabaseOlder(policy, annotationLedger)}
}

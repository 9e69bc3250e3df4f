// Package anchor brings the head of the ledger to places that the portal's database does not reach: a ConfigMap of the
// host cluster, a file, a webhook. It owns when that happens and that a head which does not fit is never written over.
// It reads the ledger and changes nothing in it.
package anchor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/acp-io/acp/internal/ledger"
)

// Anchor keeps heads.
type Anchor interface {
	// Name tells people where the heads are.
	Name() string
	// Keep a head; when it returns, the head is durable.
	Keep(ctx context.Context, h ledger.Head) error
	// Heads that are kept, oldest first; none: nothing was kept yet, or the place can only be written to.
	Heads(ctx context.Context) ([]ledger.Head, error)
}

// ErrMismatch means that the ledger and an anchor contradict each other.
var ErrMismatch = errors.New("the ledger is not the one that was anchored")

const (
	timeout    = 10 * time.Second // of one anchor in one round
	endTimeout = 5 * time.Second  // of the round at the shutdown
)

// Keeper anchors the head now and then. Several replicas may do so beside each other.
type Keeper struct {
	Ledger  ledger.Reader
	Anchors []Anchor
	Every   time.Duration
	Now     func() time.Time
	Log     *slog.Logger

	sent map[string]ledger.Head
}

// Run until the context ends, and once more then, so that what was decided last is anchored, too.
func (k *Keeper) Run(ctx context.Context) {
	t := time.NewTicker(k.Every)
	defer t.Stop()
	for {
		_ = k.Round(ctx) // it logs what went wrong
		select {
		case <-ctx.Done():
			end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
			defer cancel()
			_ = k.Round(end) // it logs what went wrong
			return
		case <-t.C:
		}
	}
}

// Round brings the present head to each anchor; a failing one holds up no other. Problems are logged and returned.
func (k *Keeper) Round(ctx context.Context) error {
	var problems []error
	for _, a := range k.Anchors {
		err := k.keep(ctx, a)
		switch {
		case err == nil || ctx.Err() != nil && errors.Is(err, context.Canceled):
			continue
		case errors.Is(err, ErrMismatch):
			k.Log.Error("the ledger was changed: run kubectl acp ledger verify; this anchor is left as it is", "anchor", a.Name(), "error", err)
		default:
			k.Log.Warn("the ledger's head could not be anchored; it is tried again", "anchor", a.Name(), "error", err)
		}
		problems = append(problems, fmt.Errorf("%s: %w", a.Name(), err))
	}
	return errors.Join(problems...)
}

func (k *Keeper) keep(ctx context.Context, a Anchor) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	// The anchor is read before the ledger: what another replica anchored is in the ledger by then.
	kept, err := a.Heads(ctx)
	if err != nil {
		return err
	}
	last := k.sent[a.Name()]
	if len(kept) > 0 {
		last = kept[len(kept)-1]
	}
	if last.Seq > 0 {
		line, ok, err := k.Ledger.Line(ctx, last.Seq)
		if err != nil {
			return fmt.Errorf("read the ledger: %w", err)
		}
		if !ok {
			return fmt.Errorf("%w: line %d, kept at %s, is missing", ErrMismatch, last.Seq, last.At.UTC().Format(time.RFC3339))
		}
		if line.Hash != last.Hash {
			return fmt.Errorf("%w: line %d, kept at %s, has another hash", ErrMismatch, last.Seq, last.At.UTC().Format(time.RFC3339))
		}
	}
	head, ok, err := k.Ledger.Last(ctx)
	if err != nil {
		return fmt.Errorf("read the ledger: %w", err)
	}
	if !ok || head.Seq <= last.Seq {
		return nil
	}
	h := ledger.Head{Seq: head.Seq, Hash: head.Hash, At: k.Now().UTC()}
	if err := a.Keep(ctx, h); err != nil {
		return err
	}
	if k.sent == nil {
		k.sent = map[string]ledger.Head{}
	}
	k.sent[a.Name()] = h
	return nil
}

// Witnesses are the heads that all anchors keep, for ledger.Check. An anchor that cannot be read is in the error, and
// the others' heads are returned beside it.
func Witnesses(ctx context.Context, anchors []Anchor) ([]ledger.Witness, error) {
	var out []ledger.Witness
	var problems []error
	for _, a := range anchors {
		heads, err := a.Heads(ctx)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", a.Name(), err))
			continue
		}
		for _, h := range heads {
			out = append(out, ledger.Witness{Anchor: a.Name(), Head: h})
		}
	}
	return out, errors.Join(problems...)
}

// Package anchor stores heads of the ledger outside the portal's database: in a ConfigMap of the host cluster, a file, or a
// webhook. It decides when heads are stored, and never overwrites a head that contradicts the ledger. It reads the ledger and
// never changes it.
package anchor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/acp-io/acp/internal/ledger"
)

// Anchor stores heads.
type Anchor interface {
	// Name returns a description of the place for messages.
	Name() string
	// Keep stores a head. When it returns nil, the head is durable.
	Keep(ctx context.Context, h ledger.Head) error
	// Heads returns the stored heads, oldest first; none if nothing was stored yet or the place cannot be read.
	Heads(ctx context.Context) ([]ledger.Head, error)
}

// ErrMismatch means that the ledger contradicts an anchored head.
var ErrMismatch = errors.New("the ledger is not the one that was anchored")

const (
	timeout    = 10 * time.Second // for one anchor in one round
	endTimeout = 5 * time.Second  // for the round at shutdown
)

// Keeper anchors the head of the ledger at regular intervals. Several replicas may run one each.
type Keeper struct {
	Ledger  ledger.Reader
	Anchors []Anchor
	Every   time.Duration
	Now     func() time.Time
	Log     *slog.Logger

	sent map[string]ledger.Head
}

// Run anchors the head at every interval until the context ends, and then once more, so that the last decisions are anchored as
// well.
func (k *Keeper) Run(ctx context.Context) {
	t := time.NewTicker(k.Every)
	defer t.Stop()
	for {
		_ = k.Round(ctx) // Round has logged the errors
		select {
		case <-ctx.Done():
			end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
			defer cancel()
			_ = k.Round(end) // Round has logged the errors
			return
		case <-t.C:
		}
	}
}

// Round stores the current head in each anchor. An anchor that fails does not prevent the others. Errors are logged and returned.
func (k *Keeper) Round(ctx context.Context) error {
	var problems []error
	for _, a := range k.Anchors {
		err := k.anchorHead(ctx, a)
		switch {
		case err == nil || ctx.Err() != nil && errors.Is(err, context.Canceled):
			continue
		case errors.Is(err, ErrMismatch):
			k.Log.Error("the ledger contradicts an anchor, which is not changed: run kubectl acp ledger verify", "anchor", a.Name(), "error", err)
		default:
			k.Log.Warn("the ledger's head could not be anchored; retrying in the next round", "anchor", a.Name(), "error", err)
		}
		problems = append(problems, fmt.Errorf("%s: %w", a.Name(), err))
	}
	return errors.Join(problems...)
}

// anchorHead stores the current head in an anchor, after it has compared the ledger with the last head there.
func (k *Keeper) anchorHead(ctx context.Context, a Anchor) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	// The anchor is read before the ledger, so that the ledger already contains what another replica has anchored.
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

// Witnesses returns the heads of all anchors, for ledger.Check. If an anchor cannot be read, the error says so, and the heads of
// the others are still returned.
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

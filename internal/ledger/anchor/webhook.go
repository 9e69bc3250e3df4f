package anchor

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/webhooksender"
)

// Webhook posts heads, signed. It can only be written to: the receiver keeps the heads, and whoever audits gives them
// to kubectl acp ledger verify.
type Webhook struct{ Target *webhooksender.Target }

// Name implements Anchor.
func (w *Webhook) Name() string { return "webhook " + w.Target.URL.Host }

// Keep implements Anchor.
func (w *Webhook) Keep(ctx context.Context, h ledger.Head) error {
	body, err := json.Marshal(struct {
		Type string      `json:"type"`
		Head ledger.Head `json:"head"`
	}{"ledger.head", h})
	if err != nil {
		return fmt.Errorf("encode the head: %w", err)
	}
	// The same head has the same id from every replica.
	return w.Target.Post(ctx, fmt.Sprintf("ledger-%d-%.16s", h.Seq, h.Hash), body)
}

// Heads implements Anchor.
func (w *Webhook) Heads(context.Context) ([]ledger.Head, error) { return nil, nil }

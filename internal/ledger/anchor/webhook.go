package anchor

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/webhooksender"
)

// Webhook posts signed heads. It cannot be read: the receiver stores the heads, and an auditor passes them to kubectl acp ledger
// verify.
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
	// The same head has the same ID from every replica.
	return w.Target.Post(ctx, fmt.Sprintf("ledger-%d-%.16s", h.Seq, h.Hash), body)
}

// Heads implements Anchor.
func (w *Webhook) Heads(context.Context) ([]ledger.Head, error) { return nil, nil }

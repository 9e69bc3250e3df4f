package anchor

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/acp-io/acp/internal/ledger"
)

// line returns a head as one line of an anchor file or ConfigMap, which ledger.ReadHeads reads.
func line(h ledger.Head) (string, error) {
	text, err := json.Marshal(h)
	if err != nil {
		return "", fmt.Errorf("encode the head: %w", err)
	}
	return string(text) + "\n", nil
}

func heads(r io.Reader) ([]ledger.Head, error) {
	var out []ledger.Head
	for h, err := range ledger.ReadHeads(r) {
		if err != nil {
			return nil, fmt.Errorf("read the anchored heads: %w", err)
		}
		out = append(out, h)
	}
	return out, nil
}

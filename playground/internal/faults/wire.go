package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// wire is the network between the host and one member: KubeFed and the adapter go through it, the member's own
// dataplane does not.
type wire struct{ proxy *toxiproxy.Proxy }

// newWire listens on a port of its own and leads to a member's API server.
func newWire(member, upstream string) (*wire, error) {
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	w := &wire{toxiproxy.NewProxy(server, member, "127.0.0.1:0", upstream)}
	if err := w.proxy.Start(); err != nil {
		return nil, fmt.Errorf("open the wire to %s: %w", member, err)
	}
	return w, nil
}

func (w *wire) address() string { return w.proxy.Listen }

// cut ends every connection and refuses new ones.
func (w *wire) cut() { w.proxy.Stop() }

// cutNow is cut as a fault.
func (w *wire) cutNow() error {
	w.cut()
	return nil
}

// mend undoes every fault of the wire.
func (w *wire) mend(ctx context.Context) error {
	w.proxy.Toxics.ResetToxics(ctx)
	if w.proxy.Enabled {
		return nil
	}
	if err := w.proxy.Start(); err != nil {
		return fmt.Errorf("mend the wire: %w", err)
	}
	return nil
}

// toxin is a fault in one direction of a wire; both directions have it when stream is empty.
type toxin struct {
	Name       string           `json:"name"`
	Type       string           `json:"type"`
	Stream     string           `json:"stream"`
	Attributes map[string]int64 `json:"attributes"`
}

func (w *wire) poison(kind string, attributes map[string]int64) error {
	for _, stream := range []string{"upstream", "downstream"} {
		data, err := json.Marshal(toxin{Name: kind + "-" + stream, Type: kind, Stream: stream, Attributes: attributes})
		if err != nil {
			return err
		}
		if _, err := w.proxy.Toxics.AddToxicJson(bytes.NewReader(data)); err != nil {
			return fmt.Errorf("poison the wire with %s: %w", kind, err)
		}
	}
	return nil
}

// blackHole accepts, and says nothing.
func (w *wire) blackHole() error { return w.poison("timeout", map[string]int64{"timeout": 0}) }

// slow delays each packet.
func (w *wire) slow() error {
	return w.poison("latency", map[string]int64{"latency": 250, "jitter": 150})
}

// reset ends every connection hard, as soon as something is sent.
func (w *wire) reset() error { return w.poison("reset_peer", map[string]int64{"timeout": 0}) }

// cutAfter ends each connection after some bytes, so that whatever is under way is cut in its middle.
func (w *wire) cutAfter(bytes int64) error {
	return w.poison("limit_data", map[string]int64{"bytes": bytes})
}

package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// memberProxy is a fault-injecting TCP proxy between the host and the API server of one member. KubeFed and the adapter connect
// through it; the dataplane of the member does not.
type memberProxy struct{ proxy *toxiproxy.Proxy }

// newMemberProxy starts a proxy on a free local port that forwards to the API server of a member.
func newMemberProxy(member, upstream string) (*memberProxy, error) {
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	w := &memberProxy{toxiproxy.NewProxy(server, member, "127.0.0.1:0", upstream)}
	if err := w.proxy.Start(); err != nil {
		return nil, fmt.Errorf("start the proxy of %s: %w", member, err)
	}
	return w, nil
}

// address returns the address that the proxy listens on, as host:port.
func (p *memberProxy) address() string { return p.proxy.Listen }

// disable ends every connection and refuses new ones.
func (p *memberProxy) disable() { p.proxy.Stop() }

// disconnect is disable with the signature of a fault.
func (p *memberProxy) disconnect() error {
	p.disable()
	return nil
}

// restore removes every fault.
func (p *memberProxy) restore(ctx context.Context) error {
	p.proxy.Toxics.ResetToxics(ctx)
	if p.proxy.Enabled {
		return nil
	}
	if err := p.proxy.Start(); err != nil {
		return fmt.Errorf("restart the proxy: %w", err)
	}
	return nil
}

// toxic is Toxiproxy's JSON form of a fault in one direction of a proxy.
type toxic struct {
	Name       string           `json:"name"`
	Type       string           `json:"type"`
	Stream     string           `json:"stream"`
	Attributes map[string]int64 `json:"attributes"`
}

// addToxic adds a fault in both directions.
func (p *memberProxy) addToxic(kind string, attributes map[string]int64) error {
	for _, stream := range []string{"upstream", "downstream"} {
		data, err := json.Marshal(toxic{Name: kind + "-" + stream, Type: kind, Stream: stream, Attributes: attributes})
		if err != nil {
			return err
		}
		if _, err := p.proxy.Toxics.AddToxicJson(bytes.NewReader(data)); err != nil {
			return fmt.Errorf("add the fault %s to the proxy: %w", kind, err)
		}
	}
	return nil
}

// blackHole accepts connections and forwards nothing.
func (p *memberProxy) blackHole() error { return p.addToxic("timeout", map[string]int64{"timeout": 0}) }

// delay delays data by 250 ms with a jitter of 150 ms.
func (p *memberProxy) delay() error {
	return p.addToxic("latency", map[string]int64{"latency": 250, "jitter": 150})
}

// reset resets every connection as soon as data is sent.
func (p *memberProxy) reset() error { return p.addToxic("reset_peer", map[string]int64{"timeout": 0}) }

// limitData ends each connection after a number of bytes, so that requests are interrupted.
func (p *memberProxy) limitData(bytes int64) error {
	return p.addToxic("limit_data", map[string]int64{"bytes": bytes})
}

package testenv

import (
	"io"
	"net"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// Proxy forwards TCP connections to an API server, and can be disconnected.
type Proxy struct {
	listener     net.Listener
	target       string
	mu           sync.Mutex
	disconnected bool
	open         map[net.Conn]struct{}
}

// NewProxy returns a proxy of a server.
func NewProxy(s *Server) (*Proxy, error) { return NewProxyTo(s.Config) }

// NewProxyTo returns a proxy of the server in a configuration.
func NewProxyTo(c *rest.Config) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is closed by Close
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: l, target: strings.Trim(strings.TrimPrefix(c.Host, "https:"), "/"), open: map[net.Conn]struct{}{}}
	go p.serve()
	return p, nil
}

// Address returns the proxy's address as host:port.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Close disconnects the proxy for good.
func (p *Proxy) Close() error { p.Disconnect(); return p.listener.Close() }

// Disconnect closes all connections, and accepts no others until Reconnect.
func (p *Proxy) Disconnect() { p.set(true) }

// Reconnect accepts connections again.
func (p *Proxy) Reconnect() { p.set(false) }

// IsDisconnected reports whether the proxy is disconnected.
func (p *Proxy) IsDisconnected() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.disconnected
}

func (p *Proxy) serve() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.forward(c)
	}
}

func (p *Proxy) forward(c net.Conn) {
	defer func() { _ = c.Close() }()
	d, err := net.Dial("tcp", p.target) //nolint:noctx // the server is on this machine
	if err != nil {
		return
	}
	defer func() { _ = d.Close() }()
	p.mu.Lock()
	if p.disconnected {
		p.mu.Unlock()
		return
	}
	p.open[c], p.open[d] = struct{}{}, struct{}{}
	p.mu.Unlock()
	done := make(chan struct{}, 2)
	go func() { _, _ = io.Copy(c, d); done <- struct{}{} }()
	go func() { _, _ = io.Copy(d, c); done <- struct{}{} }()
	<-done
	p.mu.Lock()
	delete(p.open, c)
	delete(p.open, d)
	p.mu.Unlock()
}

func (p *Proxy) set(disconnected bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.disconnected = disconnected
	if disconnected {
		for c := range p.open {
			_ = c.Close()
		}
	}
}

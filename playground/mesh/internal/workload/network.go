package workload

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Network connects pods, whose addresses exist only as fields of objects, by connections of the loopback interface. A connection begins with
// the address of the client's pod, as if the traffic were redirected, so that the server sees the addresses of the pods.
type Network struct {
	mu        sync.Mutex
	listeners map[netip.AddrPort]*listener
}

// NewNetwork returns a network without listeners.
func NewNetwork() *Network { return &Network{listeners: map[netip.AddrPort]*listener{}} }

// prefaceLength is the length of an address with a port, and prefaceTimeout the time in which a client must send it.
const (
	prefaceLength  = 18
	prefaceTimeout = 5 * time.Second
)

// Listen returns a listener with the address of a pod.
func (n *Network) Listen(at netip.AddrPort) (net.Listener, error) {
	inner, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for %s: %w", at, err)
	}
	l := &listener{Listener: inner, network: n, at: at}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners[at] = l
	return l, nil
}

// Dial connects the pod with the address from to a listener.
func (n *Network) Dial(ctx context.Context, from netip.Addr, to netip.AddrPort) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[to]
	n.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("connect to %s: nothing listens there", to)
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp4", l.Listener.Addr().String())
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", to, err)
	}
	local, ok := c.LocalAddr().(*net.TCPAddr)
	if !ok {
		return nil, fmt.Errorf("connect to %s: the local address is %v", to, c.LocalAddr())
	}
	a := from.As16()
	preface := append(a[:], byte(local.Port>>8), byte(local.Port)) //nolint:gosec // a port
	if _, err := c.Write(preface); err != nil {
		_ = c.Close() // the error of the write is the reason
		return nil, fmt.Errorf("connect to %s: %w", to, err)
	}
	return c, nil
}

// listener accepts connections for one port of a pod.
type listener struct {
	net.Listener
	network *Network
	at      netip.AddrPort
}

// Addr implements net.Listener. Istiod configures the port of the pod.
func (l *listener) Addr() net.Addr { return net.TCPAddrFromAddrPort(l.at) }

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, local: l.Addr()}, nil
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.network.mu.Lock()
	if l.network.listeners[l.at] == l {
		delete(l.network.listeners, l.at)
	}
	l.network.mu.Unlock()
	return l.Listener.Close()
}

// conn is a server's side of a connection. The first use of it reads the address of the client, so that Accept does not wait for one client.
type conn struct {
	net.Conn
	local net.Addr

	once   sync.Once
	remote net.Addr
	err    error
}

func (c *conn) readPreface() {
	c.once.Do(func() {
		c.remote = c.Conn.RemoteAddr()
		var b [prefaceLength]byte
		if c.err = c.SetReadDeadline(time.Now().Add(prefaceTimeout)); c.err != nil {
			return
		}
		if _, c.err = io.ReadFull(c.Conn, b[:]); c.err != nil {
			return
		}
		if c.err = c.SetReadDeadline(time.Time{}); c.err != nil {
			return
		}
		a := netip.AddrFrom16([16]byte(b[:16])).Unmap()
		c.remote = net.TCPAddrFromAddrPort(netip.AddrPortFrom(a, uint16(b[16])<<8|uint16(b[17])))
	})
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	if c.readPreface(); c.err != nil {
		return 0, fmt.Errorf("read the address of the client: %w", c.err)
	}
	return c.Conn.Read(b)
}

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr {
	c.readPreface()
	return c.remote
}

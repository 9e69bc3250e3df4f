package hubble

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/net/proxy"
)

const (
	// dialTimeout bounds the time until the address, or the proxy, is connected.
	dialTimeout = 10 * time.Second
	// proxyTimeout bounds the time until a proxy has connected the address.
	proxyTimeout = 20 * time.Second
	// maxProxyAnswer is the number of bytes of the longest answer of a proxy that is read.
	maxProxyAnswer = 64 << 10
)

// dial connects the address, through a proxy if via is not nil. Errors do not contain the proxy's password.
func dial(ctx context.Context, dialer *net.Dialer, via *url.URL, address string) (net.Conn, error) {
	if via == nil {
		return dialer.DialContext(ctx, "tcp", address)
	}
	ctx, cancel := context.WithTimeout(ctx, proxyTimeout)
	defer cancel()
	switch via.Scheme {
	case "http", "https":
		return dialTunnel(ctx, dialer, via, address)
	case "socks5", "socks5h":
		d, err := proxy.FromURL(via, dialer)
		if err != nil {
			return nil, fmt.Errorf("use the proxy %s: %w", via.Redacted(), err)
		}
		conn, err := d.(proxy.ContextDialer).DialContext(ctx, "tcp", address) //nolint:forcetypeassert // the dialer of SOCKS5 is one
		if err != nil {
			return nil, fmt.Errorf("connect through the proxy %s: %w", via.Redacted(), err)
		}
		return conn, nil
	}
	return nil, fmt.Errorf("the proxy %s is neither an HTTP nor a SOCKS5 proxy", via.Redacted())
}

// dialTunnel connects the address with the method CONNECT of an HTTP proxy.
func dialTunnel(ctx context.Context, dialer *net.Dialer, via *url.URL, address string) (conn net.Conn, err error) {
	at := via.Host
	if via.Port() == "" {
		at = net.JoinHostPort(via.Hostname(), map[string]string{"http": "80", "https": "443"}[via.Scheme])
	}
	if via.Scheme == "https" {
		conn, err = (&tls.Dialer{NetDialer: dialer, Config: &tls.Config{MinVersion: tls.VersionTLS12}}).DialContext(ctx, "tcp", at)
	} else {
		conn, err = dialer.DialContext(ctx, "tcp", at)
	}
	if err != nil {
		return nil, fmt.Errorf("connect the proxy %s: %w", via.Redacted(), err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	reader, err := requestTunnel(conn, via, address)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("connect through the proxy %s: %w", via.Redacted(), err)
	}
	return &tunnel{Conn: conn, reader: reader}, nil
}

// requestTunnel requests the tunnel, and returns a reader of what arrives through it.
func requestTunnel(conn net.Conn, via *url.URL, address string) (io.Reader, error) {
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{}}
	if via.User != nil {
		password, _ := via.User.Password()
		request.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(via.User.Username()+":"+password)))
	}
	if err := request.Write(conn); err != nil {
		return nil, err
	}
	limited := &io.LimitedReader{R: conn, N: maxProxyAnswer}
	reader := bufio.NewReader(limited)
	response, err := http.ReadResponse(reader, request) //nolint:bodyclose // what follows the header of an accepted CONNECT is the tunnel
	if err != nil {
		if limited.N <= 0 {
			return nil, errors.New("its answer is too long")
		}
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answers %q", response.Status)
	}
	// The bytes that were read together with the answer are the first bytes of the tunnel.
	early, err := io.ReadAll(io.LimitReader(reader, int64(reader.Buffered())))
	if err != nil {
		return nil, err
	}
	return io.MultiReader(bytes.NewReader(early), conn), nil
}

// tunnel is a connection through a proxy, of which the first bytes were read together with the proxy's answer.
type tunnel struct {
	net.Conn
	reader io.Reader
}

// Read reads what the other end of the tunnel sends.
func (t *tunnel) Read(p []byte) (int, error) { return t.reader.Read(p) }

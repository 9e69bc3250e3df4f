package istio

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	xdscreds "google.golang.org/grpc/credentials/xds"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/xds"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/acp-io/acp/internal/enforcer/istiotest"
)

// This file contains gRPC servers without proxies: grpc-go applies the RBAC rules that istiod sends it, with an engine of its own.

// serverPorts are the ports of every server: those of the classes of the worlds, and one more.
var serverPorts = []uint16{6379, 6380, 80, 8080, 9121}

// requestPaths are paths of requests. grpc-go serves no others than those with two slashes.
var requestPaths = []string{"/orders/1", "/orders/1/lines", "/static/a.css", "/other/x"}

// authority issues certificates with SPIFFE identities.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

// newAuthority makes an authority whose certificate is ca.pem in dir.
func newAuthority(dir string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of the authority: %w", err)
	}
	template := certificate(1, nil)
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make the authority: %w", err)
	}
	a := &authority{dir: dir, key: key, pool: x509.NewCertPool()}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("read the authority: %w", err)
	}
	a.pool.AddCert(a.cert)
	return a, writePEM(filepath.Join(dir, "ca.pem"), "CERTIFICATE", der)
}

func certificate(serial int64, id *url.URL) *x509.Certificate {
	c := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{Organization: []string{"test"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	if id != nil {
		c.URIs = []*url.URL{id}
	}
	return c
}

func writePEM(path, kind string, der []byte) error {
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// issue makes a certificate for an identity without its scheme, and writes it and its key to NAME.pem and NAME.key.
func (a *authority) issue(identity, name string) (tls.Certificate, error) {
	id, err := url.Parse("spiffe://" + identity)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("read the identity: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make a key: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, certificate(time.Now().UnixNano(), id), a.cert, key.Public(), a.key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make a certificate: %w", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("encode a key: %w", err)
	}
	err = errors.Join(writePEM(filepath.Join(a.dir, name+".pem"), "CERTIFICATE", der), writePEM(filepath.Join(a.dir, name+".key"), "PRIVATE KEY", private))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// endpoint is a listener in memory with the address of a pod. Its connections have the addresses that their clients choose.
type endpoint struct {
	address netip.AddrPort
	pending chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func newEndpoint(a netip.AddrPort) *endpoint {
	return &endpoint{address: a, pending: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (e *endpoint) Accept() (net.Conn, error) {
	select {
	case c := <-e.pending:
		return c, nil
	case <-e.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (e *endpoint) Close() error {
	e.once.Do(func() { close(e.closed) })
	return nil
}

// Addr implements net.Listener.
func (e *endpoint) Addr() net.Addr { return net.TCPAddrFromAddrPort(e.address) }

// dial connects from an address.
func (e *endpoint) dial(ctx context.Context, from netip.Addr) (net.Conn, error) {
	near, far := net.Pipe()
	remote := net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 40000))
	select {
	case e.pending <- &addressed{Conn: far, local: e.Addr(), remote: remote}:
		return &addressed{Conn: near, local: remote, remote: e.Addr()}, nil
	case <-e.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// addressed is a connection with addresses of its own.
type addressed struct {
	net.Conn
	local, remote net.Addr
}

// LocalAddr implements net.Conn.
func (c *addressed) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *addressed) RemoteAddr() net.Addr { return c.remote }

// server is a gRPC server in a pod, which istiod configures.
type server struct {
	endpoints map[uint16]*endpoint
	grpc      *xds.GRPCServer
	mu        sync.Mutex
	modes     map[string]connectivity.ServingMode
	problem   error
}

// newServer starts a server for a pod of a namespace, with the address and the labels of the pod's object.
func newServer(istiod, certificates, in, name string, at netip.Addr, labels map[string]string) (*server, error) {
	bootstrap, err := json.Marshal(map[string]any{
		"xds_servers": []any{map[string]any{
			"server_uri": istiod, "channel_creds": []any{map[string]any{"type": "insecure"}}, "server_features": []any{"xds_v3"},
		}},
		"node": map[string]any{
			"id": fmt.Sprintf("sidecar~%s~%s.%s~%s.svc.cluster.local", at, name, in, in),
			"metadata": map[string]any{
				"GENERATOR": "grpc", "NAMESPACE": in, "CLUSTER_ID": "Kubernetes", "ISTIO_VERSION": proxyVersion, "INSTANCE_IPS": at.String(), "LABELS": labels,
			},
		},
		"certificate_providers": map[string]any{"default": map[string]any{"plugin_name": "file_watcher", "config": map[string]any{
			"certificate_file": filepath.Join(certificates, "server.pem"), "private_key_file": filepath.Join(certificates, "server.key"),
			"ca_certificate_file": filepath.Join(certificates, "ca.pem"), "refresh_interval": "600s",
		}}},
		"server_listener_resource_name_template": "xds.istio.io/grpc/lds/inbound/%s",
	})
	if err != nil {
		return nil, fmt.Errorf("describe the server: %w", err)
	}
	s := &server{endpoints: map[uint16]*endpoint{}, modes: map[string]connectivity.ServingMode{}}
	creds, err := xdscreds.NewServerCredentials(xdscreds.ServerOptions{FallbackCreds: insecure.NewCredentials()})
	if err != nil {
		return nil, fmt.Errorf("make credentials: %w", err)
	}
	s.grpc, err = xds.NewGRPCServer(grpc.Creds(creds), xds.BootstrapContentsForTesting(bootstrap), grpc.UnknownServiceHandler(answer),
		xds.ServingModeCallback(s.changed))
	if err != nil {
		return nil, fmt.Errorf("make a server: %w", err)
	}
	for _, port := range serverPorts {
		e := newEndpoint(netip.AddrPortFrom(at, port))
		s.endpoints[port] = e
		go func() { _ = s.grpc.Serve(e) }()
	}
	return s, nil
}

// answer serves every request.
func answer(_ any, stream grpc.ServerStream) error {
	if err := stream.RecvMsg(&emptypb.Empty{}); err != nil {
		return err
	}
	return stream.SendMsg(&emptypb.Empty{})
}

func (s *server) changed(a net.Addr, m xds.ServingModeChangeArgs) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.modes[a.String()], s.problem = m.Mode, m.Err
}

// untilServing waits until istiod has configured all ports.
func (s *server) untilServing() error {
	deadline := time.Now().Add(pushTimeout)
	for {
		s.mu.Lock()
		serving, problem := 0, s.problem
		for _, m := range s.modes {
			if m == connectivity.ServingModeServing {
				serving++
			}
		}
		s.mu.Unlock()
		if serving == len(serverPorts) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of %d ports are configured: %w", serving, len(serverPorts), problem)
		}
		time.Sleep(10 * time.Millisecond) // poll interval
	}
}

// caller sends requests with the identities of the authority.
type caller struct {
	authority *authority
	mu        sync.Mutex
	issued    map[string]tls.Certificate
}

func (c *caller) credentials(identity string) (credentials.TransportCredentials, error) {
	if identity == "" {
		return insecure.NewCredentials(), nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	own, issued := c.issued[identity]
	if !issued {
		var err error
		if own, err = c.authority.issue(identity, strings.ReplaceAll(identity, "/", "_")); err != nil {
			return nil, err
		}
		c.issued[identity] = own
	}
	//nolint:gosec // The name of the server is not checked: the test is about what the server allows.
	return credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{own}, InsecureSkipVerify: true, NextProtos: []string{"h2"}}), nil
}

// request sends a request to a server, and reports whether it was let through.
func (c *caller) request(ctx context.Context, s *server, t istiotest.Traffic) (bool, error) {
	creds, err := c.credentials(t.Principal)
	if err != nil {
		return false, err
	}
	conn, err := grpc.NewClient("passthrough:///server", grpc.WithTransportCredentials(creds),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return s.endpoints[t.Port].dial(ctx, t.Address) }))
	if err != nil {
		return false, fmt.Errorf("make a client: %w", err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, pushTimeout)
	defer cancel()
	switch err := conn.Invoke(ctx, t.Path, &emptypb.Empty{}, &emptypb.Empty{}); status.Code(err) {
	case codes.OK:
		return true, nil
	case codes.PermissionDenied:
		return false, nil
	default:
		return false, fmt.Errorf("request %+v: %w", t, err)
	}
}

package workload

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/acp-io/acp/playground/mesh/internal/authority"
)

// requestTimeout bounds a request with its connection.
const requestTimeout = 5 * time.Second

// Clients sends requests with the identities of pods.
type Clients struct {
	Network   *Network
	Authority *authority.Authority

	mu     sync.Mutex
	issued map[string]tls.Certificate
}

// Call opens a connection from one pod to a port of another, sends a request, and reports whether it was let through. An error means that
// neither is known.
func (c *Clients) Call(ctx context.Context, from Pod, to netip.AddrPort, path string) (bool, error) {
	certificate, err := c.certificate(from)
	if err != nil {
		return false, err
	}
	//nolint:gosec // Servers have no DNS names. Their certificates are verified by VerifyConnection.
	creds := credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{certificate}, InsecureSkipVerify: true, VerifyConnection: c.verify, MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2"},
	})
	conn, err := grpc.NewClient("passthrough:///"+to.String(), grpc.WithTransportCredentials(creds), grpc.WithDisableServiceConfig(),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return c.Network.Dial(ctx, from.Address, to) }))
	if err != nil {
		return false, fmt.Errorf("make a client: %w", err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	switch err := conn.Invoke(ctx, path, &emptypb.Empty{}, &emptypb.Empty{}); status.Code(err) {
	case codes.OK:
		return true, nil
	case codes.PermissionDenied:
		return false, nil
	default:
		return false, fmt.Errorf("request to %s: %w", to, err)
	}
}

// verify checks that the authority issued the certificate of a server.
func (c *Clients) verify(state tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("the server has no certificate")
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: c.Authority.Pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	return err
}

func (c *Clients) certificate(p Pod) (tls.Certificate, error) {
	identity := authority.Identity(p.Namespace, p.Account)
	c.mu.Lock()
	defer c.mu.Unlock()
	if have, ok := c.issued[identity.String()]; ok {
		return have, nil
	}
	made, err := c.Authority.Issue(identity)
	if err != nil {
		return made, err
	}
	if c.issued == nil {
		c.issued = map[string]tls.Certificate{}
	}
	c.issued[identity.String()] = made
	return made, nil
}

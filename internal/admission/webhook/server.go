package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Path is the path at which reviews are served.
const Path = "/validate"

const (
	headerTimeout = 5 * time.Second
	idleTimeout   = 2 * time.Minute
	// drain is how long reviews in progress may take during shutdown.
	drain = 5 * time.Second
	// reread is how often the certificate is read if the file system reports no change.
	reread = 10 * time.Second
)

// Server serves the webhook. It runs in every replica, because it makes no decision that needs a leader.
type Server struct {
	listener net.Listener
	certs    *certwatcher.CertWatcher
	http     *http.Server
}

// New listens on the address at once, so that a wrong address is reported before anything starts. The certificate is
// reloaded whenever its file changes.
func New(ctx context.Context, address, certFile, keyFile string, h *Handler) (*Server, error) {
	certs, err := certwatcher.New(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("read the webhook's certificate: %w", err)
	}
	hook, err := ctrladmission.StandaloneWebhook(&ctrladmission.Webhook{Handler: h}, ctrladmission.StandaloneOptions{})
	if err != nil {
		return nil, fmt.Errorf("make the webhook: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("POST "+Path, hook)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serve the webhook: %w", err)
	}
	return &Server{listener: listener, certs: certs.WithWatchInterval(reread), http: &http.Server{
		Handler: mux, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certs.GetCertificate},
	}}, nil
}

// GetCertificate returns the certificate that the server presents now.
func (s *Server) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	return s.certs.GetCertificate(hello)
}

// Address returns the address on which the server listens.
func (s *Server) Address() string { return s.listener.Addr().String() }

// NeedLeaderElection returns false, because every replica answers reviews.
func (s *Server) NeedLeaderElection() bool { return false }

// Start serves until the context ends.
func (s *Server) Start(ctx context.Context) error {
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	watched, served := make(chan error, 1), make(chan error, 1)
	go func() { watched <- s.certs.Start(watching) }()
	go func() { served <- s.http.ServeTLS(s.listener, "", "") }()
	var err error
	select {
	case <-ctx.Done():
		end, stop := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer stop()
		err = s.http.Shutdown(end)
		<-served //nolint:errcheck // it says that the server was closed
		stopWatching()
		<-watched //nolint:errcheck // what it says after its context ended is of no use
	case err = <-watched: // Without the watcher, the certificate would expire unnoticed.
		err = errors.Join(err, s.http.Close())
		<-served //nolint:errcheck // it says that the server was closed
	case err = <-served:
		stopWatching()
		<-watched //nolint:errcheck // what it says after its context ended is of no use
	}
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve the webhook: %w", err)
	}
	return nil
}

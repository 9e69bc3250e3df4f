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

// Path is where reviews are served.
const Path = "/validate"

const (
	headerTimeout = 5 * time.Second
	idleTimeout   = 2 * time.Minute
	// drain is how long reviews that were begun may take at the end.
	drain = 5 * time.Second
	// reread is how often the certificate is read again if the file system tells nothing.
	reread = 10 * time.Second
)

// Server serves the webhook. It runs on every replica: it decides nothing that a leader would have to.
type Server struct {
	listener net.Listener
	certs    *certwatcher.CertWatcher
	http     *http.Server
}

// New listens on the address at once, so that a wrong one is told before anything starts. The certificate is read
// again whenever its file changes.
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

// Address is where the server listens.
func (s *Server) Address() string { return s.listener.Addr().String() }

// NeedLeaderElection is false: every replica answers.
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
	case err = <-watched: // without it, the certificate would grow old unnoticed
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

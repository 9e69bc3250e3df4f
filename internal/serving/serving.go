// Package serving opens the addresses at which a program is reached, with or without TLS, and closes them in order. The package must
// not depend on what is served.
package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// rereadEvery is how often the certificate is read again if the file system reports no change, as for some volumes.
const rereadEvery = 10 * time.Second

// Certificate names the files of a certificate and its key. If both are empty, the endpoint serves plain HTTP.
type Certificate struct{ CertFile, KeyFile string }

// Given reports whether there is a certificate.
func (c Certificate) Given() bool { return c.CertFile != "" && c.KeyFile != "" }

// Validate returns an error if only one of the files is given. The arguments are the names of the settings.
func (c Certificate) Validate(certName, keyName string) error {
	if (c.CertFile == "") != (c.KeyFile == "") {
		return fmt.Errorf("--%s and --%s are needed together", certName, keyName)
	}
	return nil
}

// Config configures an Endpoint.
type Config struct {
	// Setting is the name of the setting with the address, for errors.
	Setting string
	Address string
	// Certificate is read again when its files change.
	Certificate Certificate
	// Ends exports when the certificate ends. It may be nil.
	Ends *CertificateEnds
	// Server has the handler and the timeouts. The Endpoint takes ownership of it.
	Server *http.Server
}

// Endpoint is an address at which a program listens.
type Endpoint struct {
	listener net.Listener
	certs    *certwatcher.CertWatcher
	server   *http.Server
}

// Listen opens the address, so that a wrong one is reported before anything else starts.
func Listen(ctx context.Context, c Config) (*Endpoint, error) {
	e := &Endpoint{server: c.Server}
	if c.Certificate.Given() {
		certs, err := certwatcher.New(c.Certificate.CertFile, c.Certificate.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("read the certificate for --%s: %w", c.Setting, err)
		}
		e.certs = certs.WithWatchInterval(rereadEvery)
		e.server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certs.GetCertificate}
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is in use by another program: stop it or choose another --%s", c.Address, c.Setting)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on --%s %s: %w", c.Setting, c.Address, err)
	}
	e.listener = l
	if e.certs != nil {
		c.Ends.Add(c.Setting, e.certs.GetCertificate)
	}
	return e, nil
}

// Address returns the address at which the endpoint listens.
func (e *Endpoint) Address() string { return e.listener.Addr().String() }

// Serve serves until Shutdown or Close. It then returns nil.
func (e *Endpoint) Serve() error {
	served := make(chan error, 1)
	if e.certs == nil {
		return closed(e.server.Serve(e.listener))
	}
	watching, stop := context.WithCancel(context.Background())
	watched := make(chan error, 1)
	go func() { watched <- e.certs.Start(watching) }()
	go func() { served <- e.server.ServeTLS(e.listener, "", "") }()
	select {
	case err := <-served:
		stop()
		<-watched //nolint:errcheck // its result after the end of its context does not matter
		return closed(err)
	case err := <-watched: // without it, the certificate would expire unnoticed
		stop()
		return errors.Join(fmt.Errorf("watch the certificate: %w", err), e.server.Close(), closed(<-served))
	}
}

func closed(err error) error {
	if err == nil || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve: %w", err)
}

// Shutdown refuses new connections and waits for requests in progress until the context ends. It then aborts them.
func (e *Endpoint) Shutdown(ctx context.Context) error {
	if err := e.server.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("requests at %s did not end in time: %w", e.Address(), err), e.server.Close())
	}
	return nil
}

// Close closes the endpoint at once, for programs that fail to start.
func (e *Endpoint) Close() error { return errors.Join(e.listener.Close(), e.server.Close()) }

// CheckAddress returns an error if a setting is not HOST:PORT. The host may be empty, which means all interfaces.
func CheckAddress(setting, address string) error {
	if _, port, err := net.SplitHostPort(address); err != nil || port == "" {
		return fmt.Errorf("--%s %q is not HOST:PORT, such as 127.0.0.1:8080, or :8080 for all interfaces", setting, address)
	}
	return nil
}

// Loopback reports whether an address is reachable only from this machine.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// Prefixes parses addresses and prefixes, such as those of proxies. It returns an error for a prefix that contains all addresses.
func Prefixes(setting string, in []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, s := range in {
		p, err := netip.ParsePrefix(s)
		if a, e := netip.ParseAddr(s); e == nil {
			p, err = a.Prefix(a.BitLen())
		}
		if err != nil {
			return nil, fmt.Errorf("--%s %q: use an address such as 10.0.0.5, or a prefix such as 10.0.0.0/24", setting, s)
		}
		if p.Bits() == 0 {
			return nil, fmt.Errorf("--%s %q stands for everyone: name the proxies' addresses", setting, s)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

package otlp

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"

	"golang.org/x/net/http/httpguts"
)

// maxFile bounds the files that are read for each batch, in bytes.
const maxFile = 1 << 20

// transport sends batches with the headers and authorities of files, which it reads again each time: they are short, and there
// is one batch every few seconds.
type transport struct {
	headersFile, authoritiesFile string

	mu          sync.Mutex
	authorities []byte
	base        *http.Transport
}

func newTransport(s *Settings) (*transport, error) {
	t := &transport{headersFile: s.HeadersFile, authoritiesFile: s.authorities()}
	if _, err := t.headers(); err != nil {
		return nil, err
	}
	if _, err := t.current(); err != nil {
		return nil, err
	}
	return t, nil
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	headers, err := t.headers()
	if err != nil {
		return nil, err
	}
	base, err := t.current()
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	for name, values := range headers {
		r.Header[name] = values
	}
	return base.RoundTrip(r)
}

// headers reads the file of headers. Its errors do not repeat the file's content.
func (t *transport) headers() (http.Header, error) {
	out := http.Header{}
	if t.headersFile == "" {
		return out, nil
	}
	text, err := readFile(t.headersFile)
	if err != nil {
		return nil, fmt.Errorf("--tracing-headers-file: %w", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if name, value = strings.TrimSpace(
			name,
		), strings.TrimSpace(
			value,
		); !ok || !httpguts.ValidHeaderFieldName(name) || value == "" ||
			!httpguts.ValidHeaderFieldValue(value) {
			return nil, fmt.Errorf("--tracing-headers-file %s line %d: write NAME: VALUE", t.headersFile, n)
		}
		out.Add(name, value)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("--tracing-headers-file %s: %w", t.headersFile, err)
	}
	return out, nil
}

// current returns the transport for the present authorities.
func (t *transport) current() (*http.Transport, error) {
	var authorities []byte
	if t.authoritiesFile != "" {
		var err error
		if authorities, err = readFile(t.authoritiesFile); err != nil {
			return nil, fmt.Errorf("--tracing-ca-file: %w", err)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.base != nil && bytes.Equal(authorities, t.authorities) {
		return t.base, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.authoritiesFile != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(authorities) {
			return nil, fmt.Errorf("--tracing-ca-file %s has no certificate in PEM", t.authoritiesFile)
		}
	}
	standard, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("the standard HTTP transport was replaced")
	}
	next := standard.Clone()
	next.TLSClientConfig, next.MaxIdleConnsPerHost = config, 1
	if t.base != nil {
		t.base.CloseIdleConnections()
	}
	t.base, t.authorities = next, authorities
	return next, nil
}

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s is larger than %d bytes", name, maxFile)
	}
	return text, err
}

// refuseRedirects keeps headers with secrets from being sent elsewhere.
func refuseRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

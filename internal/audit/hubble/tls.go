package hubble

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"google.golang.org/grpc/credentials"
)

// TLSFiles names the files of a mutually authenticated connection. They are read for each connection, so that renewed
// certificates need no restart.
type TLSFiles struct {
	// CA is the file of the certificate authority that signs the servers' certificates; Cert and Key are the collector's own.
	CA, Cert, Key string
	// Authority contains the certificates of the authority in PEM. If it is set, the file CA is not read.
	Authority string
	// ServerName is the name expected in the servers' certificates.
	ServerName string
}

// Credentials reads the files and returns credentials for TLS 1.3.
func (t TLSFiles) Credentials() (credentials.TransportCredentials, error) {
	ca, from := []byte(t.Authority), "the declaration"
	if t.Authority == "" {
		var err error
		if ca, err = os.ReadFile(t.CA); err != nil {
			return nil, fmt.Errorf("read the certificate authority of Hubble: %w", err)
		}
		from = t.CA
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("read the certificate authority of Hubble: %s holds no PEM certificate", from)
	}
	own, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, fmt.Errorf("read the collector's certificate %s and key %s: %w", t.Cert, t.Key, err)
	}
	return credentials.NewTLS(&tls.Config{
		RootCAs: roots, Certificates: []tls.Certificate{own}, ServerName: t.ServerName, MinVersion: tls.VersionTLS13,
	}), nil
}

// Version returns a value that changes when one of the files changes; "" if a file is missing for a moment while it is renewed.
func (t TLSFiles) Version() string {
	var v string
	for _, path := range t.paths() {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return ""
		}
		if err == nil {
			v += info.ModTime().Format(time.RFC3339Nano) + fmt.Sprint(info.Size()) + ";"
		}
	}
	return v
}

func (t TLSFiles) paths() []string {
	if t.Authority != "" {
		return []string{t.Cert, t.Key}
	}
	return []string{t.CA, t.Cert, t.Key}
}

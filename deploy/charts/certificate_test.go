package charts

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
)

// verifyPair checks a certificate, its key, and that an authority signed it for a name.
func verifyPair(certificate, key, authority []byte, name string) error {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return errors.New("the authority is no PEM")
	}
	_, err = leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots})
	return err
}

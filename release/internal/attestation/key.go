// Package attestation signs statements about what was built and checks such signatures, in the formats of Sigstore and in-toto that cosign reads.
package attestation

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
)

// Key is an ECDSA key on the curve P-256, which `cosign generate-key-pair` makes. It implements sign.Keypair of sigstore-go.
type Key struct {
	private *ecdsa.PrivateKey
	public  []byte // DER
}

// LoadKey reads a private key that `cosign generate-key-pair` wrote, or an unencrypted key in PKCS #8.
func LoadKey(path, password string) (*Key, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the signing key: %w", err)
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, fmt.Errorf("the signing key %s is not PEM", path)
	}
	der := block.Bytes
	switch block.Type {
	case "ENCRYPTED SIGSTORE PRIVATE KEY", "ENCRYPTED COSIGN PRIVATE KEY":
		if der, err = encrypted.Decrypt(block.Bytes, []byte(password)); err != nil {
			return nil, fmt.Errorf("decrypt the signing key %s with COSIGN_PASSWORD: %w", path, err)
		}
	case "PRIVATE KEY":
	default:
		return nil, fmt.Errorf("the signing key %s is a %q; `cosign generate-key-pair` makes one that works", path, block.Type)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("read the signing key %s: %w", path, err)
	}
	private, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || private.Curve != elliptic.P256() {
		return nil, fmt.Errorf("the signing key %s is not ECDSA on P-256; `cosign generate-key-pair` makes one that works", path)
	}
	return newKey(private)
}

// GenerateKey returns a new key that is kept nowhere.
func GenerateKey() (*Key, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate a signing key: %w", err)
	}
	return newKey(private)
}

func newKey(private *ecdsa.PrivateKey) (*Key, error) {
	public, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		return nil, fmt.Errorf("encode the public key: %w", err)
	}
	return &Key{private, public}, nil
}

// PublicPEM returns the public key as cosign reads it.
func (k *Key) PublicPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: k.public})
}

// GetHashAlgorithm implements sign.Keypair.
func (k *Key) GetHashAlgorithm() protocommon.HashAlgorithm {
	return protocommon.HashAlgorithm_SHA2_256
}

// GetSigningAlgorithm implements sign.Keypair.
func (k *Key) GetSigningAlgorithm() protocommon.PublicKeyDetails {
	return protocommon.PublicKeyDetails_PKIX_ECDSA_P256_SHA_256
}

// GetHint implements sign.Keypair: the hash of the public key.
func (k *Key) GetHint() []byte {
	sum := sha256.Sum256(k.public)
	return []byte(base64.StdEncoding.EncodeToString(sum[:]))
}

// GetKeyAlgorithm implements sign.Keypair.
func (k *Key) GetKeyAlgorithm() string { return "ECDSA" }

// GetPublicKey implements sign.Keypair.
func (k *Key) GetPublicKey() crypto.PublicKey { return k.private.Public() }

// GetPublicKeyPem implements sign.Keypair.
func (k *Key) GetPublicKeyPem() (string, error) { return string(k.PublicPEM()), nil }

// SignData implements sign.Keypair. Without a source of randomness the signature follows RFC 6979, so that signing the same data again gives the same bytes.
func (k *Key) SignData(_ context.Context, data []byte) ([]byte, []byte, error) {
	sum := sha256.Sum256(data)
	signature, err := k.private.Sign(nil, sum[:], crypto.SHA256)
	if err != nil {
		return nil, nil, fmt.Errorf("sign: %w", err)
	}
	return signature, sum[:], nil
}

// ParsePublicKey reads a public key that PublicPEM or cosign wrote.
func ParsePublicKey(content []byte) (crypto.PublicKey, error) {
	block, _ := pem.Decode(content)
	if block == nil || block.Type != "PUBLIC KEY" {
		return nil, errors.New("the public key is not PEM of the type PUBLIC KEY")
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read the public key: %w", err)
	}
	return key, nil
}

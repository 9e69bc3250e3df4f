package attestation

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
)

var digest = v1.Hash{Algorithm: "sha256", Hex: strings.Repeat("0a", 32)}

func about(h v1.Hash) v1.Descriptor {
	return v1.Descriptor{MediaType: types.OCIImageIndex, Digest: h, Size: 1}
}

func generate(t *testing.T) *Key {
	t.Helper()
	k, err := GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestVerifyRejects checks that nothing passes but what the key signed about the digest.
func TestVerifyRejects(t *testing.T) {
	key := generate(t)
	a, err := Attach(t.Context(), key, "portal", about(digest), SBOMType, json.RawMessage(`{"a":1}`), time.Unix(0, 0), nil)
	if err != nil {
		t.Fatal(err)
	}
	kind, predicate, err := Verify(a.Content, key.GetPublicKey(), digest)
	if err != nil || kind != SBOMType || string(predicate) != `{"a":1}` {
		t.Fatalf("a statement that was just signed: %s %s %v", kind, predicate, err)
	}
	other := digest
	other.Hex = strings.Repeat("0b", 32)
	if _, _, err := Verify(a.Content, key.GetPublicKey(), other); err == nil {
		t.Error("a statement about another image passes")
	}
	if _, _, err := Verify(a.Content, generate(t).GetPublicKey(), digest); err == nil {
		t.Error("a signature of another key passes")
	}
	b, err := Attach(t.Context(), key, "portal", about(other), SBOMType, json.RawMessage(`{"a":1}`), time.Unix(0, 0), nil)
	if err != nil {
		t.Fatal(err)
	}
	var first, second map[string]any
	if err := json.Unmarshal(a.Content, &first); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b.Content, &second); err != nil {
		t.Fatal(err)
	}
	first["dsseEnvelope"].(map[string]any)["signatures"] = second["dsseEnvelope"].(map[string]any)["signatures"]
	mixed, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Verify(mixed, key.GetPublicKey(), digest); err == nil {
		t.Error("the signature of another statement passes")
	}
}

func TestSignFile(t *testing.T) {
	key := generate(t)
	bundle, err := SignFile(t.Context(), key, []byte("content"))
	if err != nil {
		t.Fatal(err)
	}
	public, err := ParsePublicKey(key.PublicPEM())
	if err != nil {
		t.Fatal(err)
	}
	if err := VerifyFile(bundle, public, []byte("content")); err != nil {
		t.Error(err)
	}
	if err := VerifyFile(bundle, public, []byte("content.")); err == nil {
		t.Error("a changed file passes")
	}
}

// TestSignaturesRepeat checks that signing again gives the same bytes, so that a second build of a release can be compared with the first as a whole.
func TestSignaturesRepeat(t *testing.T) {
	key := generate(t)
	var signed []string
	for range 2 {
		a, err := Attach(t.Context(), key, "portal", about(digest), SignatureType, json.RawMessage("{}"), time.Unix(0, 0), nil)
		if err != nil {
			t.Fatal(err)
		}
		signed = append(signed, string(a.Content))
	}
	if signed[0] != signed[1] {
		t.Error("the same statement was signed in two ways")
	}
}

func TestLoadKey(t *testing.T) {
	key := generate(t)
	der, err := x509.MarshalPKCS8PrivateKey(key.private)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := encrypted.Encrypt(der, []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	large, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	largeDER, err := x509.MarshalPKCS8PrivateKey(large)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		kind     string
		content  []byte
		password string
		wants    string
	}{
		"cosign's key":             {"ENCRYPTED SIGSTORE PRIVATE KEY", sealed, "secret", ""},
		"cosign's older name":      {"ENCRYPTED COSIGN PRIVATE KEY", sealed, "secret", ""},
		"a key without encryption": {"PRIVATE KEY", der, "", ""},
		"a wrong password":         {"ENCRYPTED SIGSTORE PRIVATE KEY", sealed, "guess", "COSIGN_PASSWORD"},
		"another algorithm":        {"PRIVATE KEY", largeDER, "", "not ECDSA on P-256"},
		"a certificate":            {"CERTIFICATE", der, "", "cosign generate-key-pair"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "key")
			if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: c.kind, Bytes: c.content}), 0o600); err != nil {
				t.Fatal(err)
			}
			loaded, err := LoadKey(path, c.password)
			switch {
			case c.wants != "":
				if err == nil || !strings.Contains(err.Error(), c.wants) {
					t.Errorf("the error is %v and does not say %q", err, c.wants)
				}
			case err != nil:
				t.Error(err)
			case !loaded.private.Equal(key.private):
				t.Error("another key was read")
			}
		})
	}
}

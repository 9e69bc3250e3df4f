package istio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/internal/testenv"
)

// webhooks contains the registrations of istiod's validation.
const webhooks = "conformance/istio/testdata/validating-webhooks.yaml"

// servingFlags writes a certificate for an address, its key, and the certificate of its CA, and returns the flags with which istiod serves
// webhooks with them.
func servingFlags(dir, host string) ([]string, error) {
	text, key, err := cert.GenerateSelfSignedCertKey(host, []net.IP{net.ParseIP(host)}, nil)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of the webhook: %w", err)
	}
	var out []string
	// The CA's certificate follows in the text. Istiod watches files, and refuses to watch one twice.
	for flag, content := range map[string][]byte{"--tlsCertFile": text, "--tlsKeyFile": key, "--caCertFile": text} {
		path := filepath.Join(dir, strings.TrimPrefix(flag, "--"))
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return nil, fmt.Errorf("write the certificate of the webhook: %w", err)
		}
		out = append(out, flag, path)
	}
	return out, nil
}

// registerWebhooks registers istiod's validation at an address, and waits until istiod has changed the failure policy of each registration to
// Fail. Istiod does so when the API server refuses an object that istiod knows to be invalid.
func (p *controlPlane) registerWebhooks(t testing.TB, address string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testenv.Root(), webhooks))
	if err != nil {
		t.Fatal(err)
	}
	for doc := range bytes.SplitSeq(text, []byte("---\n")) {
		registration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		if err := yaml.UnmarshalStrict(doc, registration); err != nil {
			t.Fatalf("read %s: %v", webhooks, err)
		}
		url := "https://" + address + "/validate"
		for i := range registration.Webhooks {
			registration.Webhooks[i].ClientConfig.URL = &url
		}
		if err := p.client.Create(t.Context(), registration); err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.Now().Add(startTimeout)
	for {
		err := p.failsClosed(t.Context())
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond) // poll interval
	}
}

// failsClosed returns nil if the API server refuses what it cannot have validated by istiod.
func (p *controlPlane) failsClosed(ctx context.Context) error {
	var registrations admissionregistrationv1.ValidatingWebhookConfigurationList
	if err := p.client.List(ctx, &registrations); err != nil {
		return fmt.Errorf("list the registrations of webhooks: %w", err)
	}
	for _, r := range registrations.Items {
		for _, w := range r.Webhooks {
			if w.FailurePolicy == nil || *w.FailurePolicy != admissionregistrationv1.Fail || len(w.ClientConfig.CABundle) == 0 {
				return fmt.Errorf("istiod has not taken over the webhook %s of %s", w.Name, r.Name)
			}
		}
	}
	if len(registrations.Items) == 0 {
		return errors.New("no webhook is registered")
	}
	return nil
}

// warnings collects the warnings of an API server, which include those of its webhooks.
type warnings struct {
	mu    sync.Mutex
	texts []string
	// ignored drops them, for a test of mistakes of which istiod warns.
	ignored bool
	// expected, if it is not "", is a text in warnings that are dropped.
	expected string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ignored && (w.expected == "" || !strings.Contains(text, w.expected)) {
		w.texts = append(w.texts, text)
	}
}

// take returns the warnings since the last call as an error, or nil.
func (w *warnings) take() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out error
	if len(w.texts) > 0 {
		out = fmt.Errorf("%d warnings, the first of which is: %s", len(w.texts), w.texts[0])
	}
	w.texts = nil
	return out
}

// validate returns nil if the API server, and with it istiod's webhook, accepts an object without a warning. It writes nothing.
func (p *controlPlane) validate(ctx context.Context, o client.Object) error {
	before := p.warnings.take()
	err := p.client.Create(ctx, o, client.DryRunAll, client.FieldValidation("Strict"))
	return errors.Join(before, err, p.warnings.take())
}

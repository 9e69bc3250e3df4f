package direct

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/acp-io/acp/internal/federation"
)

// secrets are Secrets that all have one token, and answer after a second.
type secrets struct {
	typedv1.SecretInterface
	token string
	reads atomic.Int32
}

func (s *secrets) Secrets(string) typedv1.SecretInterface { return s }

func (s *secrets) Get(ctx context.Context, _ string, _ metav1.GetOptions) (*corev1.Secret, error) {
	s.reads.Add(1)
	select {
	case <-time.After(time.Second):
		return &corev1.Secret{Data: map[string][]byte{"token": []byte(s.token)}}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestClientsReadATokenOnce checks that the workers of a member read its token once when the client ends for all of them, and that the client is replaced
// only if the token or the registration changed.
func TestClientsReadATokenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := &secrets{token: "a"}
		clients := &Clients{Secrets: on, Namespace: "acp-system"}
		// of returns what eight workers get, which has to be one client, after an expected number of reads.
		of := func(c federation.Cluster, reads int32, when string) dynamic.Interface {
			t.Helper()
			on.reads.Store(0)
			var got [8]dynamic.Interface
			var all sync.WaitGroup
			for i := range got {
				all.Go(func() {
					var err error
					if got[i], err = clients.Of(t.Context(), c); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			for _, g := range got {
				if g != got[0] {
					t.Errorf("%s: the workers got several clients", when)
				}
			}
			if n := on.reads.Load(); n != reads {
				t.Errorf("%s: the token was read %d times, want %d", when, n, reads)
			}
			return got[0]
		}
		m1 := federation.Cluster{Name: "m1", Endpoint: "https://127.0.0.1:1"}
		first := of(m1, 1, "at first")
		if of(m1, 0, "at once") != first {
			t.Error("a client was replaced while it is valid")
		}
		time.Sleep(clientLifetime)
		if of(m1, 1, "after its lifetime") != first {
			t.Error("a client was replaced although its token is the same")
		}
		on.token = "b"
		time.Sleep(clientLifetime)
		second := of(m1, 1, "with another token")
		if second == first {
			t.Error("a client has a former token")
		}
		m1.Endpoint = "https://127.0.0.1:2"
		third := of(m1, 1, "with another address")
		if third == second {
			t.Error("a client has a former address")
		}
		clients.Forget("m1")
		if of(m1, 1, "after its token was refused") == third {
			t.Error("a client is used again after its token was refused")
		}
		if of(federation.Cluster{Name: "m2", Endpoint: "https://127.0.0.1:2"}, 1, "of another member") == third {
			t.Error("two members have one client")
		}
	})
}

// TestAnEndedCallDoesNotEndTheReadForOthers checks that the workers who wait for a token get it although the one who began to read it gave up.
func TestAnEndedCallDoesNotEndTheReadForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := &secrets{token: "a"}
		clients := &Clients{Secrets: on, Namespace: "acp-system"}
		m1 := federation.Cluster{Name: "m1", Endpoint: "https://127.0.0.1:1"}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		ended := make(chan error, 1)
		go func() {
			_, err := clients.Of(ctx, m1)
			ended <- err
		}()
		synctest.Wait()
		if _, err := clients.Of(t.Context(), m1); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, errNoCredentials) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the one who gave up got %v", err)
		}
		if n := on.reads.Load(); n != 1 {
			t.Errorf("the token was read %d times", n)
		}
	})
}

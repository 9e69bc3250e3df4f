package direct

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"

	"github.com/acp-io/acp/internal/federation"
)

// clientLifetime is how long a client is used before its token is read again.
const clientLifetime = time.Minute

// errNoCredentials means that the host has no token of the engine's account in a member.
var errNoCredentials = errors.New("the host has no token of the direct engine for the member")

// Clients are clients of the members with the engine's own account, whose tokens are in the adapter's namespace on the host. Several
// engines may share them. The zero value with Secrets and Namespace is usable.
type Clients struct {
	// Secrets accesses the host's Secrets, of which the tokens are in Namespace.
	Secrets   typedv1.SecretsGetter
	Namespace string
	// Clock is the clock; nil means the machine's.
	Clock clock.PassiveClock

	mu      sync.Mutex
	clients map[string]memberClient
}

type memberClient struct {
	dynamic dynamic.Interface
	// of is the registration that the client was created from.
	of    federation.Cluster
	until time.Time
}

// Of returns a client of a member.
func (s *Clients) Of(ctx context.Context, c federation.Cluster) (dynamic.Interface, error) {
	s.mu.Lock()
	have, ok := s.clients[c.Name]
	s.mu.Unlock()
	if ok && s.now().Before(have.until) && have.of.SameConnection(c) {
		return have.dynamic, nil
	}
	name := federation.DirectSecretName(c.Name)
	secret, err := s.Secrets.Secrets(s.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("%w: read Secret %s/%s: %w", errNoCredentials, s.Namespace, name, err)
	}
	token := string(secret.Data["token"])
	if token == "" {
		return nil, fmt.Errorf("%w: Secret %s/%s has no key token", errNoCredentials, s.Namespace, name)
	}
	config, err := federation.RESTConfig(c, token)
	if err != nil {
		return nil, err
	}
	made, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of %s: %w", c.Name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clients == nil {
		s.clients = map[string]memberClient{}
	}
	s.clients[c.Name] = memberClient{made, c, s.now().Add(clientLifetime)}
	return made, nil
}

func (s *Clients) now() time.Time {
	return cmp.Or[clock.PassiveClock](s.Clock, clock.RealClock{}).Now()
}

// Forget drops the client of a member, which then reads the token again.
func (s *Clients) Forget(cluster string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, cluster)
}

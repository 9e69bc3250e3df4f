package direct

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
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
	// tokenReads combines the reads of a token by all workers of a member, whose cached client expires for all of them at once.
	tokenReads singleflight.Group
}

type memberClient struct {
	dynamic dynamic.Interface
	// of and token are the registration and the token that the client was created from.
	of    federation.Cluster
	token string
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
	token, err := s.token(ctx, c.Name)
	if err != nil {
		return nil, err
	}
	if client := s.renew(c, token, nil); client != nil {
		return client, nil
	}
	config, err := federation.RESTConfig(c, token)
	if err != nil {
		return nil, err
	}
	made, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of %s: %w", c.Name, err)
	}
	return s.renew(c, token, made), nil
}

// renew lets the client of a member be used for another clientLifetime if it was created from the same registration and token. Otherwise a new one, if
// there is one, takes its place. It returns the client of the member, or nil.
func (s *Clients) renew(c federation.Cluster, token string, made dynamic.Interface) dynamic.Interface {
	s.mu.Lock()
	defer s.mu.Unlock()
	have, ok := s.clients[c.Name]
	if !ok || have.token != token || !have.of.SameConnection(c) {
		if made == nil {
			return nil
		}
		have = memberClient{dynamic: made, of: c, token: token}
	}
	have.until = s.now().Add(clientLifetime)
	if s.clients == nil {
		s.clients = map[string]memberClient{}
	}
	s.clients[c.Name] = have
	return have.dynamic
}

// token reads the token of the engine's account in a member.
func (s *Clients) token(ctx context.Context, cluster string) (string, error) {
	name := federation.DirectSecretName(cluster)
	read := s.tokenReads.DoChan(name, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout) // others may wait for it longer than the caller
		defer cancel()
		secret, err := s.Secrets.Secrets(s.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return "", fmt.Errorf("%w: read Secret %s/%s: %w", errNoCredentials, s.Namespace, name, err)
		}
		token := string(secret.Data["token"])
		if token == "" {
			return "", fmt.Errorf("%w: Secret %s/%s has no key token", errNoCredentials, s.Namespace, name)
		}
		return token, nil
	})
	select {
	case got := <-read:
		token, _ := got.Val.(string)
		return token, got.Err
	case <-ctx.Done():
		return "", fmt.Errorf("%w: read Secret %s/%s: %w", errNoCredentials, s.Namespace, name, ctx.Err())
	}
}

func (s *Clients) now() time.Time {
	return cmp.Or[clock.PassiveClock](s.Clock, clock.RealClock{}).Now()
}

// Forget drops the client of a member, which then reads the token again.
func (s *Clients) Forget(cluster string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, cluster)
	s.tokenReads.Forget(federation.DirectSecretName(cluster)) // a read that has begun may return the token that was refused
}

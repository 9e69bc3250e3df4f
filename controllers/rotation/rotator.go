package rotation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/tokens"
)

// DefaultInterval is the interval of the checks, and so the longest time until KubeFed is notified of a token that
// somebody else replaced.
const DefaultInterval = time.Minute

// tokenKey is the key in both Secrets.
const tokenKey = "token"

// Rotator checks the tokens of all registered members periodically. It runs on the leader.
type Rotator struct {
	// Clusters returns the registered members.
	Clusters func() []federation.Cluster
	// Secrets accesses the host's Secrets.
	Secrets typedv1.SecretsGetter
	// KubeFedNamespace contains KubeFed's Secrets, CredentialsNamespace the adapter's.
	KubeFedNamespace, CredentialsNamespace string
	// Registrations notify KubeFed of a new token.
	Registrations interface {
		AnnounceToken(ctx context.Context, cluster, fingerprint string) error
	}
	// Busy reports whether KubeFed has work to do. Nil means that it never has.
	Busy     func() bool
	Interval time.Duration
	Clock    clock.WithTicker
	Log      logr.Logger
	Metrics  *Metrics

	// made are the tokens that were renewed here and of which KubeFed was not notified yet, by member.
	made map[string]renewed
}

type renewed struct {
	print string
	at    time.Time
}

// maxBusyDelay is the longest time for which KubeFed is not notified of a token because it is busy. KubeFed delays what
// it was about to begin by ten seconds when a member changes, and the token that it has is valid for days.
const maxBusyDelay = 10 * time.Minute

// Prepare validates and initialises a rotator.
func (r *Rotator) Prepare() error {
	if r.Clusters == nil || r.Secrets == nil || r.Registrations == nil || r.Clock == nil || r.Metrics == nil ||
		r.KubeFedNamespace == "" || r.CredentialsNamespace == "" {
		return errors.New("rotation: Clusters, Secrets, Registrations, Clock, Metrics and both namespaces are needed")
	}
	if r.Interval == 0 {
		r.Interval = DefaultInterval
	}
	return nil
}

// +kubebuilder:rbac:groups="",namespace=kube-federation-system,resources=secrets,verbs=get;update
// +kubebuilder:rbac:groups="",namespace=acp-system,resources=secrets,verbs=get;update
// +kubebuilder:rbac:groups=core.kubefed.io,namespace=kube-federation-system,resources=kubefedclusters,verbs=get;patch

// Start checks the tokens until the context ends.
func (r *Rotator) Start(ctx context.Context) error {
	ticker := r.Clock.NewTicker(r.Interval)
	defer ticker.Stop()
	for {
		r.checkAll(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// checkAll checks one member after the other. A failing member delays the others by seconds, and tokens are valid for
// days.
func (r *Rotator) checkAll(ctx context.Context) {
	clusters := r.Clusters()
	for _, c := range clusters {
		if ctx.Err() != nil {
			return
		}
		if err := r.reader(ctx, c); err != nil {
			r.failed(c, tokens.Reader, err)
		}
		if err := r.pusher(ctx, c); err != nil {
			r.failed(c, c.Engine.Account(), err)
		}
	}
	r.Metrics.keep(clusters)
}

func (r *Rotator) failed(c federation.Cluster, account string, err error) {
	if apierrors.IsConflict(err) || errors.Is(err, context.Canceled) {
		return // Somebody else wrote at the same time; the next check reads that.
	}
	r.Metrics.failures.WithLabelValues(c.Name, account).Inc()
	r.Log.Error(err, "Token cannot be renewed: when it expires the member becomes unreachable; `kubectl acp cluster join` creates new tokens",
		"member", c.Name, "account", account)
}

func (r *Rotator) reader(ctx context.Context, c federation.Cluster) error {
	_, _, err := r.renew(ctx, c, r.CredentialsNamespace, federation.SecretName(c.Name), tokens.Reader)
	return err
}

// pusher renews the token of the member's engine when it is due. KubeFed's has to be announced: KubeFed is notified whenever the
// token that exists is not the announced one, so that a crash in between is repaired, and a token that another program wrote is
// announced, too.
func (r *Rotator) pusher(ctx context.Context, c federation.Cluster) error {
	if c.Engine.Pulls() {
		return nil // The host has no token of its account.
	}
	if c.Engine == federation.EngineDirect {
		namespace, name := c.WriterSecret(r.KubeFedNamespace, r.CredentialsNamespace)
		_, _, err := r.renew(ctx, c, namespace, name, tokens.Direct)
		return err // The engine reads the Secret again by itself.
	}
	if c.Secret == "" {
		return nil // Nothing can be pushed to the member, which is a finding about it.
	}
	token, made, err := r.renew(ctx, c, r.KubeFedNamespace, c.Secret, tokens.Pusher)
	if token == "" {
		return err
	}
	print := tokens.Fingerprint(token)
	if made {
		if r.made == nil {
			r.made = map[string]renewed{}
		}
		r.made[c.Name] = renewed{print, r.Clock.Now()}
	}
	if print == c.AnnouncedToken {
		delete(r.made, c.Name)
		return err
	}
	// Only for a token that was renewed here it is known that the earlier one is still valid.
	if own := r.made[c.Name]; own.print == print && r.Busy != nil && r.Busy() && r.Clock.Since(own.at) < maxBusyDelay {
		return err
	}
	return errors.Join(err, r.Registrations.AnnounceToken(ctx, c.Name, print))
}

// renew returns the token that the Secret has afterwards, or "" if there is none, and whether it was renewed now.
func (r *Rotator) renew(ctx context.Context, c federation.Cluster, namespace, name, account string) (token string, made bool, err error) {
	secret, err := r.Secrets.Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", false, nil // The member's state reports this.
	}
	if err != nil {
		return "", false, fmt.Errorf("read Secret %s/%s: %w", namespace, name, err)
	}
	token = string(secret.Data[tokenKey])
	span := tokens.SpanOf(token)
	r.Metrics.ends(c.Name, account, span)
	if !span.Due(r.Clock.Now()) {
		return token, false, nil
	}
	config, err := federation.RESTConfig(c, token)
	if err != nil {
		return token, false, err
	}
	next, err := tokens.Renew(ctx, config, account)
	if err != nil {
		return token, false, err
	}
	if err := r.write(ctx, secret, next); err != nil {
		return token, false, err
	}
	r.Metrics.ends(c.Name, account, tokens.SpanOf(next))
	r.Metrics.renewals.WithLabelValues(c.Name, account).Inc()
	r.Log.Info("Renewed a token", "member", c.Name, "account", account, "until", tokens.SpanOf(next).Until)
	return next, true, nil
}

// write replaces exactly the Secret that was read, so that no newer token is lost.
func (r *Rotator) write(ctx context.Context, secret *corev1.Secret, token string) error {
	secret.Data[tokenKey] = []byte(token)
	if _, err := r.Secrets.Secrets(secret.Namespace).Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("write Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return nil
}

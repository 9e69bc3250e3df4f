package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/guard"
	"github.com/acp-io/acp/internal/federation/preflight"
)

// ErrOtherPusher means that KubeFed is not the account in the member that the guard admits, so the guard would keep it out.
var ErrOtherPusher = errors.New("the guard would refuse KubeFed")

// Fix brings what a registered member lacks of the accounts' roles and of the guard. It registers nothing.
type Fix struct {
	Host *Host
	Name string
	// Member is the member's administrator.
	Member *rest.Config
	// Keys are what classes identify pods by; with ClassLabels, setting those on pods needs a right there.
	Keys        []preflight.Key
	ClassLabels bool
	// Istio: bring what Istio's policies need, too, although the host does not carry them yet.
	Istio  bool
	DryRun bool
	Told   func(Step)
}

// Run does it.
func (f *Fix) Run(ctx context.Context) error {
	u, c, err := f.Host.registration(ctx, f.Name)
	if err != nil {
		return err
	}
	if u == nil {
		return fmt.Errorf("%s: %w", f.Name, ErrUnregistered)
	}
	objects, err := dynamic.NewForConfig(f.Member)
	if err != nil {
		return fmt.Errorf("the member's configuration cannot be used: %w", err)
	}
	told := func(s Step, err error) error {
		if err == nil && f.Told != nil {
			f.Told(s)
		}
		return err
	}
	all, err := accounts()
	if err != nil {
		return err
	}
	for _, o := range all {
		if err := told(bring(ctx, objects, f.Name, o, f.DryRun)); err != nil {
			return err
		}
	}
	kinds, err := f.Host.Needed(ctx)
	if err != nil {
		return err
	}
	if f.Istio || slices.ContainsFunc(kinds, isIstio) {
		if err := bringIstio(ctx, objects, f.Name, f.DryRun, told); err != nil {
			return err
		}
	}
	if err := f.admitted(ctx, c); err != nil {
		return err
	}
	return bringGuard(ctx, objects, f.Name, f.Keys, f.ClassLabels, f.DryRun, told)
}

// admitted asks the member who KubeFed is there.
func (f *Fix) admitted(ctx context.Context, c federation.Cluster) error {
	token, err := f.Host.token(ctx, f.Host.KubeFedNamespace, c.Secret)
	if err != nil {
		return err
	}
	config, err := federation.RESTConfig(c, token)
	if err != nil {
		return err
	}
	config.Timeout = preflight.Timeout
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("the registration of member %s is unusable: %w", c.Name, err)
	}
	review, err := core.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("ask member %s who KubeFed is there: %w", c.Name, err)
	}
	if who := review.Status.UserInfo.Username; who != guard.Pusher {
		return fmt.Errorf("%w: it is %s in member %s, and not %s; kubectl acp cluster join makes that account and registers it", ErrOtherPusher, who, c.Name, guard.Pusher)
	}
	return nil
}

// bringGuard makes the guard of a member as it has to be. A cluster that is too old for it has none.
func bringGuard(ctx context.Context, objects dynamic.Interface, cluster string, keys []preflight.Key, labels, dry bool, told func(Step, error) error) error {
	var credentials guard.Credentials
	if labels {
		credentials = preflight.Credentials(keys)
	}
	all, err := guard.Objects(credentials)
	if err != nil {
		return err
	}
	for _, o := range all {
		step, err := bring(ctx, objects, cluster, o, dry)
		if apierrors.IsNotFound(err) {
			step.Done, err = Unserved, nil
		}
		if err := told(step, err); err != nil {
			return err
		}
	}
	return nil
}

// look assesses a member with the tokens that KubeFed and the adapter use.
func (h *Host) look(ctx context.Context, c federation.Cluster, needs preflight.Needs) ([]preflight.Finding, error) {
	_, now, err := h.registration(ctx, c.Name)
	if err != nil {
		return nil, err
	}
	return preflight.Assess(h.FactsOf(ctx, now), needs), nil
}

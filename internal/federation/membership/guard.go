package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/guard"
	"github.com/acp-io/acp/internal/federation/preflight"
)

// ErrOtherPusher means that KubeFed uses another account in the member than the guard admits, so that the guard would
// refuse it.
var ErrOtherPusher = errors.New("the guard would refuse KubeFed")

// Fix creates what a registered member lacks of the accounts' roles and of the guard. It registers nothing.
type Fix struct {
	Host *Host
	Name string
	// Member has the rights of the member's administrator.
	Member *rest.Config
	// Keys are the labels and accounts by which classes identify pods. With ClassLabels, setting them needs a right in
	// the member.
	Keys        []preflight.Key
	ClassLabels bool
	// Istio creates what Istio's policies need, even if the host does not distribute them yet.
	Istio  bool
	DryRun bool
	// OnStep is called after each step.
	OnStep func(Step)
}

// Run makes the changes.
func (f *Fix) Run(ctx context.Context) error {
	u, c, err := f.Host.registration(ctx, f.Name)
	if err != nil {
		return err
	}
	if u == nil {
		return fmt.Errorf("%s: %w", f.Name, ErrUnregistered)
	}
	if err := f.Host.refuseHostCluster(ctx, f.Member); err != nil {
		return err
	}
	objects, err := dynamic.NewForConfig(f.Member)
	if err != nil {
		return fmt.Errorf("the member's configuration cannot be used: %w", err)
	}
	record := func(s Step, err error) error {
		if err == nil && f.OnStep != nil {
			f.OnStep(s)
		}
		return err
	}
	all, err := accounts(c.Engine)
	if err != nil {
		return err
	}
	for _, o := range all {
		if err := record(applyObject(ctx, objects, f.Name, o, f.DryRun)); err != nil {
			return err
		}
	}
	if c.WithoutCilium() {
		if err := applyCiliumKinds(ctx, objects, f.Name, f.DryRun, record); err != nil {
			return err
		}
	}
	kinds, err := f.Host.Needed(ctx)
	if err != nil {
		return err
	}
	if f.Istio || slices.ContainsFunc(kinds, isIstio) && c.NeedsIstioKind() {
		if err := applyIstio(ctx, objects, f.Name, c.Engine, f.DryRun, record); err != nil {
			return err
		}
	}
	if c.Engine.Pulls() {
		err = f.Host.checkAgent(ctx, c.Name, f.Member)
	} else {
		err = f.admitted(ctx, c)
	}
	if err != nil {
		return err
	}
	return applyGuard(ctx, objects, f.Name, f.Keys, f.ClassLabels, []string{c.Engine.Writer()}, f.DryRun, record)
}

// admitted checks that the user of the member's engine is the one that the guard admits.
func (f *Fix) admitted(ctx context.Context, c federation.Cluster) error {
	namespace, name := c.WriterSecret(f.Host.KubeFedNamespace, f.Host.CredentialsNamespace)
	token, err := f.Host.token(ctx, namespace, name)
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
	if who := review.Status.UserInfo.Username; who != c.Engine.Writer() {
		return fmt.Errorf(
			"%w: it is %s in member %s, and not %s; kubectl acp cluster join makes that account and registers it",
			ErrOtherPusher,
			who,
			c.Name,
			c.Engine.Writer(),
		)
	}
	return nil
}

// applyGuard applies the guard in a member, which admits pushers. A cluster that is too old for it gets none.
func applyGuard(ctx context.Context, objects dynamic.Interface, cluster string, keys []preflight.Key, labels bool, pushers []string, dry bool,
	record func(Step, error) error) error {
	var credentials guard.Credentials
	if labels {
		credentials = preflight.Credentials(keys)
	}
	all, err := guard.Objects(credentials, pushers...)
	if err != nil {
		return err
	}
	return applyPolicies(ctx, objects, cluster, all, dry, record)
}

// applyPolicies applies admission policies. A cluster that is too old for them gets none.
func applyPolicies(ctx context.Context, c dynamic.Interface, in string, policies []*unstructured.Unstructured, dry bool,
	record func(Step, error) error) error {
	for _, o := range policies {
		step, err := applyObject(ctx, c, in, o, dry)
		if apierrors.IsNotFound(err) {
			step.Outcome, err = Unserved, nil
		}
		if err := record(step, err); err != nil {
			return err
		}
	}
	return nil
}

// assess returns the findings about a member, which it reads with the tokens of KubeFed and the adapter.
func (h *Host) assess(ctx context.Context, c federation.Cluster, needs preflight.Needs) ([]preflight.Finding, error) {
	_, now, err := h.registration(ctx, c.Name)
	if err != nil {
		return nil, err
	}
	return preflight.Assess(h.FactsOf(ctx, now), needs), nil
}

package memberdowngrade

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

	"github.com/acp-io/acp/internal/federation/guard"
)

// ErrNotAdmitted means that the operator is not in the break-glass group and may not impersonate it.
var ErrNotAdmitted = errors.New("you are not in the group " + guard.BreakGlass + " there, and may not impersonate it")

// Operator is a user who may use the break-glass group in a member.
type Operator struct {
	// Name is the user's name, for the mark.
	Name string
	// base are the credentials without impersonation.
	base   *rest.Config
	client dynamic.Interface
}

// NewOperator reads from the member which user the credentials belong to. A user who is not in the break-glass group impersonates
// it, which administrators may do; the member's audit log has both names.
func NewOperator(ctx context.Context, config *rest.Config) (*Operator, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // The API server's own fairness limits the rate.
	who, err := identity(ctx, config)
	if err != nil {
		return nil, err
	}
	out := &Operator{Name: who.Username, base: config}
	if !slices.Contains(who.Groups, guard.BreakGlass) {
		config = impersonating(config, who.Username, append(who.Groups, guard.BreakGlass)...)
		if _, err := identity(ctx, config); apierrors.IsForbidden(err) {
			return nil, fmt.Errorf("%w: %w", ErrNotAdmitted, err)
		} else if err != nil {
			return nil, err
		}
	}
	if out.client, err = dynamic.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("the member's configuration cannot be used: %w", err)
	}
	return out, nil
}

func identity(ctx context.Context, config *rest.Config) (authenticationv1.UserInfo, error) {
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return authenticationv1.UserInfo{}, fmt.Errorf("the member's configuration cannot be used: %w", err)
	}
	review, err := core.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.UserInfo{}, fmt.Errorf("ask the member who you are: %w", err)
	}
	return review.Status.UserInfo, nil
}

// impersonating returns a configuration that impersonates a user. It leaves out the group that the API server adds automatically.
func impersonating(config *rest.Config, user string, groups ...string) *rest.Config {
	out := rest.CopyConfig(config)
	out.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: slices.DeleteFunc(slices.Clone(groups), func(g string) bool {
		return g == "system:authenticated"
	})}
	return out
}

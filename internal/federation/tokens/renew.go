package tokens

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Accounts in a member.
const (
	// Namespace is the namespace of both accounts.
	Namespace = "acp-system"
	// Pusher is the account with which KubeFed writes.
	Pusher = "acp-pusher"
	// Reader is the account with which the adapter reads back.
	Reader = "acp-adapter"
	// Direct is the account with which the adapter itself writes in a member that uses the direct engine.
	Direct = "acp-direct"
)

// ErrNotYounger means that the member issued a token that expires no later than the present one.
var ErrNotYounger = errors.New("the member gives no token that ends later")

// requestTimeout bounds each request to a member's API server.
const requestTimeout = 10 * time.Second

// Renew obtains the next token of an account with its present one, which config contains, for the same lifetime. It
// returns the new token only after the member has accepted it. An account may do this only for itself.
func Renew(ctx context.Context, config *rest.Config, account string) (string, error) {
	present := SpanOf(config.BearerToken)
	config = rest.CopyConfig(config)
	config.Timeout = requestTimeout
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", fmt.Errorf("the member's registration is unusable: %w", err)
	}
	seconds := int64(present.Lifetime() / time.Second)
	got, err := client.CoreV1().ServiceAccounts(Namespace).CreateToken(ctx, account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("ask the member for a token of %s: %w", account, err)
	}
	next := got.Status.Token
	if !SpanOf(next).Until.After(present.Until) {
		return "", ErrNotYounger
	}
	config.BearerToken = next
	if client, err = kubernetes.NewForConfig(config); err != nil {
		return "", fmt.Errorf("the member's new token is unusable: %w", err)
	}
	who, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("try the new token of %s: %w", account, err)
	}
	if want := "system:serviceaccount:" + Namespace + ":" + account; who.Status.UserInfo.Username != want {
		return "", fmt.Errorf("the new token is of %s, not of %s", who.Status.UserInfo.Username, want)
	}
	return next, nil
}

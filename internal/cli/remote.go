package cli

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-io/acp/internal/portalclient"
)

// ExitFailed is the exit code if the portal refused a request or could not answer it.
const ExitFailed = 4

const (
	envServer = "ACP_SERVER"
	envToken  = "ACP_TOKEN"
	// envCredentials names the file of logins.
	envCredentials = "ACP_CREDENTIALS"
)

// remote contains the flags that all commands for a portal have in common.
type remote struct {
	streams     Streams
	server      string
	credentials string
}

func (r *remote) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.server, "server", "", "the portal's `URL` (default: $"+envServer+", then the portal of the last login)")
	cmd.Flags().
		StringVar(&r.credentials, "credentials", "",
			"`FILE` of logins (default: $"+envCredentials+", then acp/credentials.yaml in the user's configuration folder)")
}

func (r *remote) logins() (*portalclient.Credentials, error) {
	path := either(r.credentials, os.Getenv(envCredentials))
	if path == "" {
		var err error
		if path, err = portalclient.DefaultFile(); err != nil {
			return nil, &failure{code: ExitFailed, err: err}
		}
	}
	c, err := portalclient.ReadCredentials(path)
	if err != nil {
		return nil, &failure{code: ExitFailed, err: err}
	}
	return c, nil
}

// address returns the portal's address from the flag, the environment or the last login.
func (r *remote) address(c *portalclient.Credentials) (*url.URL, error) {
	for _, address := range []string{r.server, os.Getenv(envServer), c.Current} {
		if address == "" {
			continue
		}
		u, err := portalclient.ParseServer(address)
		if err != nil {
			return nil, usage("%v", err)
		}
		return u, nil
	}
	return nil, usage("which portal? Give --server URL, set %s, or run kubectl acp login --server URL", envServer)
}

// connect returns a client with the user's token.
func (r *remote) connect() (*portalclient.Client, error) {
	c, err := r.logins()
	if err != nil {
		return nil, err
	}
	u, err := r.address(c)
	if err != nil {
		return nil, err
	}
	if token := os.Getenv(envToken); token != "" {
		return portalclient.New(u, token, language()), nil
	}
	login, ok := c.Logins[u.String()]
	switch {
	case !ok:
		return nil, &failure{code: ExitFailed, err: fmt.Errorf("not logged in at %s: run kubectl acp login --server %s, or set %s", u, u, envToken)}
	case !r.streams.Now().Before(login.ExpiresAt):
		return nil, &failure{code: ExitFailed, err: fmt.Errorf("the login at %s is over since %s: run kubectl acp login", u, localTime(login.ExpiresAt))}
	}
	return portalclient.New(u, login.Token, language()), nil
}

// remotely converts an error response of the portal into an error that says what to do.
func remotely(err error) error {
	var known *failure
	if err == nil || errors.As(err, &known) {
		return err
	}
	if portalclient.CodeOf(err) == "unauthenticated" {
		err = errors.New("the portal does not accept the login any more: run kubectl acp login")
	}
	var problem *portalclient.Error
	if errors.As(err, &problem) && problem.Ticket != nil {
		err = fmt.Errorf("%w; see kubectl acp tickets %s", err, *problem.Ticket)
	}
	return &failure{code: ExitFailed, err: err}
}

// newKey returns an idempotency key, which makes repeating a call harmless.
func newKey() string { return rand.Text() }

func localTime(t time.Time) string { return t.Local().Format("2006-01-02 15:04 MST") }

// optional returns nil for an empty text.
func optional(s string) *string {
	if strings.TrimSpace(s) == "" {
		return nil
	}
	return &s
}

func text(s *string) string { return value(s) }

// value returns what an optional field contains, or the zero value.
func value[T any](p *T) T {
	if p == nil {
		var none T
		return none
	}
	return *p
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-io/acp/internal/portalclient"
)

func newLogin(s Streams) *cobra.Command {
	r := &remote{streams: s}
	cmd := &cobra.Command{
		Use:   "login --server URL",
		Short: "Log in to a portal with the browser",
		Long: `Log in to a portal: the command shows a code, you open the portal in a browser (of any machine), log in there and
confirm. The login is stored in a file that only you can read, one for each portal.

Programs do not log in: they set ` + envToken + ` to a machine token, which you create on the portal's profile page.`,
		Example: "  kubectl acp login --server https://acp.example.com",
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return remotely(r.login(cmd.Context())) },
	}
	r.flags(cmd)
	return cmd
}

func (r *remote) login(ctx context.Context) error {
	known, err := r.logins()
	if err != nil {
		return err
	}
	u, err := r.address(known)
	if err != nil {
		return err
	}
	c := portalclient.New(u, "", language())
	var start portalclient.DeviceStart
	if err := c.Post(ctx, "/auth/device", "", portalclient.NewDevice{Client: callsItself()}, &start); err != nil {
		return err
	}
	fmt.Fprintf(
		r.streams.Err,
		"Open   %s\nEnter  %s\n\nWaiting for you to agree there (at most %s) ...\n",
		start.VerificationUri,
		start.UserCode,
		time.Duration(start.ExpiresIn)*time.Second,
	)
	token, err := poll(ctx, c, start)
	if err != nil {
		return err
	}
	known.Current = u.String()
	known.Logins[u.String()] = portalclient.Login{Token: token.Token, ExpiresAt: token.ExpiresAt}
	if err := known.Save(); err != nil {
		return err
	}
	var me portalclient.Me
	if err := portalclient.New(u, token.Token, language()).Get(ctx, "/me", nil, &me); err != nil {
		return err
	}
	fmt.Fprintf(r.streams.Out, "Logged in at %s as %s until %s.\n", u, me.Person.DisplayName, localTime(token.ExpiresAt))
	return nil
}

// callsItself returns the name of this command line on the portal's page for the user who approves the login.
func callsItself() *string {
	const most = 100 // characters that the portal accepts
	name := "kubectl acp"
	if host, err := os.Hostname(); err == nil && host != "" {
		name += " on " + host
	}
	if r := []rune(name); len(r) > most {
		name = string(r[:most])
	}
	return &name
}

// poll polls until the user has approved, no faster than the portal allows (RFC 8628, 3.5).
func poll(ctx context.Context, c *portalclient.Client, start portalclient.DeviceStart) (portalclient.DeviceToken, error) {
	interval := max(time.Duration(start.Interval)*time.Second, 100*time.Millisecond)
	ctx, cancel := context.WithTimeout(ctx, time.Duration(start.ExpiresIn)*time.Second)
	defer cancel()
	for {
		var token portalclient.DeviceToken
		err := c.Post(ctx, "/auth/device/token", "", portalclient.DevicePoll{DeviceCode: start.DeviceCode}, &token)
		switch portalclient.CodeOf(err) {
		case "authorization-pending":
		case "slow-down":
			interval += 5 * time.Second
		case "":
			if ctx.Err() == nil {
				return token, err
			}
		default:
			return token, err
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return token, errors.New("the login was not approved in time: run kubectl acp login again")
			}
			return token, fmt.Errorf("wait for the login: %w", ctx.Err())
		case <-time.After(interval):
		}
	}
}

func newLogout(s Streams) *cobra.Command {
	r := &remote{streams: s}
	cmd := &cobra.Command{
		Use:   "logout",
		Short: "End the login at a portal",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return remotely(r.logout(cmd.Context())) },
	}
	r.flags(cmd)
	return cmd
}

// logout revokes the token in the portal first; deleting only the file would leave it valid.
func (r *remote) logout(ctx context.Context) error {
	known, err := r.logins()
	if err != nil {
		return err
	}
	u, err := r.address(known)
	if err != nil {
		return err
	}
	login, ok := known.Logins[u.String()]
	if !ok {
		fmt.Fprintf(r.streams.Err, "Not logged in at %s.\n", u)
		return nil
	}
	err = portalclient.New(u, login.Token, language()).Delete(ctx, "/me/tokens/current", nil)
	if err != nil && portalclient.CodeOf(err) != "unauthenticated" {
		return fmt.Errorf("the login is kept, because the portal could not end it: %w", err)
	}
	delete(known.Logins, u.String())
	if known.Current == u.String() {
		known.Current = ""
	}
	if err := known.Save(); err != nil {
		return err
	}
	fmt.Fprintf(r.streams.Out, "Logged out at %s.\n", u)
	return nil
}

type whoamiOptions struct {
	remote
	output
}

func newWhoami(s Streams) *cobra.Command {
	o := &whoamiOptions{remote: remote{streams: s}}
	cmd := &cobra.Command{
		Use:   "whoami",
		Short: "Show the user and the roles of the login",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return remotely(o.run(cmd.Context())) },
	}
	o.flags(cmd)
	o.flag(cmd, asTable)
	return cmd
}

func (o *whoamiOptions) run(ctx context.Context) error {
	if err := o.check(); err != nil {
		return err
	}
	c, err := o.connect()
	if err != nil {
		return err
	}
	var me portalclient.Me
	if err := c.Get(ctx, "/me", nil, &me); err != nil {
		return err
	}
	if o.format != asTable {
		return o.document(o.streams.Out, me)
	}
	roles := make([]string, 0, len(me.Roles))
	for _, x := range me.Roles {
		roles = append(roles, string(x))
	}
	rows := [][]string{
		{"NAME", me.Person.DisplayName + " (" + me.Person.Id + ")"},
		{"ROLES", strings.Join(roles, ", ")},
		{"GROUPS", strings.Join(slices.Sorted(slices.Values(me.Groups)), ", ")},
		{"WAITING FOR YOU", fmt.Sprint(me.PendingApprovals)},
		{"LOGIN UNTIL", localTime(me.SessionExpiresAt)},
	}
	if me.Leader != nil {
		rows = slices.Insert(rows, 2, []string{"LEADER", me.Leader.DisplayName})
	}
	if os.Getenv(envToken) != "" {
		rows = append(rows, []string{"TOKEN", "from $" + envToken})
	}
	return table(o.streams.Out, rows)
}

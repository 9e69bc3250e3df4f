package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/internal/audit/hubble"
	"github.com/acp-io/acp/internal/federation"
)

// registrations watches the KubeFedClusters of the host, whose annotations name the relays of the members.
type registrations struct {
	watch *federation.Watch[federation.RegisteredRelay]
	// changed holds at most one token: a registration, or the state of the watch, has changed.
	changed chan struct{}
}

func newRegistrations(host *rest.Config, namespace string, log *slog.Logger) (*registrations, error) {
	client, err := dynamic.NewForConfig(host)
	if err != nil {
		return nil, fmt.Errorf("watch the registrations of members: %w", err)
	}
	r := &registrations{changed: make(chan struct{}, 1)}
	r.watch = federation.NewRelayWatch(client, namespace, logr.FromSlogHandler(log.Handler()), func(string) {
		select {
		case r.changed <- struct{}{}:
		default:
		}
	})
	return r, nil
}

// state returns "ok", "not read yet", or why the registrations cannot be read.
func (r *registrations) state() string {
	synced, err := r.watch.State()
	switch {
	case err != nil:
		return err.Error()
	case !synced:
		return "not read yet"
	}
	return "ok"
}

// followRegistrations follows the members that the settings or the registrations name, until the context ends. It begins when the
// registrations were read or cannot be read, so that a start does not follow members with fewer sources than they have. While the
// registrations cannot be read, the members that they named last are followed.
func (c *collector) followRegistrations(ctx context.Context) {
	go c.registrations.watch.Run(ctx)
	logged := map[string]string{}
	for {
		synced, err := c.registrations.watch.State()
		if err != nil {
			c.log.Warn("the registrations of members cannot be read; retrying", "error", err)
		}
		if synced || err != nil {
			members, problems := c.o.registered(c.registrations.watch.List())
			if !maps.Equal(problems, logged) {
				for _, name := range slices.Sorted(maps.Keys(problems)) {
					c.log.Warn("the member's relay cannot be used", "member", name, "problem", problems[name])
				}
				logged = problems
			}
			c.followers.set(ctx, members, problems)
		}
		select {
		case <-c.registrations.changed:
		case <-ctx.Done():
			return
		}
	}
}

// registered returns the members of the settings and of the registrations, and why the relays of others cannot be used. A member for which
// the settings name a source of Hubble's keeps it. A member whose relay cannot be used is not among the members, even if the settings name
// its access log: with the log alone, it would count as watched, although what only its Hubble reports is missing.
func (o *options) registered(relays []federation.RegisteredRelay) (members []member, problems map[string]string) {
	members, problems = slices.Clone(o.members), map[string]string{}
	for _, r := range relays {
		at := slices.IndexFunc(members, func(m member) bool { return m.name == r.Member })
		switch {
		case at >= 0 && members[at].hasHubble():
		case r.Problem != nil:
			problems[r.Member] = r.Problem.Error()
			members = slices.DeleteFunc(members, func(m member) bool { return m.name == r.Member })
		case r.Relay != nil && at >= 0:
			members[at].address, members[at].relay = r.Relay.Address, r.Relay
		case r.Relay != nil:
			members = append(members, member{name: r.Member, address: r.Relay.Address, relay: r.Relay})
		}
	}
	return members, problems
}

// filesOf returns the files of the connection to a member: those of the settings, or those in the folder of the member if there is one,
// with what the registration declares.
func (o *options) filesOf(m member) hubble.TLSFiles {
	files := o.tls
	if o.tlsFolder != "" {
		folder := filepath.Join(o.tlsFolder, m.name)
		if info, err := os.Stat(folder); err == nil && info.IsDir() {
			files.CA, files.Cert, files.Key = filepath.Join(folder, "ca.crt"), filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
		}
	}
	if m.relay != nil {
		files.Authority = m.relay.Authority
		files.ServerName = cmp.Or(m.relay.ServerName, files.ServerName)
	}
	return files
}

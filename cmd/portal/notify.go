package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"time"
	_ "time/tzdata" // people's time zones, also where the image has none

	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/ledger/anchor"
	"github.com/acp-io/acp/internal/notify"
	"github.com/acp-io/acp/internal/notify/setup"
	"github.com/acp-io/acp/internal/wallclock"
)

const (
	notifyEvery = time.Second
	notifyLease = 2 * time.Minute // more than a sending may take
	notifyKeep  = 90 * 24 * time.Hour
)

// keeper anchors the ledger's head as the options say.
func keeper(o options, config *rest.Config, lines ledger.Reader, log *slog.Logger) (*anchor.Keeper, error) {
	cluster, err := typedcorev1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make the host cluster's client: %w", err)
	}
	anchors, err := anchor.Parse(o.ledgerAnchors, cluster, o.namespace)
	if err != nil {
		return nil, fmt.Errorf("--ledger-anchor %w", err)
	}
	return &anchor.Keeper{Ledger: lines, Anchors: anchors, Every: o.ledgerAnchorEvery, Now: wallclock.Now, Log: log}, nil
}

// notifier returns the functions that process notifications: one router, and a dispatcher for each channel.
func notifier(
	store notify.Store,
	tickets approval.TicketStore,
	delegations approval.DelegationStore,
	company func() *catalog.Catalog,
	onCall approval.OnCall,
	channels *setup.Channels,
	portal *url.URL,
	replica string,
	arrived func(person string),
	log *slog.Logger,
) []func(context.Context) {
	delegation := func(ctx context.Context, id int64) (approval.Delegation, error) {
		all, err := delegations.Delegations(ctx, approval.DelegationFilter{Before: id + 1, Limit: 1})
		if err != nil {
			return approval.Delegation{}, err
		}
		if len(all) == 0 || all[0].ID != id {
			return approval.Delegation{}, approval.NotFound()
		}
		return all[0], nil
	}
	people := func(ctx context.Context) (notify.People, error) {
		now := wallclock.Now()
		active, err := delegations.Delegations(ctx, approval.DelegationFilter{ActiveAt: now})
		return notify.Directory{Catalog: company(), Delegations: active, Now: now, WhoIsOnCall: onCall}, err
	}
	router := notify.NewRouter(notify.RouterConfig{Store: store, Ticket: tickets.Get, Delegation: delegation, People: people, Channels: channels.People,
		SharedChannels: channels.SharedChannels, OnInbox: arrived, Now: wallclock.Now, Log: log, Poll: notifyEvery, Keep: notifyKeep,
		Gone: func(err error) bool { return approval.CodeOf(err) == approval.CodeNotFound }})
	run := []func(context.Context){router.Run}
	for name, sender := range channels.Senders {
		dispatcher := notify.NewDispatcher(
			notify.DispatcherConfig{Name: replica, Channel: name, Sender: sender, Store: store, Renderer: &notify.Renderer{Portal: portal},
				Recipient: func(person string) (notify.Recipient, bool) {
					return notify.Directory{Catalog: company()}.Recipient(person)
				},
				Now: wallclock.Now, Log: log, Poll: notifyEvery, Lease: notifyLease},
		)
		run = append(run, dispatcher.Run)
	}
	return run
}

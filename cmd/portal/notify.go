package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"
	_ "time/tzdata" // people's time zones, also where the image has none

	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/ledger/anchor"
	"github.com/acp-io/acp/internal/notify"
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

// notifiers returns the functions that process notifications: one router, and a dispatcher for each channel.
func (v *services) notifiers() []func(context.Context) {
	delegation := func(ctx context.Context, id int64) (approval.Delegation, error) {
		all, err := v.ticketStore.Delegations(ctx, approval.DelegationFilter{Before: id + 1, Limit: 1})
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
		active, err := v.ticketStore.Delegations(ctx, approval.DelegationFilter{ActiveAt: now})
		return notify.Directory{Catalog: v.directory.Catalog(), Delegations: active, Now: now, WhoIsOnCall: v.onCall}, err
	}
	router := notify.NewRouter(notify.RouterConfig{Store: v.notifications, Ticket: v.ticketStore.Get, Delegation: delegation, People: people,
		Channels: v.channels.People, SharedChannels: v.channels.SharedChannels, OnInbox: v.hub.Inbox, Now: wallclock.Now, Log: v.log,
		Poll: notifyEvery, Keep: notifyKeep,
		Gone: func(err error) bool { return approval.CodeOf(err) == approval.CodeNotFound }})
	run := []func(context.Context){router.Run}
	for name, sender := range v.channels.Senders {
		dispatcher := notify.NewDispatcher(
			notify.DispatcherConfig{Name: v.replica, Channel: name, Sender: sender, Store: v.notifications, Renderer: &notify.Renderer{Portal: v.publicURL},
				Recipient: func(person string) (notify.Recipient, bool) {
					return notify.Directory{Catalog: v.directory.Catalog()}.Recipient(person)
				},
				Now: wallclock.Now, Log: v.log, Poll: notifyEvery, Lease: notifyLease},
		)
		run = append(run, dispatcher.Run)
	}
	return run
}

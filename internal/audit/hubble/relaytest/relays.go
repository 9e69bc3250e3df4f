// Package relaytest simulates Hubble's relays of many members, for measurements of the collector.
package relaytest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	observerpb "github.com/cilium/cilium/api/v1/observer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// Config describes relays, and what happens in their members.
type Config struct {
	// Certificate is that of every relay. Clients need a certificate, too; any is accepted.
	Certificate tls.Certificate
	// Flows generate the connections of the members; each has a relay of its own.
	Flows []*Flows
	// Rate is the number of flows per second of all members together.
	Rate int
	// Length is how long flows happen, or 0 if they happen until Stop.
	Length time.Duration
	// Delivered returns when a flow is delivered that happened at an offset from Begin, also as an offset; nil means at once.
	Delivered func(offset time.Duration) time.Duration
}

// Relays are running relays. Each flow is sent to one follower of each relay.
type Relays struct {
	Config
	addresses []string
	servers   []*grpc.Server
	// connected receives a value for each stream of flows.
	connected chan struct{}
	// began is closed when flows begin to happen, at start, and stopped when no more flows happen.
	began, stopped chan struct{}
	start          time.Time
	sent           atomic.Int64
}

// Start listens on a port of the loopback interface for each member.
func Start(ctx context.Context, c Config) (*Relays, error) {
	if len(c.Flows) == 0 || c.Rate < 1 {
		return nil, errors.New("relays need members, and a rate of flows")
	}
	r := &Relays{Config: c, connected: make(chan struct{}, len(c.Flows)), began: make(chan struct{}), stopped: make(chan struct{})}
	for _, f := range c.Flows {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			r.Close()
			return nil, fmt.Errorf("listen for the relay of %s: %w", f.Member, err)
		}
		server := grpc.NewServer(grpc.Creds(credentials.NewTLS(
			&tls.Config{Certificates: []tls.Certificate{c.Certificate}, ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS13},
		)))
		observerpb.RegisterObserverServer(server, &relay{relays: r, flows: f})
		go func() { _ = server.Serve(l) }() // it returns when the server is stopped
		r.servers, r.addresses = append(r.servers, server), append(r.addresses, l.Addr().String())
	}
	return r, nil
}

// Address returns the host and port of the relay of the member with this index.
func (r *Relays) Address(member int) string { return r.addresses[member] }

// Begin waits until every relay has a follower. Flows happen from then on.
func (r *Relays) Begin(ctx context.Context) error {
	for i := range r.addresses {
		select {
		case <-r.connected:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d members are followed: %w", i, len(r.addresses), ctx.Err())
		}
	}
	r.start = time.Now()
	close(r.began)
	return nil
}

// Began returns when flows began to happen.
func (r *Relays) Began() time.Time { return r.start }

// Interval returns the time between two flows of a relay.
func (r *Relays) Interval() time.Duration {
	return time.Second * time.Duration(len(r.addresses)) / time.Duration(r.Rate)
}

// Sent returns the number of flows that were sent.
func (r *Relays) Sent() int64 { return r.sent.Load() }

// Stop lets no more flows happen. The relays keep their followers.
func (r *Relays) Stop() { close(r.stopped) }

// Close ends the relays.
func (r *Relays) Close() {
	for _, s := range r.servers {
		s.Stop()
	}
}

// relay is that of one member.
type relay struct {
	observerpb.UnimplementedObserverServer
	relays *Relays
	flows  *Flows
}

// ServerStatus implements observerpb.ObserverServer.
func (*relay) ServerStatus(context.Context, *observerpb.ServerStatusRequest) (*observerpb.ServerStatusResponse, error) {
	return &observerpb.ServerStatusResponse{}, nil
}

// GetFlows implements observerpb.ObserverServer. It sends the flows from the first one on, whatever is asked for.
func (r *relay) GetFlows(_ *observerpb.GetFlowsRequest, stream grpc.ServerStreamingServer[observerpb.GetFlowsResponse]) error {
	all, ended := r.relays, stream.Context().Done()
	select {
	case all.connected <- struct{}{}:
	default: // flows have begun, and a follower has connected again
	}
	select {
	case <-all.began:
	case <-ended:
		return nil
	}
	interval := all.Interval()
	for i := 0; ; i++ {
		offset := time.Duration(i) * interval
		if all.Length > 0 && offset >= all.Length {
			break
		}
		at := all.start.Add(offset)
		delivery := at
		if all.Delivered != nil {
			delivery = all.start.Add(all.Delivered(offset))
		}
		if !r.waitUntil(delivery, ended) {
			break
		}
		if err := stream.Send(r.flows.next(i, at)); err != nil {
			return fmt.Errorf("send flow %d of %s: %w", i, r.flows.Member, err)
		}
		all.sent.Add(1)
	}
	<-ended
	return nil
}

// waitUntil waits until an instant. It reports false if the stream ends or no more flows happen before.
func (r *relay) waitUntil(at time.Time, ended <-chan struct{}) bool {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.relays.stopped:
	case <-ended:
	}
	return false
}

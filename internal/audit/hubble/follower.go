package hubble

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	observerpb "github.com/cilium/cilium/api/v1/observer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/acp-io/acp/internal/audit"
)

// Sink takes what a follower has understood; both methods must not block on I/O.
type Sink interface {
	Take(audit.Taken)
	Lose(audit.Loss)
}

// Resumer tells where to go on.
type Resumer interface {
	Resume(ctx context.Context, source string) (audit.Resume, error)
}

// Evaluators gives the policies as they are now. It waits until they were read once, so that nothing is called
// unmanaged only because its policy is not known yet.
type Evaluators interface {
	Wait(ctx context.Context) error
	Evaluator() audit.Evaluator
}

// Config of the Follower of one member.
type Config struct {
	// Member is the cluster's name in the control plane, Address the host and port of its relay or agent.
	Member, Address string
	// Credentials are asked for at every connection; Version, when set, is polled, and a change makes a new connection.
	Credentials func() (credentials.TransportCredentials, error)
	Version     func() string

	Resume     Resumer
	Evaluators Evaluators
	Sink       Sink
	Metrics    *Metrics
	Log        *slog.Logger

	// MinBackoff and MaxBackoff bound the wait between two attempts, which doubles and is jittered; 0.5 s and 30 s.
	MinBackoff, MaxBackoff time.Duration
	// VersionEvery is the time between two polls of Version; 10 s.
	VersionEvery time.Duration
	// Now is the clock; time.Now.
	Now func() time.Time
}

func (c *Config) complete() error {
	switch {
	case c.Member == "" || c.Address == "":
		return errors.New("a member needs a name and an address")
	case c.Credentials == nil || c.Resume == nil || c.Evaluators == nil || c.Sink == nil || c.Metrics == nil || c.Log == nil:
		return errors.New("credentials, resume, evaluators, sink, metrics and log must be set")
	}
	if c.MinBackoff <= 0 {
		c.MinBackoff = 500 * time.Millisecond
	}
	if c.MaxBackoff < c.MinBackoff {
		c.MaxBackoff = max(30*time.Second, c.MinBackoff)
	}
	if c.VersionEvery <= 0 {
		c.VersionEvery = 10 * time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return nil
}

// State of a follower, for people.
type State struct {
	Member    string
	Connected bool
	// Position is the time of the newest flow taken in; zero: none yet.
	Position time.Time
	// Problem is why it is not connected; empty when it is.
	Problem string
}

// Follower takes in one member's flows, for as long as Run runs.
type Follower struct {
	cfg     Config
	started time.Time

	mu    sync.Mutex
	state State
}

// New returns a Follower; Run makes it follow. A member that was never read is read from now on.
func New(cfg Config) (*Follower, error) {
	if err := cfg.complete(); err != nil {
		return nil, fmt.Errorf("configure the follower of member %q: %w", cfg.Member, err)
	}
	cfg.Log = cfg.Log.With("member", cfg.Member, "address", cfg.Address)
	cfg.Metrics.connected.WithLabelValues(cfg.Member).Set(0)
	return &Follower{cfg: cfg, started: cfg.Now(), state: State{Member: cfg.Member, Problem: "not connected yet"}}, nil
}

// State returns how the follower is.
func (f *Follower) State() State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

// Run follows until the context ends. Whatever fails is tried again; that the member is away is a state, not an error.
func (f *Follower) Run(ctx context.Context) {
	t, err := f.prepare(ctx)
	if err != nil {
		return // the context ended
	}
	wait := backoff{min: f.cfg.MinBackoff, max: f.cfg.MaxBackoff}
	for ctx.Err() == nil {
		received, err := f.session(ctx, t)
		if received {
			wait.reset()
		}
		if errors.Is(err, errRenewed) {
			f.cfg.Log.Info("the certificates changed; connecting again")
			continue
		}
		if ctx.Err() != nil {
			break
		}
		f.disconnected(err)
		if sleep(ctx, wait.next()) != nil {
			break
		}
	}
	f.cfg.Metrics.connected.WithLabelValues(f.cfg.Member).Set(0)
}

// prepare waits for the policies and the position. It fails only when the context ends.
func (f *Follower) prepare(ctx context.Context) (*taker, error) {
	if err := f.cfg.Evaluators.Wait(ctx); err != nil {
		return nil, err
	}
	wait := backoff{min: f.cfg.MinBackoff, max: f.cfg.MaxBackoff}
	for {
		r, err := f.cfg.Resume.Resume(ctx, f.cfg.Member)
		if err == nil {
			return newTaker(&f.cfg, r), nil
		}
		f.disconnected(err)
		if err := sleep(ctx, wait.next()); err != nil {
			return nil, err
		}
	}
}

// connected and disconnected log changes of the state, not every attempt.
func (f *Follower) connected(position time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.state.Connected {
		f.cfg.Log.Info("receiving flows")
		f.cfg.Metrics.connected.WithLabelValues(f.cfg.Member).Set(1)
	}
	f.state.Connected, f.state.Problem, f.state.Position = true, "", position
}

func (f *Follower) disconnected(err error) {
	problem := "the stream ended"
	if err != nil {
		problem = err.Error()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state.Connected || f.state.Problem != problem {
		f.cfg.Log.Warn("no flows are received; it is tried again, the other members go on", "problem", problem)
	}
	f.cfg.Metrics.connected.WithLabelValues(f.cfg.Member).Set(0)
	f.state.Connected, f.state.Problem = false, problem
}

// tcpKeepAlive finds a peer that vanished within about a minute. gRPC's own pings would be refused by a relay with
// default settings when they come more often than every five minutes.
var tcpKeepAlive = net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 10 * time.Second, Count: 3}

func (f *Follower) dial() (*grpc.ClientConn, error) {
	creds, err := f.cfg.Credentials()
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{KeepAliveConfig: tcpKeepAlive, Timeout: 10 * time.Second}
	return grpc.NewClient("passthrough:///"+f.cfg.Address, grpc.WithTransportCredentials(creds),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", address)
		}))
}

var errRenewed = errors.New("certificates were renewed")

// session connects once and takes in flows until the stream breaks. It reports whether anything was received.
func (f *Follower) session(ctx context.Context, t *taker) (received bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	conn, err := f.dial()
	if err != nil {
		return false, err
	}
	defer conn.Close()
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel(nil) // before the wait
	if f.cfg.Version != nil {
		before := f.cfg.Version()
		watch.Go(func() { f.watchVersion(ctx, before, cancel) })
	}
	client := observerpb.NewObserverClient(conn)
	if err := ping(ctx, client); err != nil {
		return false, sessionError(ctx, err)
	}
	stream, err := client.GetFlows(ctx, request(t.since(f.started)))
	if err != nil {
		return false, sessionError(ctx, err)
	}
	t.resumed()
	f.connected(t.seen.position)
	for {
		r, err := stream.Recv()
		if err != nil {
			return received, sessionError(ctx, err)
		}
		received = true
		t.take(r)
		f.connected(t.seen.position)
	}
}

const pingTimeout = 10 * time.Second

// ping asks for the server's status. The stream itself says nothing until there is a flow, not even that the server
// refused the client's certificate.
func ping(ctx context.Context, client observerpb.ObserverClient) error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	_, err := client.ServerStatus(ctx, &observerpb.ServerStatusRequest{})
	if status.Code(err) == codes.Unimplemented {
		return nil // it answered
	}
	return err
}

func sessionError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errRenewed) {
		return cause
	}
	return fmt.Errorf("follow flows: %w", err)
}

func (f *Follower) watchVersion(ctx context.Context, before string, cancel context.CancelCauseFunc) {
	for sleep(ctx, f.cfg.VersionEvery) == nil {
		if now := f.cfg.Version(); now != "" && now != before {
			cancel(errRenewed)
			return
		}
	}
}

// backoff doubles up to a limit, and takes a random part of the upper half, so that members do not all come at once.
type backoff struct{ min, max, cur time.Duration }

func (b *backoff) reset() { b.cur = 0 }

func (b *backoff) next() time.Duration {
	b.cur = min(max(b.cur*2, b.min), b.max)
	return b.cur/2 + rand.N(b.cur/2+1)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

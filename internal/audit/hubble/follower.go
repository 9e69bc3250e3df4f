package hubble

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/url"
	"sync"
	"time"

	observerpb "github.com/cilium/cilium/api/v1/observer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/util/wait"
	utilclock "k8s.io/utils/clock"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/backoff"
)

// Sink receives what a Follower reads. Its methods must not block on I/O, and must not keep their arguments, which are reused
// after they return.
type Sink interface {
	Add(*audit.Event)
	AddLoss(audit.Loss)
	Progress(audit.Progress)
}

// Resumer returns the position at which a source is resumed.
type Resumer interface {
	Resume(ctx context.Context, source string) (audit.Resume, error)
}

// PolicyHistory returns the policy states by which flows of different times are decided.
type PolicyHistory interface {
	// Wait blocks until the policies were read once, so that no connection is decided as unmanaged only because its policy was
	// not read yet.
	Wait(ctx context.Context) error
	// Epochs returns the states of the policies, newest first, at least one. It returns the same slice until there is a new
	// state.
	Epochs() []audit.Epoch
}

// LineSource is a source of events in the format of the lines that Hubble's exporter writes.
type LineSource interface {
	// Follow calls take for each line, without its line end, until the context ends or reading fails. The line is valid during
	// the call only. If an unknown number of lines cannot be read, Follow calls damaged with the reason and the time until
	// which the lines were written, and continues. It calls reading each time that it has read the source to its present end, with
	// the time at which the newest line was written, or zero if that is unknown. It does not call reading while the source does
	// not exist.
	Follow(ctx context.Context, take func(line []byte), damaged func(until time.Time, why error), reading func(written time.Time)) error
	// Replayable reports whether each Follow begins with the oldest existing line. If it is false, a Follow that has returned is
	// not repeated.
	Replayable() bool
}

// Config configures the Follower of one member.
type Config struct {
	// Member is the cluster's name in the control plane; Address is the host and port of its relay or agent.
	Member, Address string
	// Proxy, when set, is the HTTP or SOCKS5 proxy through which the address is reached.
	Proxy *url.URL
	// Lines, when set, is read instead of the address.
	Lines LineSource
	// AccessLog reports whether the lines come from the access log of the member's Istio instead of Hubble's exporter.
	AccessLog bool
	// BesideHubble means that another Follower follows the member's Hubble. It then reports the time in which the member was watched,
	// and this one, of an access log, does not. BesideIstio is the counterpart for the Follower of Hubble, and reports whether the
	// access log is being read: the member counts as watched only while both are.
	BesideHubble bool
	BesideIstio  func() bool
	// Members is the number of followers that share the memory limits of the process. Default: 1.
	Members int
	// MaxAge is how old an event may be: older ones are recorded as lost. It should be the time for which the store keeps connections.
	// Default: 365 days.
	MaxAge time.Duration
	// RawFlows selects the flows that are stored individually (default RawFlowsNone). Listener, when set, receives all flows that
	// are counted.
	RawFlows RawFlows
	Listener FlowListener
	// Credentials is called for each connection. Version, when set, is polled, and a new value causes a reconnection.
	Credentials func() (credentials.TransportCredentials, error)
	Version     func() string

	Resume   Resumer
	Policies PolicyHistory
	// Lags returns the resources for which the member does not have, or lately did not have, the policies of the host. If it is
	// nil, the member is assumed to have them.
	Lags    func(member string) audit.Lags
	Sink    Sink
	Metrics *Metrics
	Log     *slog.Logger

	// MinBackoff and MaxBackoff bound the delay between two connection attempts, which doubles and is jittered. Defaults: 0.5 s
	// and 30 s.
	MinBackoff, MaxBackoff time.Duration
	// VersionEvery is the interval between two calls of Version. Default: 10 s.
	VersionEvery time.Duration
	// ProgressEvery is the interval between two calls of Sink.Progress. Default: 1 s.
	ProgressEvery time.Duration
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

func (c *Config) complete() error {
	switch {
	case c.Member == "" || c.Address == "" && c.Lines == nil:
		return errors.New("a member needs a name and an address or lines")
	case c.AccessLog && c.Lines == nil || c.BesideHubble && !c.AccessLog || c.BesideIstio != nil && c.AccessLog:
		return errors.New("an access log consists of lines, and only an access log can be read beside Hubble")
	case c.Credentials == nil && c.Lines == nil || c.Resume == nil || c.Policies == nil || c.Sink == nil || c.Metrics == nil || c.Log == nil:
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
	if c.ProgressEvery <= 0 {
		c.ProgressEvery = time.Second
	}
	if c.MaxAge <= 0 {
		c.MaxAge = 365 * 24 * time.Hour
	}
	if c.RawFlows == "" {
		c.RawFlows = RawFlowsNone
	}
	c.Members = max(c.Members, 1)
	if c.Now == nil {
		c.Now = time.Now
	}
	return nil
}

// source returns the name of the source in the store.
func (c *Config) source() string {
	if c.AccessLog {
		return audit.IstioSource(c.Member)
	}
	return c.Member
}

// enforcer returns the dataplane whose verdicts the source reports.
func (c *Config) enforcer() v1alpha1.EnforcerName {
	if c.AccessLog {
		return v1alpha1.EnforcerIstio
	}
	return v1alpha1.EnforcerCilium
}

// State describes a follower, for status pages.
type State struct {
	Member    string
	Connected bool
	// Position is the time of the newest ingested flow; zero if there is none yet.
	Position time.Time
	// Problem is the reason why the follower is not connected; empty if it is connected.
	Problem string
}

// Follower ingests one member's flows while Run runs.
type Follower struct {
	cfg     Config
	started time.Time
	// watchedUntil is the end of the last reported span in which the source was followed. Only the running session uses it.
	watchedUntil time.Time

	mu       sync.Mutex
	state    State
	ingester *ingester
	// written is the time at which the newest line was written; zero if it is unknown.
	written time.Time
}

// maxSilence is the duration without a line after which an access log does not count as read any more: it is unknown whether the mesh is
// quiet, or the lines do not arrive.
const maxSilence = 10 * time.Minute

// New returns a Follower. Run makes it follow the member; a member without a stored position is followed from the present on.
func New(cfg Config) (*Follower, error) {
	if err := cfg.complete(); err != nil {
		return nil, fmt.Errorf("configure the follower of member %q: %w", cfg.Member, err)
	}
	cfg.Log = cfg.Log.With("member", cfg.Member, "source", cfg.source(), "address", cfg.Address)
	cfg.Metrics.connected.WithLabelValues(cfg.source()).Set(0)
	return &Follower{cfg: cfg, started: cfg.Now(), state: State{Member: cfg.source(), Problem: "not connected yet"}}, nil
}

// State returns the current state of the follower.
func (f *Follower) State() State {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.state
	if s.Connected && f.silent() {
		s.Connected, s.Problem = false, fmt.Sprintf("nothing was written to the access log for %s", maxSilence)
	}
	if f.ingester != nil {
		s.Position, _ = f.ingester.progress()
	}
	return s
}

// silent reports whether the follower reads an access log to which nothing was written lately. The caller holds the lock.
func (f *Follower) silent() bool { return f.cfg.AccessLog && f.cfg.Now().Sub(f.written) > maxSilence }

// Run follows the member until the context ends, or until the end of a source of lines that is not replayable. All failures are
// retried; an unreachable member is a State, not an error.
func (f *Follower) Run(ctx context.Context) {
	t, err := f.resume(ctx)
	if err != nil {
		return // the context ended
	}
	f.watchedUntil, _ = t.progress()
	delays := f.newBackoff()
	for ctx.Err() == nil {
		received, err := f.session(ctx, t)
		if received {
			delays = f.newBackoff()
		}
		if errors.Is(err, errRenewed) {
			f.cfg.Log.Info("the certificates changed; reconnecting")
			continue
		}
		if ctx.Err() != nil {
			break
		}
		f.disconnected(err)
		if f.cfg.Lines != nil && !f.cfg.Lines.Replayable() {
			break
		}
		if !backoff.Pause(ctx, utilclock.RealClock{}, delays.Step()) {
			break
		}
	}
	f.cfg.Metrics.connected.WithLabelValues(f.cfg.source()).Set(0)
}

// resume waits for the policies and reads the stored position. It returns an error only if the context ends.
func (f *Follower) resume(ctx context.Context) (*ingester, error) {
	if err := f.cfg.Policies.Wait(ctx); err != nil {
		return nil, err
	}
	delays := f.newBackoff()
	for {
		r, err := f.cfg.Resume.Resume(ctx, f.cfg.source())
		if err == nil {
			t := newIngester(&f.cfg, r)
			f.mu.Lock()
			f.ingester = t
			f.mu.Unlock()
			return t, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		f.disconnected(err)
		if !backoff.Pause(ctx, utilclock.RealClock{}, delays.Step()) {
			return nil, ctx.Err()
		}
	}
}

// connected and disconnected record the state, and log when it changes.
func (f *Follower) connected() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.state.Connected {
		f.cfg.Log.Info("receiving flows")
		f.cfg.Metrics.connected.WithLabelValues(f.cfg.source()).Set(1)
	}
	f.state.Connected, f.state.Problem = true, ""
}

func (f *Follower) disconnected(err error) {
	problem := "the stream ended"
	if err != nil {
		problem = err.Error()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state.Connected || f.state.Problem != problem {
		f.cfg.Log.Warn("no flows are received from the member; the follower reconnects", "problem", problem)
	}
	f.cfg.Metrics.connected.WithLabelValues(f.cfg.source()).Set(0)
	f.state.Connected, f.state.Problem = false, problem
}

// tcpKeepAlive detects a vanished peer within about a minute. A relay with default settings rejects gRPC's own pings when they
// are more frequent than every five minutes.
var tcpKeepAlive = net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 10 * time.Second, Count: 3}

func (f *Follower) dial() (*grpc.ClientConn, error) {
	creds, err := f.cfg.Credentials()
	if err != nil {
		return nil, err
	}
	return grpc.NewClient("passthrough:///"+f.cfg.Address, append(dialOptions(f.cfg.Proxy), grpc.WithTransportCredentials(creds))...)
}

// dialOptions returns the options of a connection, through a proxy if it is not nil.
func dialOptions(proxy *url.URL) []grpc.DialOption {
	dialer := &net.Dialer{KeepAliveConfig: tcpKeepAlive, Timeout: dialTimeout}
	return []grpc.DialOption{
		grpc.WithStaticStreamWindowSize(windowSize), grpc.WithStaticConnWindowSize(windowSize), grpc.WithReadBufferSize(readSize),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return dial(ctx, dialer, proxy, address)
		}),
	}
}

var errRenewed = errors.New("certificates were renewed")

// session connects once and ingests flows until the connection breaks. It reports whether anything was received.
func (f *Follower) session(ctx context.Context, t *ingester) (received bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer cancel(nil) // deferred calls run in reverse order, so this one runs before the wait
	if f.cfg.Lines != nil {
		return f.readLines(ctx, t, &beside)
	}
	conn, err := f.dial()
	if err != nil {
		return false, err
	}
	defer conn.Close()
	if f.cfg.Version != nil {
		before := f.cfg.Version()
		beside.Go(func() { f.watchVersion(ctx, before, cancel) })
	}
	if err := ping(ctx, observerpb.NewObserverClient(conn)); err != nil {
		return false, sessionError(ctx, err)
	}
	since := t.seen.overlapStart()
	if since.IsZero() {
		since = f.started
	}
	stream, err := getFlows(ctx, conn, flowsSince(since))
	if err != nil {
		return false, sessionError(ctx, err)
	}
	t.expectOverlap()
	f.onFollowing(ctx, t, &beside)
	var m rawMessage
	defer m.free()
	for {
		if err := stream.RecvMsg(&m); err != nil {
			if status.Code(err) == codes.ResourceExhausted { // observers have no other use for the code
				t.skipOversized(since)
			}
			return received, sessionError(ctx, err)
		}
		received = true
		t.ingestResponse(m.bytes())
	}
}

// readLines ingests the lines of a source of lines.
func (f *Follower) readLines(ctx context.Context, t *ingester, beside *sync.WaitGroup) (received bool, err error) {
	t.since = time.Time{}
	if f.cfg.Lines.Replayable() {
		t.since = t.seen.overlapStart()
	}
	t.expectOverlap()
	parse, take := scanLine, t.ingestLine
	if f.cfg.AccessLog {
		parse, take = scanAccessLine, t.ingestAccessLine
	}
	a := newLineScanner(parse, take)
	defer a.close()
	began, following := f.cfg.Now(), false
	err = f.cfg.Lines.Follow(ctx, func(line []byte) {
		received = true
		a.scan(line)
	}, func(until time.Time, why error) {
		a.drain() // the damage is recorded after the lines before it
		t.damaged(until, why)
	}, func(written time.Time) {
		f.mu.Lock()
		f.written = written
		f.mu.Unlock()
		if following {
			return
		}
		following = true
		if now := f.cfg.Now(); !received && now.Sub(began) > maxSilence {
			f.watchedUntil = now // the source did not exist
		}
		f.onFollowing(ctx, t, beside)
	})
	return received, sessionError(ctx, err)
}

// onFollowing is called when the source has accepted the request, or can be read. It starts the reports of progress.
func (f *Follower) onFollowing(ctx context.Context, t *ingester, beside *sync.WaitGroup) {
	f.connected()
	if f.watchedUntil.IsZero() {
		f.watchedUntil = f.cfg.Now()
	}
	beside.Go(func() {
		for backoff.Pause(ctx, utilclock.RealClock{}, f.cfg.ProgressEvery) {
			f.progress(t)
		}
		f.progress(t)
	})
}

// progress reports the time span since the last report as watched. Flows lost in that span are reported as losses. The time in which
// the member was watched is reported under the name of the member, by its Follower of Hubble if there is one; a silent access log is not
// watched.
func (f *Follower) progress(t *ingester) {
	p := audit.Progress{WatchedSpan: audit.WatchedSpan{Source: f.cfg.Member, From: f.watchedUntil, To: f.cfg.Now()}, PositionOf: f.cfg.source()}
	p.Position, p.ForgetBefore = t.progress()
	if !p.Position.IsZero() {
		f.cfg.Metrics.position.WithLabelValues(f.cfg.source()).Set(float64(p.Position.UnixMilli()) / 1000)
	}
	f.mu.Lock()
	silent := f.silent()
	if f.state.Connected {
		connected := 1.0
		if silent {
			connected = 0
		}
		f.cfg.Metrics.connected.WithLabelValues(f.cfg.source()).Set(connected)
	}
	f.mu.Unlock()
	if silent || f.cfg.BesideIstio != nil && !f.cfg.BesideIstio() {
		f.watchedUntil = p.To
		return
	}
	if !f.cfg.BesideHubble && p.To.After(p.From) {
		f.cfg.Sink.Progress(p)
		f.watchedUntil = p.To
	}
}

const pingTimeout = 10 * time.Second

// ping requests the server's status. The stream itself returns nothing before the first flow, not even that the server rejected
// the client's certificate.
func ping(ctx context.Context, client observerpb.ObserverClient) error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	_, err := client.ServerStatus(ctx, &observerpb.ServerStatusRequest{})
	if status.Code(err) == codes.Unimplemented {
		return nil // the server has answered
	}
	return err
}

func sessionError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errRenewed) {
		return cause
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("follow flows: %w", err)
}

func (f *Follower) watchVersion(ctx context.Context, before string, cancel context.CancelCauseFunc) {
	for backoff.Pause(ctx, utilclock.RealClock{}, f.cfg.VersionEvery) {
		if now := f.cfg.Version(); now != "" && now != before {
			cancel(errRenewed)
			return
		}
	}
}

// newBackoff returns delays that double up to MaxBackoff. The upper half of each is random, so that members do not reconnect at
// the same time.
func (f *Follower) newBackoff() wait.Backoff {
	return wait.Backoff{Duration: f.cfg.MinBackoff / 2, Cap: f.cfg.MaxBackoff / 2, Factor: 2, Jitter: 1, Steps: math.MaxInt}
}

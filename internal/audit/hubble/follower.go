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

// Sink takes what a follower has understood; its methods must not block on I/O. What they are given may be used again
// when they have returned.
type Sink interface {
	Take(*audit.Taken)
	Lose(audit.Loss)
	Progress(audit.Progress)
}

// Resumer tells where to go on.
type Resumer interface {
	Resume(ctx context.Context, source string) (audit.Resume, error)
}

// Evaluators gives the policies as they are and were.
type Evaluators interface {
	// Wait returns when they were read once, so that nothing is called unmanaged only because its policy is not known yet.
	Wait(ctx context.Context) error
	// Epochs are the states of the policies, newest first and at least one: the same slice until there is a new one.
	Epochs() []audit.Epoch
}

// Lines are events as the lines that Hubble's exporter writes.
type Lines interface {
	// Follow hands over each line without its end until the context ends or reading fails. The line is valid during the call.
	// Where lines cannot be read, and nobody knows how many, it says why and until when they were written, and goes on.
	Follow(ctx context.Context, take func(line []byte), damaged func(until time.Time, why error)) error
	// Again tells that every Follow begins with the oldest line that there is. Without it a Follow that returns is the last.
	Again() bool
}

// Config of the Follower of one member.
type Config struct {
	// Member is the cluster's name in the control plane, Address the host and port of its relay or agent.
	Member, Address string
	// Lines, when set, are read in place of an address.
	Lines Lines
	// Members is how many followers share the memory of the process; 1.
	Members int
	// Keep says which flows the sink gets one by one; KeepNone. Tap, when set, gets all that are counted.
	Keep Keep
	Tap  Tap
	// Credentials are asked for at every connection; Version, when set, is polled, and a change makes a new connection.
	Credentials func() (credentials.TransportCredentials, error)
	Version     func() string

	Resume     Resumer
	Evaluators Evaluators
	// Lags are the resources of which the member does not have what the policies ask for, or did not at some time of late;
	// nil: nobody knows, and it counts as having it.
	Lags    func(member string) audit.Lags
	Sink    Sink
	Metrics *Metrics
	Log     *slog.Logger

	// MinBackoff and MaxBackoff bound the wait between two attempts, which doubles and is jittered; 0.5 s and 30 s.
	MinBackoff, MaxBackoff time.Duration
	// VersionEvery is the time between two polls of Version; 10 s.
	VersionEvery time.Duration
	// ProgressEvery is the time between two reports of the progress; 1 s.
	ProgressEvery time.Duration
	// Now is the clock; time.Now.
	Now func() time.Time
}

func (c *Config) complete() error {
	switch {
	case c.Member == "" || c.Address == "" && c.Lines == nil:
		return errors.New("a member needs a name and an address or lines")
	case c.Credentials == nil && c.Lines == nil || c.Resume == nil || c.Evaluators == nil || c.Sink == nil || c.Metrics == nil || c.Log == nil:
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
	if c.Keep == "" {
		c.Keep = KeepNone
	}
	c.Members = max(c.Members, 1)
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
	// watched is until when the source was followed; only the running session uses it.
	watched time.Time

	mu     sync.Mutex
	state  State
	intake *intake
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
	s := f.state
	if f.intake != nil {
		s.Position, _ = f.intake.progress()
	}
	return s
}

// Run follows until the context ends, or a source of lines that cannot be read again. Whatever fails is tried again; that the member is away is a state, not an error.
func (f *Follower) Run(ctx context.Context) {
	t, err := f.prepare(ctx)
	if err != nil {
		return // the context ended
	}
	f.watched, _ = t.progress()
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
		if f.cfg.Lines != nil && !f.cfg.Lines.Again() {
			break
		}
		if sleep(ctx, wait.next()) != nil {
			break
		}
	}
	f.cfg.Metrics.connected.WithLabelValues(f.cfg.Member).Set(0)
}

// prepare waits for the policies and the position. It fails only when the context ends.
func (f *Follower) prepare(ctx context.Context) (*intake, error) {
	if err := f.cfg.Evaluators.Wait(ctx); err != nil {
		return nil, err
	}
	wait := backoff{min: f.cfg.MinBackoff, max: f.cfg.MaxBackoff}
	for {
		r, err := f.cfg.Resume.Resume(ctx, f.cfg.Member)
		if err == nil {
			t := newIntake(&f.cfg, r)
			f.mu.Lock()
			f.intake = t
			f.mu.Unlock()
			return t, nil
		}
		f.disconnected(err)
		if err := sleep(ctx, wait.next()); err != nil {
			return nil, err
		}
	}
}

// connected and disconnected log changes of the state, not every attempt.
func (f *Follower) connected() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.state.Connected {
		f.cfg.Log.Info("receiving flows")
		f.cfg.Metrics.connected.WithLabelValues(f.cfg.Member).Set(1)
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
	return grpc.NewClient("passthrough:///"+f.cfg.Address, append(dialOptions(), grpc.WithTransportCredentials(creds))...)
}

func dialOptions() []grpc.DialOption {
	dialer := &net.Dialer{KeepAliveConfig: tcpKeepAlive, Timeout: 10 * time.Second}
	return []grpc.DialOption{
		grpc.WithStaticStreamWindowSize(windowSize), grpc.WithStaticConnWindowSize(windowSize), grpc.WithReadBufferSize(readSize),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", address)
		}),
	}
}

var errRenewed = errors.New("certificates were renewed")

// session connects once and takes in flows until the source breaks. It reports whether anything was received.
func (f *Follower) session(ctx context.Context, t *intake) (received bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer cancel(nil) // before the wait
	if f.cfg.Lines != nil {
		return f.lines(ctx, t, &beside)
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
	since := t.seen.forget()
	if since.IsZero() {
		since = f.started
	}
	stream, err := getFlows(ctx, conn, flowsSince(since))
	if err != nil {
		return false, sessionError(ctx, err)
	}
	f.follows(ctx, t, &beside)
	var m frame
	defer m.free()
	for {
		if err := stream.RecvMsg(&m); err != nil {
			return received, sessionError(ctx, err)
		}
		received = true
		t.takeResponse(m.bytes())
	}
}

// lines reads a source of lines.
func (f *Follower) lines(ctx context.Context, t *intake, beside *sync.WaitGroup) (received bool, err error) {
	t.since = time.Time{}
	if f.cfg.Lines.Again() {
		t.since = t.seen.forget()
	}
	f.follows(ctx, t, beside)
	a := scanAhead(t.takeLine)
	defer a.close()
	err = f.cfg.Lines.Follow(ctx, func(line []byte) {
		received = true
		a.line(line)
	}, func(until time.Time, why error) {
		a.drain() // it comes after these lines
		t.damaged(until, why)
	})
	return received, sessionError(ctx, err)
}

// follows is called when the source has taken the request.
func (f *Follower) follows(ctx context.Context, t *intake, beside *sync.WaitGroup) {
	t.resumed()
	f.connected()
	if f.watched.IsZero() {
		f.watched = f.cfg.Now()
	}
	beside.Go(func() {
		for sleep(ctx, f.cfg.ProgressEvery) == nil {
			f.progress(t)
		}
		f.progress(t)
	})
}

// progress reports the span since the last report. What was missed in it is a loss of its own.
func (f *Follower) progress(t *intake) {
	p := audit.Progress{Watch: audit.Watch{Source: f.cfg.Member, From: f.watched, To: f.cfg.Now()}}
	p.Position, p.Forget = t.progress()
	if !p.Position.IsZero() {
		f.cfg.Metrics.position.WithLabelValues(f.cfg.Member).Set(float64(p.Position.UnixMilli()) / 1000)
	}
	if p.To.After(p.From) {
		f.cfg.Sink.Progress(p)
		f.watched = p.To
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
	if err == nil {
		return nil
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

package supervisor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"
)

// EventKind is the kind of an event.
type EventKind string

// These are the kinds of events.
const (
	// EventStarted means that the process was started.
	EventStarted EventKind = "started"
	// EventStopped means that the process was stopped on request.
	EventStopped EventKind = "stopped"
	// EventCrashed means that the process ended without a request.
	EventCrashed EventKind = "crashed"
	// EventWarning reports something that does not end the process.
	EventWarning EventKind = "warning"
)

// Event is a change of the state of a process that users may want to see.
type Event struct {
	Name string
	Kind EventKind
	Text string
}

// Supervisor manages the processes of one run.
type Supervisor struct {
	runDir, logDir string
	report         func(Event)
	backoff        Backoff

	mu        sync.Mutex
	processes []*process
	closed    bool
}

// Config configures a Supervisor. RunDir is the folder of the pid files and LogDir that of the logs; both must exist.
type Config struct {
	RunDir, LogDir string
	// Report is called from several goroutines.
	Report func(Event)
	// Backoff defaults to 200 ms, doubled up to 10 s, and reset after 30 s.
	Backoff Backoff
}

// New returns a supervisor without processes.
func New(c Config) *Supervisor {
	if c.Backoff == (Backoff{}) {
		c.Backoff = Backoff{First: 200 * time.Millisecond, Max: 10 * time.Second, Reset: 30 * time.Second}
	}
	if c.Report == nil {
		c.Report = func(Event) {}
	}
	return &Supervisor{runDir: c.RunDir, logDir: c.LogDir, report: c.Report, backoff: c.Backoff}
}

// Add registers a process without starting it.
func (s *Supervisor) Add(spec Spec) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	for _, p := range s.processes {
		if p.spec.Name == spec.Name {
			return fmt.Errorf("process %s was added twice", spec.Name)
		}
	}
	p := &process{
		spec:     spec,
		logPath:  filepath.Join(s.logDir, spec.Name+".log"),
		pidPath:  filepath.Join(s.runDir, spec.Name+".pid"),
		report:   s.report,
		backoff:  s.backoff,
		requests: make(chan request),
		ended:    make(chan struct{}),
	}
	p.status = Status{Name: spec.Name, State: StateDown, Log: p.logPath}
	s.processes = append(s.processes, p)
	go p.loop()
	return nil
}

func (s *Supervisor) find(name string) (*process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, 0, len(s.processes))
	for _, p := range s.processes {
		if p.spec.Name == name {
			return p, nil
		}
		names = append(names, p.spec.Name)
	}
	return nil, fmt.Errorf("%w: %q; there are %v", ErrUnknown, name, names)
}

// Start starts a process that is down. A running process is not affected.
func (s *Supervisor) Start(name string) error { return s.ask(name, opStart) }

// Stop ends a process with SIGTERM and keeps it down.
func (s *Supervisor) Stop(name string) error { return s.ask(name, opStop) }

// Kill ends a process with SIGKILL and keeps it down.
func (s *Supervisor) Kill(name string) error { return s.ask(name, opKill) }

// Restart stops and starts a process.
func (s *Supervisor) Restart(name string) error {
	if err := s.Stop(name); err != nil {
		return err
	}
	return s.Start(name)
}

func (s *Supervisor) ask(name string, o op) error {
	p, err := s.find(name)
	if err != nil {
		return err
	}
	return p.ask(o)
}

// maxEarlyExits is how often a process may exit before it was ready once; further restarts are unlikely to help.
const maxEarlyExits = 3

// WaitReady waits until Ready of the process returns nil. It returns an *ExitedError when the process exited too often before that.
func (s *Supervisor) WaitReady(ctx context.Context, name string) error {
	p, err := s.find(name)
	if err != nil {
		return err
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		st, exits := p.snapshot()
		if exits >= maxEarlyExits {
			return p.exited(st)
		}
		if st.State == StateUp {
			if p.spec.Ready == nil {
				return nil
			}
			attempt, cancel := context.WithTimeout(ctx, 2*time.Second)
			last = p.spec.Ready(attempt)
			cancel()
			if last == nil {
				p.update(func(*Status) { p.exits = 0 })
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready (%w; last answer: %w); its log: %s", name, context.Cause(ctx), last, p.logPath)
		case <-tick.C:
		}
	}
}

// StartAndWait starts processes concurrently and waits until all are ready. It returns the first error.
func (s *Supervisor) StartAndWait(ctx context.Context, names ...string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make(chan error, len(names))
	for _, name := range names {
		go func() {
			if err := s.Start(name); err != nil {
				errs <- err
				return
			}
			errs <- s.WaitReady(ctx, name)
		}()
	}
	for range names {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}

// Status returns the status of all processes, in the order in which they were added.
func (s *Supervisor) Status() []Status {
	s.mu.Lock()
	processes := slices.Clone(s.processes)
	s.mu.Unlock()
	out := make([]Status, 0, len(processes))
	for _, p := range processes {
		st, _ := p.snapshot()
		if st.PID != 0 {
			st.RSSBytes = RSS(st.PID)
		}
		out = append(out, st)
	}
	return out
}

// Close stops all processes, the highest layer first. Its duration is bounded by the stop timeouts of the processes. It may be
// called more than once; no process can be started afterwards.
func (s *Supervisor) Close() {
	s.mu.Lock()
	s.closed = true
	processes := slices.Clone(s.processes)
	s.mu.Unlock()
	layers := map[int][]*process{}
	for _, p := range processes {
		layers[p.spec.Layer] = append(layers[p.spec.Layer], p)
	}
	order := make([]int, 0, len(layers))
	for l := range layers {
		order = append(order, l)
	}
	slices.Sort(order)
	slices.Reverse(order)
	for _, l := range order {
		var wg sync.WaitGroup
		for _, p := range layers[l] {
			wg.Go(func() { _ = p.ask(opClose) }) // it fails only for a process that is already closed
		}
		wg.Wait()
	}
}

// startLine is the line that spawn writes to a log before each start.
var startLine = regexp.MustCompile(`(?m)^--- \S+ starts \S+$`)

// sinceStart returns the part of a log since the last start, because output of earlier starts does not concern the present error.
func sinceStart(tail string) string {
	if all := startLine.FindAllStringIndex(tail, -1); len(all) > 0 {
		return tail[all[len(all)-1][0]:]
	}
	return tail
}

// Tail returns the last lines of a file, for error messages.
func Tail(path string, lines int) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	const window = 16 << 10
	if st, err := f.Stat(); err == nil && st.Size() > window {
		if _, err := f.Seek(-window, 2); err != nil {
			return err.Error()
		}
	}
	var buf bytes.Buffer
	if _, err := buf.ReadFrom(f); err != nil && !errors.Is(err, os.ErrClosed) {
		return err.Error()
	}
	all := bytes.Split(bytes.TrimRight(buf.Bytes(), "\n"), []byte("\n"))
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return string(bytes.Join(all, []byte("\n")))
}

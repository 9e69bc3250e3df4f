package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

type op int

const (
	opStart op = iota
	opStop
	opKill
	opClose
)

type request struct {
	op   op
	done chan error
}

// process is one supervised process. Only its loop accesses the child; other goroutines send requests or read the status.
type process struct {
	spec     Spec
	logPath  string
	pidPath  string
	report   func(Event)
	backoff  Backoff
	requests chan request
	ended    chan struct{}

	mu     sync.Mutex
	status Status
	// exits counts the unrequested exits since the last ready state or start request.
	exits int
	// tail is the end of the log when the child last exited without a request; the next start may already write to the log.
	tail string
}

// Backoff defines the delay before a crashed process is restarted: First, doubled each time up to Max. After a process ran for
// Reset, the delay starts at First again.
type Backoff struct{ First, Max, Reset time.Duration }

func (p *process) loop() {
	defer close(p.ended)
	var (
		child   *child
		retry   <-chan time.Time
		pause   = p.backoff.First
		wanted  bool
		held    bool // by a stop or kill request
		started bool
	)
	spawn := func() error {
		if started {
			p.update(func(s *Status) { s.Restarts++ })
		}
		started = true
		c, err := p.spawn()
		if err != nil {
			return err
		}
		child = c
		return nil
	}
	again := func(exit string, ran time.Duration) {
		if ran >= p.backoff.Reset {
			pause = p.backoff.First
		}
		tail := sinceStart(Tail(p.logPath, 15))
		p.update(func(s *Status) { s.State, s.PID, s.LastExit = StateBackoff, 0, exit; p.exits++; p.tail = tail })
		p.report(
			Event{Name: p.spec.Name, Kind: EventCrashed, Text: fmt.Sprintf("ended unexpectedly (%s), starts again in %s; log: %s", exit, pause, p.logPath)},
		)
		retry = time.After(pause)
		pause = min(pause*2, p.backoff.Max)
	}
	for {
		var exited <-chan string
		if child != nil {
			exited = child.exited
		}
		select {
		case exit := <-exited:
			ran := time.Since(child.started)
			child = nil
			p.removePID()
			again(exit, ran)
		case <-retry:
			retry = nil
			if err := spawn(); err != nil {
				again(err.Error(), 0)
			} else {
				p.report(Event{Name: p.spec.Name, Kind: EventStarted, Text: "started again"})
			}
		case r := <-p.requests:
			switch r.op {
			case opStart:
				retry, pause = nil, p.backoff.First
				wanted = true
				p.update(func(*Status) { p.exits = 0 })
				var err error
				if child == nil {
					if err = spawn(); err != nil {
						again(err.Error(), 0)
					} else if held {
						p.report(Event{Name: p.spec.Name, Kind: EventStarted, Text: "started again"})
					}
				}
				held = false
				r.done <- err
			case opStop, opKill, opClose:
				retry = nil
				sig := syscall.SIGTERM
				if r.op == opKill {
					sig = syscall.SIGKILL
				}
				if child != nil {
					p.update(func(s *Status) { s.LastExit = p.end(child, sig) })
					child = nil
					p.removePID()
				}
				p.update(func(s *Status) { s.State, s.PID = StateDown, 0 })
				if wanted && r.op != opClose {
					p.report(Event{Name: p.spec.Name, Kind: EventStopped, Text: "held down until it is started"})
				}
				held = held || wanted
				wanted = false
				r.done <- nil
				if r.op == opClose {
					return
				}
			}
		}
	}
}

type child struct {
	pid     int
	started time.Time
	exited  chan string
}

func (p *process) spawn() (*child, error) {
	if p.spec.BeforeStart != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		err := p.spec.BeforeStart(ctx)
		cancel()
		if err != nil {
			p.report(Event{Name: p.spec.Name, Kind: EventWarning, Text: err.Error()})
		}
	}
	log, err := openLog(p.logPath)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", p.spec.Name, err)
	}
	defer log.Close() // the child has its own descriptor
	fmt.Fprintf(log, "--- %s starts %s\n", time.Now().Format(time.RFC3339), filepath.Base(p.spec.Path))
	cmd := exec.Command(p.spec.Path, p.spec.Args...)
	cmd.Env = append(os.Environ(), p.spec.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := start(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.spec.Name, err)
	}
	c := &child{pid: cmd.Process.Pid, started: time.Now(), exited: make(chan string, 1)}
	if err := writePIDFile(p.pidPath, c.pid); err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrProcessDone) {
		p.report(Event{Name: p.spec.Name, Kind: EventWarning, Text: err.Error()})
	}
	p.update(func(s *Status) { s.State, s.PID, s.Started = StateUp, c.pid, c.started })
	go func() {
		err := cmd.Wait()
		if err == nil {
			c.exited <- "exit status 0"
			return
		}
		c.exited <- err.Error()
	}()
	return c, nil
}

// end signals the child and waits until it exits. After StopTimeout it sends SIGKILL.
func (p *process) end(c *child, sig syscall.Signal) string {
	limit := p.spec.StopTimeout
	if limit == 0 {
		limit = 5 * time.Second
	}
	// ESRCH means that the child has just exited, which the wait below detects.
	_ = signalGroup(c.pid, sig)
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case exit := <-c.exited:
		return exit
	case <-timer.C:
		_ = signalGroup(c.pid, syscall.SIGKILL)
		return <-c.exited
	}
}

func (p *process) removePID() {
	if err := os.Remove(p.pidPath); err != nil && !errors.Is(err, os.ErrNotExist) {
		p.report(Event{Name: p.spec.Name, Kind: EventWarning, Text: err.Error()})
	}
}

func (p *process) update(f func(*Status)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(&p.status)
}

func (p *process) exited(st Status) *ExitedError {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &ExitedError{Name: p.spec.Name, Exit: st.LastExit, Log: p.logPath, Tail: p.tail}
}

func (p *process) snapshot() (Status, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status, p.exits
}

func (p *process) ask(o op) error {
	r := request{op: o, done: make(chan error, 1)}
	select {
	case p.requests <- r:
		return <-r.done
	case <-p.ended:
		return ErrClosed
	}
}

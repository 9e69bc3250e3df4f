package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Spec describes one process.
type Spec struct {
	// Name is unique in a run; it names the log and the pid file.
	Name string
	// Layer defines the order in which processes stop: higher layers first, and the processes of one layer together.
	Layer int
	Path  string
	Args  []string
	// Env is appended to the supervisor's own environment.
	Env []string
	// BeforeStart runs before every start, also after a crash. Its error is reported and does not prevent the start.
	BeforeStart func(ctx context.Context) error
	// Ready is called until it returns nil. When Ready is nil, the process is ready once it is started.
	Ready func(ctx context.Context) error
	// StopTimeout is how long a SIGTERM may take before SIGKILL; zero means 5 seconds.
	StopTimeout time.Duration
}

// State is the state of a process.
type State string

// These are the states of a process.
const (
	// StateDown means that the process is not running and is not started until it is requested.
	StateDown State = "down"
	// StateUp means that the process is running.
	StateUp State = "up"
	// StateBackoff means that the process exited without a request and is restarted after a delay.
	StateBackoff State = "backoff"
)

// Status is the state of a process at one moment.
type Status struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	PID   int    `json:"pid,omitempty"`
	// RSSBytes is the resident memory; zero when not running.
	RSSBytes int64 `json:"rssBytes"`
	// Restarts counts the starts after the first, requested or not.
	Restarts int       `json:"restarts"`
	Started  time.Time `json:"started,omitzero"`
	LastExit string    `json:"lastExit,omitempty"`
	Log      string    `json:"log"`
}

// ErrUnknown is returned for a name that no process of the run has.
var ErrUnknown = errors.New("no such process")

// ErrClosed is returned after Close was called.
var ErrClosed = errors.New("the playground is stopping")

// ExitedError means that a process exited before it was ready.
type ExitedError struct {
	Name, Exit, Log, Tail string
}

func (e *ExitedError) Error() string {
	return fmt.Sprintf("%s ended before it was ready (%s); the end of %s:\n%s", e.Name, e.Exit, e.Log, e.Tail)
}

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
	// Layer orders the stop: higher layers are stopped first, those of one layer together.
	Layer int
	Path  string
	Args  []string
	// Env is appended to the supervisor's own environment.
	Env []string
	// BeforeStart runs before every start, also after a crash. Its error is reported and does not prevent the start.
	BeforeStart func(ctx context.Context) error
	// Ready is asked until it returns nil. A nil Ready means ready once started.
	Ready func(ctx context.Context) error
	// StopTimeout is how long a SIGTERM may take before SIGKILL; zero means 5 seconds.
	StopTimeout time.Duration
}

// State of a process.
type State string

// The states of a process.
const (
	// StateDown: not running and not wanted, until it is started.
	StateDown State = "down"
	// StateUp: running.
	StateUp State = "up"
	// StateBackoff: it ended by itself and is started again after a pause.
	StateBackoff State = "backoff"
)

// Status is what is known of a process at one moment.
type Status struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	PID   int    `json:"pid,omitempty"`
	// RSSBytes is the resident memory; zero when not running.
	RSSBytes int64 `json:"rssBytes"`
	// Restarts counts the starts after the first, whoever asked for them.
	Restarts int       `json:"restarts"`
	Started  time.Time `json:"started,omitzero"`
	LastExit string    `json:"lastExit,omitempty"`
	Log      string    `json:"log"`
}

// ErrUnknown is returned for a name that no process of the run has.
var ErrUnknown = errors.New("no such process")

// ErrClosed is returned once the run is ending.
var ErrClosed = errors.New("the playground is stopping")

// ExitedError says that a process ended before it was ready.
type ExitedError struct {
	Name, Exit, Log, Tail string
}

func (e *ExitedError) Error() string {
	return fmt.Sprintf("%s ended before it was ready (%s); the end of %s:\n%s", e.Name, e.Exit, e.Log, e.Tail)
}

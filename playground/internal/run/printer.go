package run

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/acp-io/acp/playground/internal/parts"
	"github.com/acp-io/acp/playground/internal/supervisor"
)

// Printer prints progress for users. On a terminal, progress overwrites its own line; otherwise every line is new and without
// control characters.
type Printer struct {
	Out io.Writer
	TTY bool

	mu       sync.Mutex
	open     bool // the last line is a progress line without a newline
	lastTick time.Time
}

// Line prints one line.
func (p *Printer) Line(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	fmt.Fprintf(p.Out, format+"\n", args...)
}

func (p *Printer) progress(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	if p.TTY {
		fmt.Fprintf(p.Out, "\r\033[K%s", text)
		p.open = true
		return
	}
	// A log needs only occasional progress, not a line per second.
	if time.Since(p.lastTick) < 20*time.Second {
		return
	}
	p.lastTick = time.Now()
	fmt.Fprintln(p.Out, text)
}

func (p *Printer) clear() {
	if p.open {
		fmt.Fprint(p.Out, "\r\033[K")
		p.open = false
	}
}

// Event prints an event of a process.
func (p *Printer) Event(e supervisor.Event) {
	p.Line("%s  %s: %s", time.Now().Format("15:04:05"), e.Name, e.Text)
}

// Begin implements parts.Progress.
func (p *Printer) Begin(n, total int, part parts.Part, log string) {
	names := make([]string, 0, len(part.Programs))
	for name := range part.Programs {
		names = append(names, name)
	}
	names = append(names, part.Packages...)
	p.Line("building part %d of %d: %s (%s; %s)", n, total, part.Name, strings.Join(names, ", "), part.Expect)
	p.mu.Lock()
	p.lastTick = time.Now()
	p.mu.Unlock()
}

// Elapsed implements parts.Progress.
func (p *Printer) Elapsed(part parts.Part, d time.Duration, waiting bool) {
	what := "building"
	if waiting {
		what = "waiting for another run that builds"
	}
	p.progress("  %s %s … %s (%s)", what, part.Name, d.Round(time.Second), part.Expect)
}

// End implements parts.Progress.
func (p *Printer) End(part parts.Part, d time.Duration, err error) {
	if err != nil {
		p.Line("  building %s failed after %s", part.Name, d.Round(time.Second))
		return
	}
	p.Line("  built %s in %s", part.Name, d.Round(time.Second))
}

package hubble

import "sync"

// Lines that are scanned and not taken in yet are bounded by both.
const (
	aheadLines = 1024
	aheadBytes = 1 << 20
)

// scannedLine is a line with what scanning it said. Event and line lie in the buffer of their block.
type scannedLine struct {
	line  []byte
	event event
	err   error
}

// block is lines in their order.
type block struct {
	buffer []byte
	lines  []scannedLine
}

func newBlock() *block {
	return &block{buffer: make([]byte, 0, aheadBytes), lines: make([]scannedLine, 0, aheadLines)}
}

func (b *block) room(n int) bool {
	return len(b.lines) == 0 || len(b.lines) < aheadLines && len(b.buffer)+n <= aheadBytes
}

// add keeps a copy of the line, and scans that. Only a line that is alone may be longer than the buffer.
func (b *block) add(line []byte) {
	start := len(b.buffer)
	b.buffer = append(b.buffer, line...)
	b.lines = append(b.lines, scannedLine{line: b.buffer[start:]})
	s := &b.lines[len(b.lines)-1]
	s.err = scanLine(s.line, &s.event)
}

func (b *block) reset() {
	if cap(b.buffer) > aheadBytes {
		b.buffer = make([]byte, 0, aheadBytes)
	}
	clear(b.lines)
	b.buffer, b.lines = b.buffer[:0], b.lines[:0]
}

// ahead scans lines while those before are taken in by another goroutine, which is as much work. Nothing waits for a block to
// be full: whatever is there is taken as soon as what came before was.
type ahead struct {
	take func(*scannedLine)
	done chan struct{}

	mu      sync.Mutex
	changed *sync.Cond
	pending *block
	busy    bool // a block is being taken in
	closed  bool
}

// scanAhead hands lines to take, one after the other, in a goroutine that ends with close.
func scanAhead(take func(*scannedLine)) *ahead {
	a := &ahead{take: take, done: make(chan struct{}), pending: newBlock()}
	a.changed = sync.NewCond(&a.mu)
	go a.run()
	return a
}

func (a *ahead) run() {
	defer close(a.done)
	taken := newBlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	for {
		for len(a.pending.lines) == 0 {
			if a.closed {
				return
			}
			a.changed.Wait()
		}
		a.pending, taken, a.busy = taken, a.pending, true
		a.changed.Signal()
		a.mu.Unlock()
		for i := range taken.lines {
			a.take(&taken.lines[i])
		}
		taken.reset()
		a.mu.Lock()
		a.busy = false
		a.changed.Signal()
	}
}

// line scans the next line. It waits when too many were not taken in.
func (a *ahead) line(b []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for !a.pending.room(len(b)) {
		a.changed.Wait()
	}
	a.pending.add(b)
	if len(a.pending.lines) == 1 {
		a.changed.Signal()
	}
}

// drain waits until all lines were taken in. Nothing is taken in until the next line.
func (a *ahead) drain() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.busy || len(a.pending.lines) > 0 {
		a.changed.Wait()
	}
}

// close returns when all lines were taken in.
func (a *ahead) close() {
	a.mu.Lock()
	a.closed = true
	a.changed.Signal()
	a.mu.Unlock()
	<-a.done
}

package hubble

import "sync"

// maxBlockLines and maxBlockBytes bound the lines that are scanned and not yet ingested.
const (
	maxBlockLines = 1024
	maxBlockBytes = 1 << 20
)

// scannedLine is a line with the result of scanning it. The event and the line point into the buffer of their block.
type scannedLine struct {
	line  []byte
	event event
	err   error
}

// block is a sequence of scanned lines with the buffer that holds their content.
type block struct {
	buffer []byte
	lines  []scannedLine
	scan   scanFunc
}

// scanFunc reads a line into an empty event, which may point into the line.
type scanFunc func(line []byte, e *event) error

func newBlock(scan scanFunc) *block {
	return &block{buffer: make([]byte, 0, maxBlockBytes), lines: make([]scannedLine, 0, maxBlockLines), scan: scan}
}

func (b *block) fits(n int) bool {
	return len(b.lines) == 0 || len(b.lines) < maxBlockLines && len(b.buffer)+n <= maxBlockBytes
}

// add copies the line into the block and scans the copy. A line that is longer than the buffer is accepted only into an empty
// block.
func (b *block) add(line []byte) {
	start := len(b.buffer)
	b.buffer = append(b.buffer, line...)
	b.lines = append(b.lines, scannedLine{line: b.buffer[start:]})
	s := &b.lines[len(b.lines)-1]
	s.err = b.scan(s.line, &s.event)
}

func (b *block) reset() {
	if cap(b.buffer) > maxBlockBytes {
		b.buffer = make([]byte, 0, maxBlockBytes)
	}
	clear(b.lines)
	b.buffer, b.lines = b.buffer[:0], b.lines[:0]
}

// lineScanner scans lines while another goroutine ingests the lines before them; both are about equally expensive. It does not
// wait for a block to be full: lines are passed on as soon as the previous block is done.
type lineScanner struct {
	parse scanFunc
	take  func(*scannedLine)
	done  chan struct{}

	mu      sync.Mutex
	changed *sync.Cond
	pending *block
	busy    bool // a block is being ingested
	closed  bool
}

// newLineScanner returns a lineScanner that passes lines to take, one after the other, in a goroutine that ends with close.
func newLineScanner(parse scanFunc, take func(*scannedLine)) *lineScanner {
	a := &lineScanner{parse: parse, take: take, done: make(chan struct{}), pending: newBlock(parse)}
	a.changed = sync.NewCond(&a.mu)
	go a.run()
	return a
}

func (a *lineScanner) run() {
	defer close(a.done)
	taken := newBlock(a.parse)
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

// scan scans the next line. It blocks while the pending block is full.
func (a *lineScanner) scan(b []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for !a.pending.fits(len(b)) {
		a.changed.Wait()
	}
	a.pending.add(b)
	if len(a.pending.lines) == 1 {
		a.changed.Signal()
	}
}

// drain waits until all lines are ingested. Nothing is ingested after it until the next call of scan.
func (a *lineScanner) drain() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.busy || len(a.pending.lines) > 0 {
		a.changed.Wait()
	}
}

// close waits until all lines are ingested and ends the goroutine.
func (a *lineScanner) close() {
	a.mu.Lock()
	a.closed = true
	a.changed.Signal()
	a.mu.Unlock()
	<-a.done
}

package hubble

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// TestLineScanner verifies that lines arrive in order and unchanged, whatever their length, and that the number of waiting lines
// is bounded.
func TestLineScanner(t *testing.T) {
	const n = 5 * maxBlockLines
	text := func(i int) string {
		if i%(maxBlockLines+7) == maxBlockLines-1 {
			return fmt.Sprint(i, strings.Repeat("x", maxBlockBytes+i))
		}
		return fmt.Sprint(i, strings.Repeat("y", i%900))
	}
	next, hold := 0, make(chan struct{})
	a := newLineScanner(scanLine, func(s *scannedLine) {
		if next == 0 {
			<-hold // meanwhile a block fills up
		}
		if string(s.line) != text(next) {
			t.Errorf("line %d: got %.40q", next, s.line)
		}
		if s.err == nil {
			t.Errorf("line %d is not an event, but there is no error", next)
		}
		next++
	})
	buffer := make([]byte, 2*maxBlockBytes)
	for i := range n {
		if i == maxBlockLines/2 {
			close(hold)
		}
		line := buffer[:copy(buffer, text(i))] // the reader reuses its buffer
		a.scan(line)
		copy(line, bytes.Repeat([]byte("z"), len(line)))
		a.mu.Lock()
		waiting := len(a.pending.lines)
		a.mu.Unlock()
		if waiting > maxBlockLines {
			t.Fatalf("got %d waiting lines, want at most the limit", waiting)
		}
		if i == n/2 {
			if a.drain(); next != i+1 {
				t.Fatalf("got %d ingested lines, want all %d", next, i+1)
			}
		}
	}
	if a.close(); next != n {
		t.Errorf("got %d ingested lines, want %d", next, n)
	}
}

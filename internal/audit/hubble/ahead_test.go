package hubble

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// TestScanAhead: lines come in their order, each as it was, however long, and not more of them wait than fit.
func TestScanAhead(t *testing.T) {
	const n = 5 * aheadLines
	text := func(i int) string {
		if i%(aheadLines+7) == aheadLines-1 {
			return fmt.Sprint(i, strings.Repeat("x", aheadBytes+i))
		}
		return fmt.Sprint(i, strings.Repeat("y", i%900))
	}
	next, hold := 0, make(chan struct{})
	a := scanAhead(func(s *scannedLine) {
		if next == 0 {
			<-hold // meanwhile a block becomes full
		}
		if string(s.line) != text(next) {
			t.Errorf("line %d is %.40q", next, s.line)
		}
		if s.err == nil {
			t.Errorf("line %d is no event, and nothing says so", next)
		}
		next++
	})
	buffer := make([]byte, 2*aheadBytes)
	for i := range n {
		if i == aheadLines/2 {
			close(hold)
		}
		line := buffer[:copy(buffer, text(i))] // as of a reader, which uses its buffer again
		a.line(line)
		copy(line, bytes.Repeat([]byte("z"), len(line)))
		a.mu.Lock()
		waiting := len(a.pending.lines)
		a.mu.Unlock()
		if waiting > aheadLines {
			t.Fatalf("%d lines wait", waiting)
		}
		if i == n/2 {
			if a.drain(); next != i+1 {
				t.Fatalf("%d lines were taken in, want all %d that came", next, i+1)
			}
		}
	}
	if a.close(); next != n {
		t.Errorf("%d lines were taken in, want %d", next, n)
	}
}

package faults

import "testing"

// A grant that is followed by closing what it is about may be seen after it, and one closed before it never with it open.
func TestSeen(t *testing.T) {
	_, open := onePair(t)
	var s seen
	s.begin(open)
	first := granted(open, nil)
	if got := len(s.add(first)); got != 1 {
		t.Errorf("one change of one kind makes one world, not %d", got)
	}
	second := closed(first)
	after := s.add(second)
	if len(after) != 2 {
		t.Fatalf("it may be seen with the grant or without, not %d ways", len(after))
	}
	without := 0
	for _, w := range after {
		if len(w.resources) != 1 {
			t.Error("a world without the newest object is nothing new")
		}
		if len(w.policies) == 0 {
			without++
		}
	}
	if without != 1 {
		t.Errorf("%d worlds lack the grant, want 1", without)
	}
	s.begin(second)
	if got := len(s.add(second)); got != 0 {
		t.Errorf("nothing changed, and %d worlds are new", got)
	}
}

package faults

import "testing"

// TestObservableModels checks which models are observable when a resource is enforced after a grant on it was written: with or without
// the grant.
func TestObservableModels(t *testing.T) {
	_, open := newPair(t)
	var s observableModels
	s.reset(open)
	first := withGrant(open, nil)
	if got := len(s.add(first)); got != 1 {
		t.Errorf("one change of one kind makes %d models, want 1", got)
	}
	second := withEnforcement(first)
	after := s.add(second)
	if len(after) != 2 {
		t.Fatalf("%d models, want 2: with the grant and without", len(after))
	}
	without := 0
	for _, w := range after {
		if len(w.resources) != 1 {
			t.Error("a new model lacks the newest object")
		}
		if len(w.policies) == 0 {
			without++
		}
	}
	if without != 1 {
		t.Errorf("%d models lack the grant, want 1", without)
	}
	s.reset(second)
	if got := len(s.add(second)); got != 0 {
		t.Errorf("nothing changed, but %d models are new", got)
	}
}

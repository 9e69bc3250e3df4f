package core

import (
	"context"
	"testing"
	"time"
)

func TestLargeBodiesShareTheLimit(t *testing.T) {
	l := newLargeBodies()
	first, ok := l.reserve(t.Context(), "a", MaxLargeBodies/2)
	if !ok {
		t.Fatal("there is room")
	}
	soon := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	if _, ok := l.reserve(soon(), "a", 1); ok {
		t.Error("one caller has two bodies at once")
	}
	if _, ok := l.reserve(soon(), "b", MaxLargeBodies/2+1); ok {
		t.Error("more is held than there is room for")
	}
	second, ok := l.reserve(t.Context(), "b", MaxLargeBodies/2)
	if !ok {
		t.Fatal("there is room for two halves")
	}
	first()
	third, ok := l.reserve(t.Context(), "a", MaxLargeBodies/2)
	if !ok {
		t.Fatal("what was given back is free")
	}
	second()
	third()
	if !l.room.TryAcquire(MaxLargeBodies) || len(l.callers.callers) != 0 {
		t.Error("something is held although all have gone")
	}
}

package approval

import "context"

// SyncAtOnce is the size of the follower's pages.
const SyncAtOnce = syncAtOnce

// SetStep makes a worker stop at a point as a crash would.
func (w *Worker) SetStep(f func(point string)) { w.step = f }

// Follow is what a change of one policy leads to.
func (f *Follower) Follow(ctx context.Context, policy string) error {
	return f.follow(ctx, policy)
}

// HolderLines is holderLines, for tests.
var HolderLines = holderLines

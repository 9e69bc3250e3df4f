package approval

// SetStep makes a worker stop at a point as a crash would.
func (w *Worker) SetStep(f func(point string)) { w.step = f }

// Clone for tests that compare before and after.
func (t *Ticket) Clone() *Ticket {
	c := t.clone()
	c.Steps = append([]Step(nil), t.Steps...)
	return c
}

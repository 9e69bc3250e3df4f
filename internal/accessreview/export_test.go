package accessreview

// SetStep sets what is called at the points where a crash matters most.
func (w *Worker) SetStep(f func(string)) { w.step = f }

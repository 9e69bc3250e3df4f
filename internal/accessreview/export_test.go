package accessreview

// SetStep sets what is called at the points where a crash matters most.
func (w *Worker) SetStep(f func(string)) { w.step = f }

// SetBounds replaces the bounds of what a campaign stores.
func (s *Service) SetBounds(lines, assignments int) { s.bounds = bounds{lines, assignments} }

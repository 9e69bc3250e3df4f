package accessreview

import "time"

// SetStep sets what is called at the points where a crash matters most.
func (w *Worker) SetStep(f func(string)) { w.step = f }

// SetRenewEvery sets the interval at which the lease is renewed during a pass.
func (w *Worker) SetRenewEvery(d time.Duration) { w.renewEvery = d }

// SetBounds replaces the bounds of what a campaign stores.
func (s *Service) SetBounds(lines, assignments int) { s.bounds = bounds{lines, assignments} }

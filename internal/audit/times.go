package audit

import "time"

// Earlier returns the earlier of two times. The zero time is earlier than any other.
func Earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Later returns the later of two times. Any other time is later than the zero time.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

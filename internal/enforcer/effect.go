package enforcer

// Effect is what a new spec does to those who meet the old one. Of several effects the greatest counts.
type Effect int

const (
	// Gives: nobody who was let in is refused, except by a workload that becomes closed only now.
	Gives Effect = iota
	// Takes: somebody may be refused who was let in. When in doubt, it is this one.
	Takes
	// Opens: what was closed is not any more.
	Opens
)

package enforcer

// Effect classifies what replacing a spec does to the clients of the old one. Of several effects the greatest counts.
type Effect int

const (
	// Grants means that no client that was let in is refused, except by a workload that becomes closed only now.
	Grants Effect = iota
	// Revokes means that a client may be refused that was let in. It is the result in case of doubt.
	Revokes
	// Opens means that a closed workload is no longer closed.
	Opens
)

package foreignpolicy

const (
	// maxChecks bounds the checks for one workload in a round. A workload that would need more counts as opened, because whoever may
	// write policies can write ones that take any amount of work. All workloads of a member with 6,000 ordinary policies and 12,000 identities
	// together take less than a tenth of it.
	maxChecks = 10_000_000
	// maxMemberChecks bounds the checks for all workloads of a member in a round. The remaining workloads count as opened until the next
	// round.
	maxMemberChecks = 50_000_000
	// smallSteps is how many of the smallest steps, such as looking up a value, count as one check.
	smallSteps = 16
)

// budget bounds the work of a Detector. Its unit is a check: the evaluation of one condition of a selector, of one port or request of a rule,
// or a step of about the same duration.
type budget struct {
	left int
	// exceeded reports whether something was not done because it takes more checks than are left.
	exceeded bool
	// checks counts the checks that were done.
	checks *int
}

// spend reports whether work that takes n checks at most may be done, and counts it. Once it has returned false, it always does.
func (b *budget) spend(n int) bool {
	if b.exceeded || n > b.left {
		b.exceeded = true
		return false
	}
	b.left, *b.checks = b.left-n, *b.checks+n
	return true
}

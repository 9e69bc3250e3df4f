package faults

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/acp-io/acp/playground/internal/enforcement"
)

const (
	// probeInterval is the interval of the continuous probe.
	probeInterval = 100 * time.Millisecond
	// expectationHorizon is how far ahead the beginnings and ends of grants are included in an expectation. It covers programs whose
	// clock is ahead.
	expectationHorizon = 10*time.Minute + clockSkew
)

// continuousProbe probes all connections to one member during the whole run. A connection may pass only if it may in at least one
// model that was wanted since the member last converged, and must pass if it must in all of them. So no change may temporarily open
// a connection that is refused before and after it, or refuse one that is open before and after it.
type continuousProbe struct {
	member   string
	reader   *enforcement.Reader
	attempts []attempt

	report func(text string)

	mu sync.Mutex
	// may and must contain, for each attempt, whether it may and whether it must pass.
	may, must []bool
	// probed counts the probed connections.
	probed int
}

func newContinuousProbe(member string, w *enforcement.Reader, attempts []attempt, violated func(string)) *continuousProbe {
	return &continuousProbe{member: member, reader: w, attempts: attempts, report: violated}
}

// setExpectation replaces the expectation by that of a model.
func (p *continuousProbe) setExpectation(m evaluator, now time.Time) {
	may, must := p.expectation(m, now)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.may, p.must = may, must
}

// widenExpectation adds the expectation of a model that is wanted from now on.
func (p *continuousProbe) widenExpectation(m evaluator, now time.Time) {
	may, must := p.expectation(m, now)
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range may {
		may[i] = may[i] || p.may[i]
		must[i] = must[i] && p.must[i]
	}
	p.may, p.must = may, must
}

// allowLoss accepts that some connections are refused until the member has converged again. An address that moves from one subject to
// another stays in the address group of the former for a limited time until it is enforced in that of the latter, so during an outage
// it may temporarily be in neither and be refused.
func (p *continuousProbe) allowLoss(of func(attempt) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	must := make([]bool, len(p.must))
	for i, a := range p.attempts {
		must[i] = p.must[i] && !of(a)
	}
	p.must = must
}

// exclude accepts every verdict of some connections until the member has converged again.
func (p *continuousProbe) exclude(of func(attempt) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	may, must := make([]bool, len(p.may)), make([]bool, len(p.must))
	for i, a := range p.attempts {
		hit := of(a)
		may[i], must[i] = p.may[i] || hit, p.must[i] && !hit
	}
	p.may, p.must = may, must
}

// expectation reports whether each attempt may and must pass in a model, now and at all change times within the horizon.
func (p *continuousProbe) expectation(m evaluator, now time.Time) (may, must []bool) {
	may, must = make([]bool, len(p.attempts)), make([]bool, len(p.attempts))
	instants := m.changeTimes(now, expectationHorizon)
	for i, a := range p.attempts {
		must[i] = true
		for _, at := range instants {
			pass := m.passes(p.member, a, at)
			may[i], must[i] = may[i] || pass, must[i] && pass
		}
	}
	return may, must
}

// run probes every probeInterval until the context ends or a probe fails.
func (p *continuousProbe) run(ctx context.Context) {
	tick := time.NewTicker(probeInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !p.probeOnce() || ctx.Err() != nil {
			return
		}
	}
}

// probeOnce probes every connection once and reports violations. It returns false when the verdicts cannot be read.
func (p *continuousProbe) probeOnce() bool {
	p.mu.Lock()
	may, must := p.may, p.must
	p.mu.Unlock()
	outcomes, err := p.reader.Outcomes()
	if err != nil {
		p.report(fmt.Sprintf("%s cannot be probed: %s", p.member, err))
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.probed += len(outcomes)
	for i, outcome := range outcomes {
		pass := enforcement.Passes(outcome)
		// A verdict is correct if it was expected before the request or is expected after the response.
		switch {
		case pass && !may[i] && !p.may[i]:
			p.report(fmt.Sprintf("in %s %s passes (%s), but no wanted policy allowed it", p.member, p.attempts[i], outcome))
		case !pass && must[i] && p.must[i]:
			p.report(fmt.Sprintf("in %s %s is refused (%s), but every wanted policy allowed it", p.member, p.attempts[i], outcome))
		}
	}
	return true
}

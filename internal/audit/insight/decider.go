package insight

import (
	"net/netip"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// decider decides edges again for one or two states of the policies.
type decider struct {
	states []*policyState
	ends   map[string]*end
}

// verdicts contains the decisions of the states about one edge.
type verdicts struct {
	// of contains the decision of each state.
	of []policy.Decision
	// why is set if the source is ambiguous and not all candidates have the same decision.
	why *message.Message
	// same reports whether every state decided the same for all candidates.
	same bool
}

func newDecider(states ...*policyState) *decider {
	return &decider{states: states, ends: map[string]*end{}}
}

// maxEnds bounds the cached descriptions. Edges are sorted, so that few are needed at a time.
const maxEnds = 1 << 12

func (j *decider) end(text string) *end {
	if e, ok := j.ends[text]; ok {
		return e
	}
	if len(j.ends) >= maxEnds {
		clear(j.ends)
	}
	e := readEnd(text)
	j.ends[text] = &e
	return &e
}

// preparedEdge is an edge that is prepared for queries.
type preparedEdge struct {
	queries   []policy.Query
	addresses []netip.Addr
	why       *message.Message
	host      bool
}

func (j *decider) prepare(e *audit.Edge) preparedEdge {
	source, destination := &end{}, &end{}
	if e.Subject == "" {
		source = j.end(e.Source)
	}
	if e.Resource == "" {
		destination = j.end(e.Destination)
	}
	a := preparedEdge{queries: make([]policy.Query, len(j.states)), host: source.kind == sourceHost}
	var resources []string
	for i, d := range j.states {
		a.queries[i] = d.query(e, source, destination)
		resources = append(resources, a.queries[i].Resources...)
	}
	a.addresses, a.why = addressesOf(j.states, e, source, resources)
	return a
}

// each passes the decisions of all states for every address that the source may have had to answer.
func (j *decider) each(a *preparedEdge, by basis, answer func([]policy.Decision)) {
	ask := func() {
		out := make([]policy.Decision, len(j.states))
		for i, d := range j.states {
			out[i] = d.decide(&a.queries[i], a.host, by)
		}
		answer(out)
	}
	if len(a.addresses) == 0 {
		ask()
		return
	}
	for _, address := range a.addresses {
		for i := range a.queries {
			// The evaluator looks up the subject of an address itself.
			a.queries[i].Source, a.queries[i].Subjects = address, nil
		}
		ask()
	}
}

// decide returns the verdicts for all candidates of the source.
func (j *decider) decide(e *audit.Edge, by basis) verdicts {
	a := j.prepare(e)
	v := verdicts{same: true}
	if len(a.addresses) == 0 {
		v.why, v.same = a.why, a.why == nil
	}
	j.each(&a, by, func(of []policy.Decision) {
		if v.of == nil {
			v.of = of
		}
		for i := range of {
			v.same = v.same && of[i].Verdict == of[0].Verdict
			if of[i].Verdict != v.of[i].Verdict {
				v.why = a.why
			}
		}
	})
	return v
}

// decideAll returns the decisions of the first state for all candidates of the source.
func (j *decider) decideAll(a *preparedEdge, by basis) (out []policy.Decision) {
	j.each(a, by, func(of []policy.Decision) { out = append(out, of[0]) })
	return out
}

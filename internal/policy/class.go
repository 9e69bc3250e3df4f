package policy

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

// action is a usable action of a resource class.
type action struct {
	name  string
	ports []v1alpha1.Port
	// requests is empty if the action covers every connection to the ports.
	requests []request
	http     []v1alpha1.HTTPMatch
}

// request is a compiled HTTP match. A nil field matches everything.
type request struct{ method, path *regexp.Regexp }

// resourceClass is a usable ResourceClass.
type resourceClass struct {
	object  *v1alpha1.ResourceClass
	stem    string // of the pattern
	actions []action
	// openings are the ports of all actions.
	openings []opening
	// opensOtherPorts is false while an action is unusable: the ports of that action would otherwise be opened as ports
	// of no action.
	opensOtherPorts bool
	// masked is the number of masked port ranges that the actions have together.
	masked int
	// hasHTTPActions reports whether an action matches requests and Cilium enforces the class.
	hasHTTPActions bool
	// places are the members in which the class is placed; nil means that no member is known to lack it.
	places map[string]struct{}
	// capacities are the policy maps into which a unit of the class has to fit.
	capacities []meshCapacity
	// others are the enforcers of the class, other than Cilium, that have a translator; sorted.
	others []v1alpha1.EnforcerName
}

// byCilium reports whether Cilium enforces the class.
func (c *resourceClass) byCilium() bool {
	return len(c.object.Spec.Enforcers) == 0 || slices.Contains(c.object.Spec.Enforcers, v1alpha1.EnforcerCilium)
}

// opening is a range of ports of an action.
type opening struct {
	first, last      uint16
	protocol, action uint8
}

// maxActions is the number of actions that a class may have, because each has one bit of a mask.
const maxActions = 32

// subjectClass is a usable SubjectClass.
type subjectClass struct {
	object *v1alpha1.SubjectClass
	stem   string // of the pattern
}

// classes finds a class by name. The patterns do not overlap, so at most one class covers an exact name.
type classes[C any] struct {
	all    []C
	byHead map[string][]int
	stem   func(C) string
}

func newClasses[C any](all []C, stem func(C) string) classes[C] {
	c := classes[C]{all: all, byHead: map[string][]int{}, stem: stem}
	for i := range all {
		head := headOf(stem(all[i]))
		c.byHead[head] = append(c.byHead[head], i)
	}
	return c
}

// of returns the class whose pattern covers the name, which may also be the stem of a wildcard.
func (c classes[C]) of(name string) (found C, ok bool) {
	for _, i := range c.byHead[headOf(name)] {
		if strings.HasPrefix(name, c.stem(c.all[i])) {
			return c.all[i], true
		}
	}
	return found, false
}

// overlapping returns the classes that have names in common with n.
func (c classes[C]) overlapping(n Name) []C {
	var out []C
	for _, i := range c.byHead[headOf(n.stem())] {
		stem := c.stem(c.all[i])
		if strings.HasPrefix(n.stem(), stem) || n.Wildcard && strings.HasPrefix(stem, n.stem()) {
			out = append(out, c.all[i])
		}
	}
	return out
}

// classPattern validates the pattern of a class of either kind. claimed contains the patterns of the classes before it.
func classPattern(kind, name string, written v1alpha1.NamePattern, claimed map[string]Name) (Name, *Problem) {
	n, err := ParseName(string(written))
	if err != nil {
		return Name{}, &Problem{Kind: kind, Name: name, Reason: v1alpha1.ReasonInvalid, Message: message.Of(err), LeftOut: true}
	}
	if !n.Wildcard || n.IsPrefix() {
		return Name{}, &Problem{Kind: kind, Name: name, Reason: v1alpha1.ReasonInvalid, LeftOut: true,
			Message: message.ProblemPatternForm(n.String())}
	}
	for _, other := range sortedKeys(claimed) {
		if n.Overlaps(claimed[other]) {
			return Name{}, &Problem{Kind: kind, Name: name, Reason: v1alpha1.ReasonOverlap, LeftOut: true,
				Message: message.ProblemPatternOverlap(n.String(), claimed[other].String(), other)}
		}
	}
	claimed[name] = n
	return n, nil
}

func resourceClasses(in []*v1alpha1.ResourceClass) (classes[*resourceClass], []Problem) {
	const kind = "ResourceClass"
	var usable []*resourceClass
	var problems []Problem
	claimed := map[string]Name{}
	for _, o := range sortedObjects(in, byAge[*v1alpha1.ResourceClass]) {
		n, problem := classPattern(kind, o.Name, o.Spec.Pattern, claimed)
		if problem != nil {
			problems = append(problems, *problem)
			continue
		}
		c := &resourceClass{object: o, stem: n.stem(), opensOtherPorts: o.Spec.OtherPorts == v1alpha1.OtherPortsAllow}
		for _, a := range o.Spec.Actions {
			usableAction, err := newAction(a)
			if err != nil {
				c.opensOtherPorts = false
				problems = append(problems, Problem{Kind: kind, Name: o.Name, Reason: v1alpha1.ReasonInvalid,
					Message: message.ProblemActionLeftOut(a.Name, message.Of(err))})
				continue
			}
			c.actions = append(c.actions, usableAction)
		}
		if n := len(c.actions); n > maxActions {
			c.actions, c.opensOtherPorts = c.actions[:maxActions], false
			problems = append(problems, Problem{Kind: kind, Name: o.Name, Reason: v1alpha1.ReasonInvalid,
				Message: message.ProblemActionsLeftOut(n-maxActions, maxActions)})
		}
		slices.SortFunc(c.actions, func(a, b action) int { return cmp.Compare(a.name, b.name) })
		for i := range c.actions {
			c.masked += maskedRanges(c.actions[i].ports)
			c.hasHTTPActions = c.hasHTTPActions ||
				len(c.actions[i].requests) > 0 && (len(o.Spec.Enforcers) == 0 || slices.Contains(o.Spec.Enforcers, v1alpha1.EnforcerCilium))
			for _, p := range c.actions[i].ports {
				c.openings = append(c.openings, opening{uint16(p.Port), uint16(lastPort(p)), protocolNumber(p.Protocol), uint8(i)})
			}
		}
		usable = append(usable, c)
	}
	return newClasses(usable, func(c *resourceClass) string { return c.stem }), problems
}

func subjectClasses(in []*v1alpha1.SubjectClass) (classes[*subjectClass], []Problem) {
	var usable []*subjectClass
	var problems []Problem
	claimed := map[string]Name{}
	for _, o := range sortedObjects(in, byAge[*v1alpha1.SubjectClass]) {
		n, problem := classPattern("SubjectClass", o.Name, o.Spec.Pattern, claimed)
		if problem != nil {
			problems = append(problems, *problem)
			continue
		}
		usable = append(usable, &subjectClass{object: o, stem: n.stem()})
	}
	return newClasses(usable, func(c *subjectClass) string { return c.stem }), problems
}

// newAction rejects an action as a whole if a part of it is unusable, because a part of an action would be a different
// action.
func newAction(a v1alpha1.ClassAction) (action, error) {
	out := action{name: a.Name, http: slices.Clone(a.HTTP)}
	for _, p := range a.Ports {
		p, err := normalPort(p)
		if err != nil {
			return action{}, err
		}
		if len(a.HTTP) > 0 && p.Protocol != v1alpha1.ProtocolTCP {
			return action{}, message.PortHTTPNeedsTCP(int(p.Port), string(p.Protocol)).Err()
		}
		out.ports = append(out.ports, p)
	}
	if len(out.ports) == 0 {
		return action{}, message.ActionNoPorts().Err()
	}
	out.ports = sortPorts(out.ports)
	for _, h := range a.HTTP {
		r, err := newRequest(h)
		if err != nil {
			return action{}, err
		}
		out.requests = append(out.requests, r)
	}
	return out, nil
}

func newRequest(h v1alpha1.HTTPMatch) (r request, err error) {
	if h.Method == "" && h.Path == "" {
		return r, message.ActionHTTPEmpty().Err()
	}
	if r.method, err = anchored(h.Method); err != nil {
		return r, message.ActionHTTPMethod(message.Of(err)).WithKind(err)
	}
	if r.path, err = anchored(h.Path); err != nil {
		return r, message.ActionHTTPPath(message.Of(err)).WithKind(err)
	}
	return r, nil
}

func anchored(expr string) (*regexp.Regexp, error) {
	if expr == "" {
		return nil, nil
	}
	// The expression is first compiled alone: text such as "a)|(b" becomes valid only when it is wrapped.
	if _, err := regexp.Compile(expr); err != nil {
		return nil, err
	}
	return regexp.Compile(`^(?:` + expr + `)$`)
}

// portActions are bit masks of the actions that a query belongs to.
type portActions struct {
	// whole are the actions that cover every connection to the port. allow and deny also contain the HTTP actions that
	// match for an allow and for a deny: an unknown method or path matches for an allow, because the connection must be
	// let through before the request can be decided, and does not match for a deny.
	whole, allow, deny uint32
	// named reports whether any action has the port.
	named bool
}

func (c *resourceClass) actionsAt(q *Query) (out portActions) {
	protocol := protocolNumber(q.Protocol)
	for i := range c.openings {
		o := &c.openings[i]
		if o.protocol != protocol || q.Port < o.first || q.Port > o.last {
			continue
		}
		out.named = true
		a := &c.actions[o.action]
		if len(a.requests) == 0 {
			out.whole |= 1 << o.action
			continue
		}
		if q.Action != "" {
			if q.Action == a.name {
				out.allow, out.deny = out.allow|1<<o.action, out.deny|1<<o.action
			}
			continue
		}
		if a.isRequest(q, true) {
			out.allow |= 1 << o.action
		}
		if a.isRequest(q, false) {
			out.deny |= 1 << o.action
		}
	}
	out.allow, out.deny = out.allow|out.whole, out.deny|out.whole
	return out
}

func (a *action) isRequest(q *Query, unknown bool) bool {
	for _, r := range a.requests {
		if fieldMatches(r.method, q.Method, unknown) && fieldMatches(r.path, q.Path, unknown) {
			return true
		}
	}
	return false
}

func fieldMatches(expr *regexp.Regexp, value string, unknown bool) bool {
	switch {
	case expr == nil:
		return true
	case value == "":
		return unknown
	default:
		return expr.MatchString(value)
	}
}

// labelValue returns the part of an exact name that the "*" of its class's pattern stands for.
func labelValue(stem, name string) (string, error) {
	value := strings.TrimPrefix(name, stem)
	if !ValidLabelValue(value) {
		return "", message.NameLabelValue(message.Quoted(name), message.Quoted(value)).WithKind(ErrInvalidName)
	}
	return value, nil
}

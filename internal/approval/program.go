package approval

import (
	"slices"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/catalog"
)

// programPrefix begins the requester of every ticket that an AccessRequest of the host cluster asked for.
const programPrefix = "system:accessrequest:"

// AccessRequester returns the requester of the tickets of an AccessRequest.
func AccessRequester(namespace, name string) string { return programPrefix + namespace + "/" + name }

// IsProgram reports whether a requester is a program and not a person.
func IsProgram(requester string) bool { return strings.HasPrefix(requester, programPrefix) }

// Program returns the actor that requests access for one application on behalf of an AccessRequest. It owns nothing, has no
// role, stands for nobody, and decides nothing. author is the id of the person who wrote the request, if it is known.
func Program(requester, application, author string) Actor {
	return Actor{ID: requester, application: application, author: author}
}

// asksFor reports whether an actor may request access for an application: a person who owns it, or the program of its own
// application.
func (a Actor) asksFor(c *catalog.Catalog, app catalog.Entity) bool {
	if IsProgram(a.ID) {
		return a.application != "" && a.application == app.ID
	}
	return c.Owns(a.ID, app)
}

// byProgram reports whether a program requests access.
func (a about) byProgram() bool { return IsProgram(a.requester) }

// sponsors replaces the requester's leader by the owners of the application, because a program has no leader.
func (a about) sponsors(from []v1alpha1.Approver) []v1alpha1.Approver {
	if !a.byProgram() {
		return from
	}
	out := slices.Clone(from)
	for i := range out {
		if out[i] == FromLeader {
			out[i] = FromApplicationOwner
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// applicationDecides reports whether only owners of the application decide a step with these approvers.
func applicationDecides(from []v1alpha1.Approver) bool {
	return len(from) > 0 && !slices.ContainsFunc(from, func(f v1alpha1.Approver) bool { return f != FromApplicationOwner })
}

// withApplicationStep adds the decision of the application's owners before all other steps, unless a step asks for it. A
// request of a program always needs it, because no owner of the application made the request.
func (a about) withApplicationStep(steps []wanted, asked bool) ([]wanted, error) {
	if !a.byProgram() || asked {
		return steps, nil
	}
	w, err := a.builtinStep(StepApplication, nil)
	if err != nil {
		return nil, err
	}
	for slices.ContainsFunc(steps, func(s wanted) bool { return s.step.Name == w.step.Name }) {
		w.step.Name += "-always"
	}
	return append([]wanted{w}, steps...), nil
}

// AccessRequestOf returns the namespace and the name of the AccessRequest that a requester is; false if it is none.
func AccessRequestOf(requester string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(requester, programPrefix)
	if !ok {
		return "", "", false
	}
	namespace, name, ok = strings.Cut(rest, "/")
	return namespace, name, ok && namespace != "" && name != ""
}

package approval

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/catalog/workloads"
	"github.com/acp-io/acp/internal/message"
)

const (
	// MaxTicketAddresses bounds the addresses of one ticket, as the bound for owners counts them: 64 networks of /24.
	MaxTicketAddresses = 1 << 14
	// maxReached bounds the resources whose owners decide about one registration.
	maxReached = 200
	// maxOwnerSteps bounds the owner steps of one registration.
	maxOwnerSteps = 20
)

// boundRegistrations checks the size of a request for registrations before any of them is evaluated.
func boundRegistrations(r Request) error {
	addresses := 0
	for i, it := range r.Items {
		if it.Workload == nil {
			continue
		}
		if n := len(it.Workload.Addresses); n > workloads.MaxAddresses {
			return invalid(fmt.Sprintf("items[%d].workload.addresses", i), message.RequestWorkloadAddresses(workloads.MaxAddresses, n))
		}
		addresses += workloads.Workload{Addresses: it.Workload.Addresses}.AddressCount()
	}
	if addresses > MaxTicketAddresses {
		return invalid("items", message.RequestTicketAddresses(MaxTicketAddresses, addresses))
	}
	return nil
}

// registration plans to register a client outside of the fleet. Only owners of its application may request that, also for
// what they may register without approval.
func (x *planner) registration(r RequestItem, path string) (Item, error) {
	app, ok := x.c.Application(r.Application)
	switch {
	case !ok:
		return Item{}, invalid(path+"application", message.RequestUnknownApplication(r.Application))
	case !x.c.Owns(x.actor.ID, app):
		return Item{}, fail(CodeForbidden, message.RequestWorkloadNotOwner(app.Title, ownerNames(x.c, app)))
	case r.Workload == nil:
		return Item{}, invalid(path+"workload", message.RequestWorkloadMissing())
	case x.Workloads == nil:
		return Item{}, fail(CodeUnavailable, message.RequestWorkloadNotHere())
	}
	w, err := x.Workloads.Propose(
		x.actor.ID,
		workloads.Workload{ID: r.Workload.ID, Subject: app.Name, Addresses: r.Workload.Addresses, Description: r.Workload.Description},
	)
	switch {
	case errors.Is(err, workloads.ErrUnknown), CodeOf(err) == CodeUnavailable:
		return Item{}, HostUnknown()
	case err != nil:
		return Item{}, invalid(path+"workload", message.Sentence(message.Of(err)))
	}
	had, exists, err := x.Host.Object(ObjectExternalWorkload, w.Name())
	if err != nil {
		return Item{}, err
	}
	c := &Change{Kind: ObjectExternalWorkload, Name: w.Name(), Verb: VerbCreate, Description: w.Description,
		After: canonical(v1alpha1.ExternalWorkloadSpec{Subject: v1alpha1.ResourceName(w.Subject), Addresses: w.Addresses})}
	if exists {
		c.Verb, c.Base, c.Before = VerbUpdate, had.ResourceVersion, had.Spec
	}
	return Item{Application: app.ID, ApplicationName: app.Name, Change: c}, nil
}

// Workload returns the client that a change registers; false if the change is about something else.
func (c *Change) Workload() (workloads.Workload, bool) {
	var spec v1alpha1.ExternalWorkloadSpec
	if c == nil || c.Kind != ObjectExternalWorkload || json.Unmarshal(c.After, &spec) != nil {
		return workloads.Workload{}, false
	}
	return workloads.Workload{
		ID:          strings.TrimPrefix(c.Name, workloads.Portal+"."),
		Source:      workloads.Portal,
		Subject:     string(spec.Subject),
		Addresses:   spec.Addresses,
		Description: c.Description,
	}, true
}

// registrable checks before a write that the approved client can still be registered: weeks may have passed, and another
// application may have the addresses by now.
func (s *Service) registrable(requester string, it Item) error {
	w, ok := it.Change.Workload()
	if !ok || s.Workloads == nil {
		return &RefusedError{Message: message.WriteRefusedWorkloadUnreadable(), Final: true}
	}
	now, err := s.Workloads.Propose(requester, w)
	switch {
	case errors.Is(err, workloads.ErrUnknown), CodeOf(err) == CodeUnavailable:
		return HostUnknown()
	case err != nil:
		return &RefusedError{Message: message.Of(err)}
	case now.Subject != w.Subject || !slices.Equal(now.Addresses, w.Addresses):
		return &RefusedError{Message: message.WriteRefusedWorkloadNotNormal(), Final: true}
	}
	return nil
}

// workloadChain returns the built-in chain of a registration: an owner of each reached resource, and the security team if
// one of them is highly sensitive.
func (a about) workloadChain() ([]Step, error) {
	steps, err := a.ownerSteps(nil, Step{Name: StepOwner, Quorum: 1}, false, "")
	if err != nil {
		return nil, err
	}
	if steps, err = a.securityIfSensitive(steps, message.StepNoteReachesHighlySensitive()); err != nil {
		return nil, err
	}
	chain, ok := choose(steps, false)
	if !ok {
		return nil, fail(CodeNoApprover, message.StepSameOwnerReached(a.application.Title, catalog.GroupSecurity))
	}
	return chain, nil
}

// securityIfSensitive appends the decision of the security team if one of the reached resources is highly sensitive, unless it decides already.
func (a about) securityIfSensitive(steps []wanted, note message.Message) ([]wanted, error) {
	high := slices.ContainsFunc(a.reached.Resources, func(name string) bool {
		e, ok := a.c.ByName(name)
		return ok && e.Sensitivity == catalog.SensitivityHigh
	})
	if !high || slices.ContainsFunc(steps, func(w wanted) bool { return slices.Equal(w.alternatives[0].from, []v1alpha1.Approver{fromSecurity}) }) {
		return steps, nil
	}
	w, err := a.builtinStep(StepSecurity, nil)
	if err != nil {
		return nil, err
	}
	w.note = note
	return append(steps, w), nil
}

// ownerStepOf returns a policy's step for the owners of a resource as a template for one step for each resource. It is never
// approved by a condition, and a timeout does not give the decision to other people.
func ownerStepOf(s v1alpha1.ApprovalStep) Step {
	out := Step{Name: s.Name, Quorum: 1}
	if s.Quorum == "Count" && s.Count != nil {
		out.Quorum = int(*s.Count)
	}
	if t := s.Timeout; t != nil && t.After.Duration > 0 {
		out.Timeout, out.OnTimeout = max(t.After.Duration, leastTimeout), t.Action
		if out.OnTimeout == v1alpha1.TimeoutEscalate {
			out.OnTimeout = v1alpha1.TimeoutRemind
		}
		out.Remind = remindEvery(t)
	}
	out.limit(s)
	return out
}

// approverGroup contains resources for which the same people can approve.
type approverGroup struct {
	people    []string
	resources []string
}

// ownerSteps appends the steps by which an owner of each reached resource agrees, made by the template of a policy or, with
// an empty name of a policy, of the built-in chain. An owner of several resources decides once. The security team
// decides for resources whose owners cannot, for wildcards of resources, and if no resource is reached yet.
func (a about) ownerSteps(steps []wanted, template Step, all bool, policy string) ([]wanted, error) {
	if n := len(a.reached.Resources); n > maxReached && a.scope == nil {
		return nil, fail(CodeNoApprover, message.StepTooManyReached(a.application.Title, n, maxReached))
	}
	groups, ownerless := a.owners(all || template.Quorum > 1)
	var scopeNote message.Message
	if a.scope != nil {
		var many bool
		if scopeNote, many = a.scopeOwnerNote(groups, ownerless); many {
			groups, ownerless = nil, nil
		}
	}
	if len(groups) > maxOwnerSteps {
		return nil, fail(CodeNoApprover, message.StepTooManyOwnersReached(a.application.Title, maxOwnerSteps))
	}
	for _, g := range groups {
		from := make([]v1alpha1.Approver, len(g.resources))
		for i, r := range g.resources {
			from[i] = v1alpha1.Approver(FromOwnerOf + ":" + r)
		}
		w := wanted{step: template, all: all, note: message.StepNoteOwnerOf(a.titles(g.resources)), alternatives: []alternative{{people: g.people, from: from}}}
		if len(groups) > 1 {
			w.step.Name = template.Name + ":" + a.title(g.resources[0])
		}
		if security := a.people([]v1alpha1.Approver{fromSecurity}, 0); len(security) > 0 && !slices.Equal(security, g.people) {
			w.alternatives = append(w.alternatives, alternative{
				people:  security,
				from:    append(from[:len(from):len(from)], fromSecurity),
				note:    message.StepNoteOwnerOfNeededElsewhere(a.titles(g.resources)),
				standIn: true,
			})
		}
		if w.step.Quorum > len(g.people) && len(w.alternatives) == 1 {
			return nil, cannotFill(policy, w.step.Name, needsPeople(w.step.Quorum, len(g.people)))
		}
		steps = append(steps, w)
	}
	var note message.Message
	switch {
	case !scopeNote.IsZero():
		note = scopeNote
	case a.scope != nil:
		return steps, nil
	case len(ownerless) > 0:
		note = message.StepNoteNoOtherOwner(a.titles(ownerless))
	case len(a.reached.Wildcards) > 0:
		note = message.StepNoteReachesAll(a.reached.Wildcards[0])
	case len(a.reached.Resources) == 0:
		note = message.StepNoteNoAccessYet()
	default:
		return steps, nil
	}
	w, err := a.builtinStep(StepSecurity, nil)
	if err != nil {
		return nil, err
	}
	w.step.Name, w.note = freeName(steps, StepSecurity), note
	return append(steps, w), nil
}

// owners groups the reached resources by the people who can approve for them; the second list has the resources for which
// nobody can. One approval counts for every resource of a group. If apart is set, because several people have to agree for
// each resource, only resources with exactly the same owners are in one group.
func (a about) owners(apart bool) (groups []approverGroup, ownerless []string) {
	type owned struct {
		name   string
		people []string
	}
	var list []owned
	for _, name := range a.reached.Resources {
		people := a.people([]v1alpha1.Approver{v1alpha1.Approver(FromOwnerOf + ":" + name)}, 0)
		if len(people) == 0 {
			ownerless = append(ownerless, name)
			continue
		}
		list = append(list, owned{name, people})
	}
	slices.SortStableFunc(list, func(x, y owned) int { return cmp.Compare(len(x.people), len(y.people)) })
	for _, o := range list {
		k := slices.IndexFunc(groups, func(g approverGroup) bool {
			if apart {
				return slices.Equal(g.people, o.people)
			}
			return !slices.ContainsFunc(g.people, func(p string) bool { return !slices.Contains(o.people, p) })
		})
		if k < 0 {
			groups = append(groups, approverGroup{o.people, []string{o.name}})
			continue
		}
		groups[k].resources = append(groups[k].resources, o.name)
	}
	for i := range groups {
		slices.Sort(groups[i].resources)
	}
	slices.SortFunc(groups, func(x, y approverGroup) int { return strings.Compare(x.resources[0], y.resources[0]) })
	return groups, ownerless
}

func (a about) title(resource string) string {
	if e, ok := a.c.ByName(resource); ok {
		return cmp.Or(e.ID, resource)
	}
	return resource
}

// titles returns the titles of the first resources, followed by the number of the others.
func (a about) titles(resources []string) message.Message {
	const most = 3
	names := make([]string, 0, most)
	for _, r := range resources[:min(most, len(resources))] {
		names = append(names, a.title(r))
	}
	if n := len(resources) - most; n > 0 {
		return message.NamesListAndMore(names, n)
	}
	return message.NamesList(names)
}

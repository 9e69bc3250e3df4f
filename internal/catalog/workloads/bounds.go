package workloads

import (
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/gaissmai/bart"

	"github.com/acp-io/acp/internal/message"
)

const (
	// DefaultAddresses is the number of addresses that owners may register for one application, unless the
	// configuration says otherwise.
	DefaultAddresses = 1024
	// MaxAddressesOfMachines bounds the addresses of one application for every actor, so that a platform's mistake does
	// not open resources to a whole network.
	MaxAddressesOfMachines = 1 << 17
	// MaxGroupBytes bounds the addresses of one application as texts, for every actor. They are one object on the host and in each member, and an API
	// server takes 1.5 MB; the rest is reserved for metadata and status. About 62,000 of the longest IPv4 addresses fit, 28,000 of the longest
	// IPv6 addresses, and more ranges than MaxAddressesOfMachines admits.
	MaxGroupBytes = 1_300_000
	// writtenLifetime is how long a write is counted that the watch has not returned.
	writtenLifetime = time.Minute
)

// bounds serialises registrations, and holds those that the watch has not returned yet: otherwise concurrent calls
// would all be counted against the same earlier state.
type bounds struct {
	mu      sync.Mutex
	written map[string]written // by object name
}

type written struct {
	Workload
	at time.Time
}

// usages is what the workloads of each application would use after a call.
type usages struct {
	r     *Registrar
	actor Actor
	bySub map[string]usage
	has   map[string]Workload // by object name, where it differs from the state
}

// usages returns what the registered workloads use now.
func (r *Registrar) usages(a Actor) *usages {
	s := &usages{r: r, actor: a, bySub: map[string]usage{}, has: map[string]Workload{}}
	for name, w := range r.bounds.written {
		if x, known := r.State.get(name); known && x.equal(w.Workload) || r.Now().Sub(w.at) > writtenLifetime {
			delete(r.bounds.written, name)
			continue
		}
		s.replace(w.Workload)
	}
	return s
}

// replace replaces the content of a workload's object, and returns the earlier content.
func (s *usages) replace(w Workload) Workload {
	before, changed := s.has[w.Name()]
	if !changed {
		x, _ := s.r.State.get(w.Name())
		before = x.Workload
	}
	s.bySub[before.Subject] = s.of(before.Subject).minus(before.usage())
	s.bySub[w.Subject] = s.of(w.Subject).plus(w.usage())
	s.has[w.Name()] = w
	return before
}

func (s *usages) of(subject string) usage {
	if _, known := s.bySub[subject]; !known {
		s.bySub[subject] = s.r.State.usage(subject)
	}
	return s.bySub[subject]
}

// ApprovalError is why an owner may not register a workload without approval. A ticket requests the approval; see Propose.
type ApprovalError struct{ Message message.Message }

func (e *ApprovalError) Error() string { return e.Message.Text }

// Unwrap returns the message, so that message.Of finds it.
func (e *ApprovalError) Unwrap() error { return e.Message.Err() }

// add adds a workload, or returns why the actor may not register it. An owner of an application must not let in any
// number of addresses by grants to which others agreed: beyond the bound, and for address ranges while access is
// granted, the owners of the resources approve them, or the security team registers them, by a full sync or by a
// platform with a token of the security team. Beyond the bound this includes addresses that replace others, because an
// approval is for certain addresses and not for a number of them. The bounds' refusals are *ApprovalErrors.
func (s *usages) add(w Workload) error {
	was := s.of(w.Subject)
	before := s.replace(w)
	now := s.of(w.Subject)
	err := s.refuse(w, before, was, now)
	if err != nil {
		if before.ID == "" {
			before = Workload{ID: w.ID, Source: w.Source}
		}
		s.replace(before)
	}
	return err
}

func (s *usages) refuse(w, before Workload, was, now usage) error {
	if err := tooMany(was, now); err != nil {
		return err
	}
	if s.actor.Machine {
		return nil
	}
	if n, most := now.addresses, s.r.MostAddresses; n > most && (n > was.addresses || s.addsTo(w, before)) {
		return &ApprovalError{message.WorkloadTooManyUnapproved(n, most)}
	}
	ranges := w.ranges(before)
	if len(ranges) == 0 || s.r.Granted == nil {
		return nil
	}
	granted, err := s.r.Granted(w.Subject)
	if err != nil {
		return err
	}
	if granted {
		return &ApprovalError{message.WorkloadRangeUnapproved(ranges[0].String())}
	}
	return nil
}

// addsTo reports whether a workload that replaces another one gives its application an address that no registered
// workload of the application has. A prefix counts as new unless one registered prefix contains all of it.
func (s *usages) addsTo(w, before Workload) bool {
	var had []netip.Prefix
	if before.Subject == w.Subject {
		had = before.prefixes() // The watch may not have returned it yet.
	}
	return slices.ContainsFunc(w.prefixes(), func(p netip.Prefix) bool {
		return !slices.Contains(had, p) && !s.r.State.holds(w.Subject, p)
	})
}

// tooMany returns why no actor may change what the workloads of an application use.
func tooMany(was, now usage) error {
	switch {
	case now.addresses > was.addresses && now.addresses > MaxAddressesOfMachines:
		return message.WorkloadTooManyAddresses(now.addresses, MaxAddressesOfMachines).Err()
	case now.bytes > was.bytes && now.bytes > MaxGroupBytes:
		return message.WorkloadGroupTooLarge(now.bytes, MaxGroupBytes).Err()
	}
	return nil
}

// Propose returns a workload in its normal form that a person requests to register with the approval of others. All rules for
// registrations by people hold but the bounds that approval lifts; the error says which one is broken. Nothing is written.
// It is called again before an approved workload is written, because the addresses may belong to another subject by then.
func (r *Registrar) Propose(person string, w Workload) (Workload, error) {
	if err := r.known(); err != nil {
		return w, err
	}
	a := Actor{ID: person}
	w.Source = Portal
	w, err := r.check(a, w, r.Covered)
	if err != nil {
		return w, err
	}
	if err := r.contested(a, w, nil, &bart.Table[Workload]{}); err != nil {
		return w, err
	}
	r.bounds.mu.Lock()
	defer r.bounds.mu.Unlock()
	sums := r.usages(a)
	was := sums.of(w.Subject)
	sums.replace(w)
	return w, tooMany(was, sums.of(w.Subject))
}

// AddressCount returns the number of addresses of a workload in its normal form, as the bounds count them: a range of IPv6 counts by the
// bits that it leaves open, like one of IPv4.
func (w Workload) AddressCount() int { return w.count() }

// NeedsApproval reports whether a refusal is one that an approval lifts.
func NeedsApproval(err error) bool {
	var e *ApprovalError
	return errors.As(err, &e)
}

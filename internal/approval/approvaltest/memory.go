package approvaltest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/message"
)

// Memory is a Store that keeps everything in memory, for tests that need many. The zero value is empty.
type Memory struct {
	mu          sync.Mutex
	tickets     []*approval.Ticket // by number - 1
	delegations []approval.Delegation
	jobs        []*job
	claims      map[approval.Claim]int64
	jobID       int64
	Lines       []ledger.Entry
}

type job struct {
	approval.Job
	runAfter time.Time
	parked   bool
}

func notFoundError() error { return approval.NotFound() }

// Create implements approval.TicketStore.
func (m *Memory) Create(_ context.Context, t *approval.Ticket) (*approval.Ticket, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, x := range m.tickets {
		if t.IdempotencyKey != "" && x.Requester == t.Requester && x.IdempotencyKey == t.IdempotencyKey {
			return x.Clone(), nil
		}
	}
	if n := m.claimedBy(t.Claims()); n != 0 {
		return nil, &approval.Error{Code: approval.CodeDuplicate, Ticket: n, Message: message.RequestDuplicate()}
	}
	t.Numbered(int64(len(m.tickets)) + 1)
	m.tickets = append(m.tickets, nil)
	m.save(t)
	return t.Clone(), nil
}

// save stores a ticket with what goes with it.
func (m *Memory) save(t *approval.Ticket) {
	m.Lines = append(m.Lines, approval.LedgerEntries(t)...)
	for _, j := range t.Jobs() {
		m.jobID++
		m.jobs = append(m.jobs, &job{Job: approval.Job{ID: m.jobID, Ticket: t.Number, Item: j.Item, Kind: j.Kind, Key: t.JobKey(j.Item)}})
	}
	for c, n := range m.claims {
		if n == t.Number {
			delete(m.claims, c)
		}
	}
	if m.claims == nil {
		m.claims = map[approval.Claim]int64{}
	}
	for _, c := range t.Claims() {
		if _, taken := m.claims[c]; !taken {
			m.claims[c] = t.Number
		}
	}
	t.Stored()
	m.tickets[t.Number-1] = t.Clone()
}

func (m *Memory) get(number int64) (*approval.Ticket, error) {
	if number < 1 || number > int64(len(m.tickets)) {
		return nil, notFoundError()
	}
	return m.tickets[number-1].Clone(), nil
}

// Get implements approval.TicketStore.
func (m *Memory) Get(_ context.Context, number int64) (*approval.Ticket, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.get(number)
}

func (m *Memory) update(number int64, change func(*approval.Ticket) error) (*approval.Ticket, error) {
	t, err := m.get(number)
	if err != nil {
		return nil, err
	}
	if err := change(t); err != nil {
		return nil, err
	}
	if t.Dirty() {
		m.save(t)
	}
	return t, nil
}

// Update implements approval.TicketStore.
func (m *Memory) Update(_ context.Context, number int64, change func(*approval.Ticket) error) (*approval.Ticket, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.update(number, change)
}

// List implements approval.TicketStore.
func (m *Memory) List(_ context.Context, f approval.Filter) ([]*approval.Ticket, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []*approval.Ticket
	for i := len(m.tickets) - 1; i >= 0; i-- {
		if t := m.tickets[i]; f.Matches(t) && behind(t, f) {
			c := t.Clone()
			if f.OmitEvents {
				c.Events = nil
			}
			if f.OmitComments {
				c.Events = slices.DeleteFunc(c.Events, func(e approval.Event) bool { return e.Kind == approval.EventComment })
			}
			out = append(out, c)
		}
	}
	if f.ByUpdate {
		slices.SortStableFunc(out, func(a, b *approval.Ticket) int { return b.UpdatedAt.Compare(a.UpdatedAt) })
	}
	if f.Oldest || f.ByEnd {
		slices.Reverse(out)
	}
	if f.ByEnd {
		slices.SortStableFunc(out, func(a, b *approval.Ticket) int { return f.FirstEnd(a).Compare(f.FirstEnd(b)) })
	}
	if f.Limit > 0 && len(out) > f.Limit {
		out = out[:f.Limit]
	}
	return out, nil
}

func behind(t *approval.Ticket, f approval.Filter) bool {
	after := f.After
	if after.Number == 0 {
		return true
	}
	order := cmp.Compare(t.Number, after.Number)
	if f.ByUpdate && !t.UpdatedAt.Equal(after.UpdatedAt) {
		order = t.UpdatedAt.Compare(after.UpdatedAt)
	}
	return order < 0 != f.Oldest && order != 0
}

// Count implements approval.TicketStore.
func (m *Memory) Count(_ context.Context, filters ...approval.Filter) ([]int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]int, len(filters))
	for i, f := range filters {
		for _, t := range m.tickets {
			if out[i] < approval.CountLimit && f.Matches(t) {
				out[i]++
			}
		}
	}
	return out, nil
}

func (m *Memory) claimedBy(claims []approval.Claim) int64 {
	for _, c := range claims {
		if n := m.claims[c]; n != 0 {
			return n
		}
	}
	return 0
}

// ClaimedBy implements approval.TicketStore.
func (m *Memory) ClaimedBy(_ context.Context, claims []approval.Claim) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.claimedBy(claims), nil
}

// Claimants implements approval.TicketStore.
func (m *Memory) Claimants(_ context.Context, claims []approval.Claim) (map[approval.Claim]int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[approval.Claim]int64{}
	for _, c := range claims {
		if n := m.claims[c]; n != 0 {
			out[c] = n
		}
	}
	return out, nil
}

// ChangedSince implements approval.TicketStore.
func (m *Memory) ChangedSince(_ context.Context, since time.Time) ([]approval.TicketChange, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []approval.TicketChange
	for _, t := range m.tickets {
		if !t.UpdatedAt.Before(since) {
			out = append(out, approval.TicketChange{Number: t.Number, State: t.State(), Version: t.Version, UpdatedAt: t.UpdatedAt})
		}
	}
	return out, nil
}

// Delegate implements approval.DelegationStore.
func (m *Memory) Delegate(_ context.Context, d approval.Delegation) (approval.Delegation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var open []approval.Delegation
	for _, o := range m.delegations {
		if (o.From == d.From || o.To == d.To) && o.Open(d.CreatedAt) {
			open = append(open, o)
		}
	}
	if err := approval.CheckDelegation(d, open); err != nil {
		return approval.Delegation{}, err
	}
	d.ID = int64(len(m.delegations)) + 1
	m.delegations = append(m.delegations, d)
	m.Lines = append(m.Lines, d.LedgerEntry())
	return d, nil
}

// EndDelegation implements approval.DelegationStore.
func (m *Memory) EndDelegation(_ context.Context, id int64, change func(*approval.Delegation) error) (approval.Delegation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if id < 1 || id > int64(len(m.delegations)) {
		return approval.Delegation{}, notFoundError()
	}
	d := m.delegations[id-1]
	if err := change(&d); err != nil {
		return approval.Delegation{}, err
	}
	m.delegations[id-1] = d
	m.Lines = append(m.Lines, d.LedgerEntry())
	return d, nil
}

// Delegations implements approval.DelegationStore.
func (m *Memory) Delegations(_ context.Context, f approval.DelegationFilter) ([]approval.Delegation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []approval.Delegation
	for i := len(m.delegations) - 1; i >= 0; i-- {
		d := m.delegations[i]
		if (f.From == "" || d.From == f.From) && (f.To == "" || d.To == f.To) && (f.ActiveAt.IsZero() || d.Active(f.ActiveAt)) &&
			(f.Before == 0 || d.ID < f.Before) {
			out = append(out, d)
		}
	}
	if f.Limit > 0 && len(out) > f.Limit {
		out = out[:f.Limit]
	}
	return out, nil
}

// Lease implements approval.Outbox.
func (m *Memory) Lease(_ context.Context, worker string, now time.Time, ttl time.Duration) (*approval.Job, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	busy := map[string]bool{}
	for _, j := range m.jobs {
		wait := approval.LongestRetry
		if j.parked {
			wait = approval.LongestParked
		}
		if !busy[j.Key] && !ahead(j.runAfter, now, wait) && !ahead(j.LeaseUntil, now, ttl) {
			j.Worker, j.LeaseUntil, j.Attempts = worker, now.Add(ttl), j.Attempts+1
			return new(j.Job), nil
		}
		if !j.parked {
			busy[j.Key] = true
		}
	}
	return nil, approval.ErrNoJob
}

// ahead reports whether a time is still to come, and was given by a clock that was right.
func ahead(t, now time.Time, most time.Duration) bool {
	return t.After(now) && !t.After(now.Add(most+approval.ClockTolerance))
}

// held finds a job that the worker still leases.
func (m *Memory) held(j *approval.Job) (int, error) {
	i := slices.IndexFunc(m.jobs, func(x *job) bool { return x.ID == j.ID && x.Worker == j.Worker && x.Attempts == j.Attempts })
	if i < 0 {
		return 0, approval.ErrLeaseLost
	}
	return i, nil
}

// Finish implements approval.Outbox.
func (m *Memory) Finish(_ context.Context, j *approval.Job, change func(*approval.Ticket) error) (*approval.Ticket, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, err := m.held(j)
	if err != nil {
		return nil, err
	}
	t, err := m.update(j.Ticket, change)
	if err == nil {
		m.jobs = slices.Delete(m.jobs, i, i+1)
	}
	return t, err
}

// Postpone implements approval.Outbox.
func (m *Memory) Postpone(_ context.Context, j *approval.Job, until time.Time, parked bool, change func(*approval.Ticket) error) (*approval.Ticket, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, err := m.held(j)
	if err != nil {
		return nil, err
	}
	t, err := m.update(j.Ticket, change)
	if err == nil {
		x := m.jobs[i]
		x.runAfter, x.parked, x.Worker, x.LeaseUntil = until, parked, "", time.Time{}
	}
	return t, err
}

// Ping implements approval.TicketStore.
func (m *Memory) Ping(context.Context) error { return nil }

// Jobs that are open, as "<kind> <sid>".
func (m *Memory) Jobs() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []string
	for _, j := range m.jobs {
		out = append(out, strings.Join([]string{string(j.Kind), approval.SID(j.Ticket, j.Item)}, " "))
	}
	return out
}

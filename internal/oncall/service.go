package oncall

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
)

// pollEvery is the interval at which the configuration file is compared with what was read.
const pollEvery = 5 * time.Second

// sourceTimeout bounds the reading of one source with all its requests, so that a slow one does not delay the others and the file.
const sourceTimeout = 20 * time.Second

// concurrent bounds the sources that are read at the same time.
const concurrent = 4

// tiers are the e-mail addresses of those on call by tier. The addresses are in lower case.
type tiers map[int][]string

func (t tiers) add(tier int, address string) error {
	if tier < 1 || tier > MaxTiers {
		return nil // no policy can name it
	}
	if len(t[tier]) >= maxPeople {
		return fmt.Errorf("more than %d people are on call in tier %d", maxPeople, tier)
	}
	t[tier] = append(t[tier], normal(address))
	return nil
}

func normal(address string) string { return strings.ToLower(strings.TrimSpace(address)) }

func orDefault(s, otherwise string) string { return cmp.Or(s, otherwise) }

// remote is a source that is asked over the network.
type remote interface {
	read(ctx context.Context, client *http.Client, now time.Time) (tiers, error)
}

func (s Schedule) remote() remote {
	switch {
	case s.PagerDuty != nil:
		return s.PagerDuty
	case s.Opsgenie != nil:
		return s.Opsgenie
	}
	return nil
}

// Config is the configuration of a Service. All fields are required.
type Config struct {
	File    string
	Catalog func() *catalog.Catalog
	Now     func() time.Time
	Log     *slog.Logger
}

// answer is the last answer of a remote source.
type answer struct {
	tiers tiers
	at    time.Time
}

// Service answers who is on call. It is safe for concurrent use.
type Service struct {
	Config
	client *http.Client

	mu       sync.Mutex
	file     *File
	text     []byte // of the file
	answers  map[string]answer
	failing  map[string]string // the last error by schedule, so that it is logged once
	next     time.Time         // when the remote sources are read again
	indexed  *catalog.Catalog
	byMail   map[string]string // the id of a person by address; empty if several people have it
	badFile  string            // the error of the file's last reading
	fileRead time.Time
}

// New reads the configuration file and returns a Service. Until Run has read them, remote sources are unknown.
func New(c Config) (*Service, error) {
	file, text, err := Read(c.File)
	if err != nil {
		return nil, err
	}
	return &Service{Config: c, client: newClient(), file: file, text: text, fileRead: c.Now(), answers: map[string]answer{}, failing: map[string]string{}}, nil
}

// Run keeps the schedules current until the context ends.
func (s *Service) Run(ctx context.Context) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		s.Refresh(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Refresh reads the file if it has changed, and the remote sources if they are due. A file that cannot be used is reported, and
// the one before stays in use.
func (s *Service) Refresh(ctx context.Context) {
	s.reload()
	now := s.Now()
	s.mu.Lock()
	due := !now.Before(s.next)
	if due {
		s.next = now.Add(s.file.Every.Duration)
	}
	schedules := s.file.Schedules
	s.mu.Unlock()
	if !due {
		return
	}
	var wait sync.WaitGroup
	free := make(chan struct{}, concurrent)
	for name, schedule := range schedules {
		source := schedule.remote()
		if source == nil {
			continue
		}
		free <- struct{}{}
		wait.Go(func() {
			defer func() { <-free }()
			asked := s.Now()
			ctx, cancel := context.WithTimeout(ctx, sourceTimeout)
			defer cancel()
			got, err := source.read(ctx, s.client, asked)
			s.store(name, source, got, asked, err)
		})
	}
	wait.Wait()
}

// reload reads the file again if its content has changed.
func (s *Service) reload() {
	file, text, err := Read(s.File)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		if s.badFile != err.Error() {
			s.badFile = err.Error()
			s.Log.Error("the file with the on-call schedules cannot be used; the schedules of before stay in use", "error", err)
		}
		return
	}
	s.badFile = ""
	if bytes.Equal(text, s.text) {
		return
	}
	s.Log.Info("the file with the on-call schedules was read again", "schedules", len(file.Schedules))
	before := s.file.Schedules
	s.file, s.text, s.fileRead, s.next = file, text, s.Now(), time.Time{}
	// The answers about schedules that have another source now are dropped. The others stay in use, because without an answer the
	// fallback of a policy may let every approver decide.
	changed := func(name string) bool { return !sameSource(before[name], file.Schedules[name]) }
	maps.DeleteFunc(s.answers, func(name string, _ answer) bool { return changed(name) })
	maps.DeleteFunc(s.failing, func(name, _ string) bool { return changed(name) })
}

// sameSource reports whether two schedules are read from the same place.
func sameSource(a, b Schedule) bool { return reflect.DeepEqual(a.remote(), b.remote()) }

// store keeps the answer of a source, unless the file names another source meanwhile.
func (s *Service) store(name string, source remote, got tiers, at time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !reflect.DeepEqual(s.file.Schedules[name].remote(), source) {
		return
	}
	if err != nil {
		if s.failing[name] != err.Error() {
			s.failing[name] = err.Error()
			s.Log.Warn("who is on call could not be read", "schedule", name, "error", err)
		}
		return
	}
	if _, failed := s.failing[name]; failed {
		delete(s.failing, name)
		s.Log.Info("who is on call can be read again", "schedule", name)
	}
	s.answers[name] = answer{tiers: got, at: at}
}

// OnCall returns who is on call now. It implements approval.OnCall and waits for nothing.
func (s *Service) OnCall(schedule string, tier int) approval.Duty {
	now, company := s.Now(), s.Catalog()
	s.mu.Lock()
	defer s.mu.Unlock()
	x, ok := s.file.Schedules[schedule]
	if !ok {
		return approval.Duty{Missing: true, Reason: message.OnCallNotConfigured(schedule)}
	}
	var addresses []string
	at := s.fileRead
	if x.remote() == nil {
		if tier < 1 || tier > len(x.Tiers) {
			return approval.Duty{Missing: true, Reason: message.OnCallNoTier(schedule, tier)}
		}
		addresses = x.Tiers[tier-1].now(now)
	} else {
		a, ok := s.answers[schedule]
		if !ok || now.Sub(a.at) > s.file.MaxAge.Duration || now.Before(a.at) {
			return approval.Duty{Reason: message.OnCallNoAnswer(schedule)}
		}
		if addresses, ok = a.tiers[tier]; !ok {
			return approval.Duty{Reason: message.OnCallNoTier(schedule, tier)}
		}
		at = a.at
	}
	out := approval.Duty{Known: true, At: at}
	s.index(company)
	for _, address := range addresses {
		if person := s.byMail[normal(address)]; person != "" {
			out.People = append(out.People, person)
		} else {
			out.Unlisted++
		}
	}
	slices.Sort(out.People)
	out.People = slices.Compact(out.People)
	return out
}

// index prepares the addresses of a catalog. An address that several people have identifies nobody.
func (s *Service) index(c *catalog.Catalog) {
	if s.indexed == c {
		return
	}
	s.indexed, s.byMail = c, map[string]string{}
	for _, p := range c.People() {
		address := normal(p.Of.Email)
		if address == "" {
			continue
		}
		if _, twice := s.byMail[address]; twice {
			s.byMail[address] = ""
			continue
		}
		s.byMail[address] = p.Of.ID
	}
}

package memberapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// User is a user of a member.
type User struct {
	Name string
	// Writes permits changes; all users may read.
	Writes bool
}

// Config configures members.
type Config struct {
	// Certificate is the serving certificate of all members.
	Certificate tls.Certificate
	// Users are the users of all members by their tokens.
	Users map[string]User
	// Changed, if set, is called after each change of an object through the API, before the answer.
	Changed func(Change)
}

// Change is a change of an object.
type Change struct {
	// Member is the index of the member.
	Member   int
	Resource Resource
	// Key is the name of the object, after its namespace and a slash if it has one.
	Key string
	// Object is the encoded object, or nil if it was deleted.
	Object func() []byte
}

// Members are the members of one process.
type Members struct {
	config Config
	merger *merger
	all    []*Member
}

// Member is the API server of one member.
type Member struct {
	of     *Members
	index  int
	id     uint64
	stores map[Resource]*store
	// version is the last resource version, and created the number of objects that were created.
	version, created atomic.Uint64
	faults           atomic.Pointer[faultState]

	mu      sync.Mutex
	address string
	server  *http.Server
}

// Start starts n members, each on a free port of 127.0.0.1.
func Start(config Config, n int) (*Members, error) {
	resources := Resources()
	merger, err := newMerger(resources)
	if err != nil {
		return nil, fmt.Errorf("prepare server-side apply: %w", err)
	}
	out := &Members{config: config, merger: merger}
	for i := range n {
		m := &Member{of: out, index: i, id: uint64(i+1) << 48, stores: map[Resource]*store{}}
		m.faults.Store(&faultState{ended: make(chan struct{})})
		for _, r := range resources {
			m.stores[r] = newStore(r, &m.version)
		}
		m.version.Store(1)
		out.all = append(out.all, m)
		if err := m.Resume(); err != nil {
			out.Stop()
			return nil, err
		}
	}
	return out, nil
}

// All returns the members.
func (s *Members) All() []*Member { return s.all }

// Stop ends all members.
func (s *Members) Stop() {
	for _, m := range s.all {
		m.Halt()
	}
}

// URL returns the address of the member.
func (m *Member) URL() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return "https://" + m.address
}

// Resume makes the member listen again, on the port that it had before.
func (m *Member) Resume() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.server != nil {
		return nil
	}
	address := m.address
	if address == "" {
		address = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listen for a member: %w", err)
	}
	m.address = l.Addr().String()
	server := &http.Server{
		Handler: http.HandlerFunc(m.serve), ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{m.of.config.Certificate}, MinVersion: tls.VersionTLS12},
		HTTP2:     &http.HTTP2Config{MaxConcurrentStreams: 1000},
	}
	m.server = server
	go func() {
		if err := server.ServeTLS(l, "", ""); !errors.Is(err, http.ErrServerClosed) {
			log.Printf("A member stopped serving: %v", err)
		}
	}()
	return nil
}

// Halt closes the connections of the member and makes it refuse others.
func (m *Member) Halt() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.server == nil {
		return
	}
	_ = m.server.Close() // it closes what it can
	m.server = nil
}

// Put creates or replaces an object, as the owner of the member does: with its status.
func (m *Member) Put(r Resource, u *unstructured.Unstructured) error {
	status, err := encodeStatus(u)
	if err != nil {
		return err
	}
	_, _, err = m.stores[r].change(keyOf(u.GetNamespace(), u.GetName()), func(live *object) (*object, error) {
		w, err := m.of.merger.update(r, live, u.DeepCopy(), "owner")
		if err != nil {
			return nil, err
		}
		return m.next(r, live, w, status), nil
	})
	return err
}

// Len returns the number of objects of a kind.
func (m *Member) Len(r Resource) int {
	s := m.stores[r]
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.objects)
}

// Get returns an encoded object, or nil.
func (m *Member) Get(r Resource, key string) []byte {
	if o := m.stores[r].get(key); o != nil {
		return o.encode(nil)
	}
	return nil
}

// Differs returns the key of an object that two members do not have with the same content, or "".
func (m *Member) Differs(other *Member, r Resource) string {
	here, there := m.stores[r].all(), other.stores[r].all()
	for key, o := range here {
		if found, ok := there[key]; !ok || !found.equal(o.content) {
			return key
		}
	}
	for key := range there {
		if _, ok := here[key]; !ok {
			return key
		}
	}
	return ""
}

// next returns the version of an object after a write.
func (m *Member) next(r Resource, live *object, w written, status []byte) *object {
	out := &object{content: w.content, managers: w.managers, status: status}
	if live == nil {
		out.uid, out.created = m.id+m.created.Add(1), time.Now().Unix()
		if r.Group != "" {
			out.generation = 1
		}
		return out
	}
	out.uid, out.created, out.deleted, out.generation = live.uid, live.created, live.deleted, live.generation
	if r.Group != "" && string(w.content.rest) != string(live.rest) {
		out.generation++
	}
	return out
}

// changed calls Config.Changed.
func (m *Member) changed(r Resource, kind string, o *object) {
	if m.of.config.Changed == nil || kind == "" {
		return
	}
	c := Change{Member: m.index, Resource: r, Key: o.key()}
	if kind != deleted {
		c.Object = func() []byte { return o.encode(nil) }
	}
	m.of.config.Changed(c)
}

// contextOf bounds a watch by the time that the client asked for.
func contextOf(ctx context.Context, seconds int64) (context.Context, context.CancelFunc) {
	if seconds <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
}

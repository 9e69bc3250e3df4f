package controllers_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
)

// hangingWrites is a transport whose writes hang until they are resumed. It counts concurrent writes.
type hangingWrites struct {
	next  http.RoundTripper
	state *hangingState
}

type hangingState struct {
	mu        sync.Mutex
	resumed   chan struct{}
	now, most int
	writes    int
}

func (s *hangingWrites) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		return s.next.RoundTrip(r)
	}
	s.state.mu.Lock()
	s.state.now++
	s.state.writes++
	s.state.most = max(s.state.most, s.state.now)
	resumed := s.state.resumed
	s.state.mu.Unlock()
	defer func() {
		s.state.mu.Lock()
		s.state.now--
		s.state.mu.Unlock()
	}()
	select {
	case <-resumed:
		return s.next.RoundTrip(r)
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

func (s *hangingState) counts() (now, most, writes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now, s.most, s.writes
}

// TestWritesToAHangingHostAreBounded checks that a host that does not answer gets a bounded number of concurrent writes, and that everything
// is written when it answers again, each object about once.
func TestWritesToAHangingHostAreBounded(t *testing.T) {
	f, stop, err := newFleet([]string{"deploy/crds", "deploy/kubefed", "controllers/testdata/host"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	c := &bulkScenario{newScenario(t, f, "hanging"), 60}
	c.place("m1") // m1 is not registered, so everything stays on the host
	state := &hangingState{resumed: make(chan struct{})}
	f.adapterConfig.Wrap(func(next http.RoundTripper) http.RoundTripper { return &hangingWrites{next, state} })
	if err := f.restart(); err != nil {
		t.Fatal(err)
	}
	statements := make([]v1alpha1.Statement, c.n)
	for i := range c.n {
		c.create(&v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("slow", i)},
			Spec: v1alpha1.ProtectedResourceSpec{Resource: c.name(i), Mode: v1alpha1.ModeEnforce}})
		statements[i] = c.statement(fmt.Sprint("s", i), "app-888")
		statements[i].Resources = []v1alpha1.ResourceName{c.name(i)}
	}
	c.grant(statements...)
	// Every worker of every controller, and the writer of events.
	const workers = 8 + 4 + 4 + 3 + 1 + 1
	c.until("the workers wait for the host", func() string {
		if now, _, _ := state.counts(); now < 8 {
			return fmt.Sprint("only ", now, " writes hang")
		}
		return ""
	})
	if _, most, _ := state.counts(); most > workers {
		t.Errorf("%d writes at the same time", most)
	}
	close(state.resumed)
	c.until("everything is written", func() string {
		if there := c.written(func(*federation.Object) bool { return true }); len(there) < c.n {
			return fmt.Sprint("only ", len(there))
		}
		return ""
	})
	// A finalizer, the federated object and a few statuses and events each; the policy's status follows the units.
	if _, most, writes := state.counts(); most > workers || writes > 12*c.n {
		t.Errorf("%d writes at the same time, and %d in all for %d resources", most, writes, c.n)
	}
}

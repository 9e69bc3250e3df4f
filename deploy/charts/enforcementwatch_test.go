package charts

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// enforcementWatch reads the member's policy of the resource all the time: application 888 may connect, 889 only while it is granted, and nobody
// else; and there is a policy.
type enforcementWatch struct {
	mu     sync.Mutex
	closed bool
	faults []string
	ended  context.CancelFunc
	done   chan struct{}
}

var applicationID = regexp.MustCompile(`com\.trip/appid[^0-9]*([0-9]+)`)

func watchEnforcement(u *upgrade) *enforcementWatch {
	ctx, cancel := context.WithCancel(context.WithoutCancel(u.Context()))
	w := &enforcementWatch{closed: true, ended: cancel, done: make(chan struct{})}
	policies := u.member.resource(u.T, "cilium.io/v2", "CiliumClusterwideNetworkPolicy", "")
	reads := 0
	go func() {
		defer close(w.done)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			w.mu.Lock()
			closed := w.closed // a grant that is made while the policy is read may be in it or not
			w.mu.Unlock()
			list, err := policies.List(ctx, metav1.ListOptions{})
			if ctx.Err() != nil {
				return
			}
			reads++
			w.mu.Lock()
			if fault := enforcementFault(list, err, closed && w.closed); fault != nil {
				w.faults = append(w.faults, time.Now().Format(time.TimeOnly)+" "+fault.Error())
			}
			w.mu.Unlock()
		}
	}()
	u.Cleanup(func() {
		w.end()
		if reads == 0 {
			u.Error("the policy in the member was never read")
		}
		if len(w.faults) > 0 {
			u.Errorf("%d times something else was enforced than was granted, first: %s", len(w.faults), w.faults[0])
		}
	})
	return w
}

// enforcementFault returns how the member's policies differ from what is granted.
func enforcementFault(list *unstructured.UnstructuredList, err error, closed bool) error {
	if err != nil {
		return err
	}
	var allowed []string
	found := false
	for _, o := range list.Items {
		text, err := yaml.Marshal(o.Object["spec"])
		if err != nil {
			return err
		}
		if !strings.Contains(string(text), "bobs-cluster") {
			continue
		}
		found = true
		for _, m := range applicationID.FindAllStringSubmatch(string(text), -1) {
			allowed = append(allowed, m[1])
		}
	}
	switch {
	case !found:
		return errors.New("the member has no policy of the resource")
	case !slices.Contains(allowed, "888"):
		return fmt.Errorf("application 888, whose grant is in force, may not connect: %v", allowed)
	case closed && slices.Contains(allowed, "889"):
		return fmt.Errorf("application 889, whose grant was revoked, may connect: %v", allowed)
	}
	for _, id := range allowed {
		if id != "888" && id != "889" {
			return fmt.Errorf("application %s may connect", id)
		}
	}
	return nil
}

// TestEnforcementFault checks what TestUpgrade watches in the member.
func TestEnforcementFault(t *testing.T) {
	policy := func(resource string, applications ...string) unstructured.Unstructured {
		from := []any{}
		for _, a := range applications {
			from = append(from, map[string]any{"matchLabels": map[string]any{"k8s:com.trip/appid": a}})
		}
		return unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"endpointSelector": map[string]any{"matchLabels": map[string]any{"k8s:com.trip/redis-cluster": resource}},
			"ingress":          []any{map[string]any{"fromEndpoints": from}},
		}}}
	}
	for name, tc := range map[string]struct {
		items  []unstructured.Unstructured
		err    error
		closed bool
		want   string
	}{
		"as granted":       {[]unstructured.Unstructured{policy("other", "1"), policy("bobs-cluster", "888", "889")}, nil, false, ""},
		"as revoked":       {[]unstructured.Unstructured{policy("bobs-cluster", "888")}, nil, true, ""},
		"not yet granted":  {[]unstructured.Unstructured{policy("bobs-cluster", "888")}, nil, false, ""},
		"revoked and open": {[]unstructured.Unstructured{policy("bobs-cluster", "888", "889")}, nil, true, "889, whose grant was revoked"},
		"granted, refused": {[]unstructured.Unstructured{policy("bobs-cluster", "889")}, nil, false, "888, whose grant is in force"},
		"a stranger":       {[]unstructured.Unstructured{policy("bobs-cluster", "888", "890")}, nil, false, "application 890 may connect"},
		"no policy":        {[]unstructured.Unstructured{policy("other", "888")}, nil, false, "no policy"},
		"not read":         {nil, errors.New("no answer"), false, "no answer"},
	} {
		err := enforcementFault(&unstructured.UnstructuredList{Items: tc.items}, tc.err, tc.closed)
		if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

func (w *enforcementWatch) set(closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = closed
}

func (w *enforcementWatch) open()  { w.set(false) }
func (w *enforcementWatch) close() { w.set(true) }

func (w *enforcementWatch) end() {
	w.ended()
	<-w.done
}

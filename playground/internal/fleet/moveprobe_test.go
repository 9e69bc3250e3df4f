package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/acp-io/acp/playground/internal/enforcement"
	"github.com/acp-io/acp/playground/internal/parts"
)

// memberProbe follows every version of a member's policies by a watch. A policy of an enforced resource may never be absent, may never
// let anybody in by default, must always admit the application whose grant stays, and may not admit an application again whose revocation
// was reported as realized.
type memberProbe struct {
	member   string
	policies dynamic.ResourceInterface
	// kept is the application that every policy has to admit.
	kept string

	mu       sync.Mutex
	enforced map[string]bool
	// admitted are the applications of the last version of each policy, and revoked those whose revocation was reported as realized, with
	// the version that the member had then.
	admitted map[string]map[string]bool
	revoked  map[string]map[string]string
	versions int
	// returned counts the versions that admit an application which an earlier version of the policy did not admit any more. Each
	// application has one grant for a resource, so KubeFed wrote an earlier version of the record there.
	returned int
	left     map[string]map[string]bool
	problems []string
}

// startMemberProbe probes a member until the returned function is called, which fails the test if there were problems.
func startMemberProbe(t *testing.T, ctx context.Context, client dynamic.Interface, member, kept string) (*memberProbe, func()) {
	t.Helper()
	p := &memberProbe{member: member, kept: kept, policies: client.Resource(ccnpResource), enforced: map[string]bool{},
		admitted: map[string]map[string]bool{}, revoked: map[string]map[string]string{}, left: map[string]map[string]bool{}}
	list, err := p.policies.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		p.see(watch.Added, &list.Items[i])
	}
	ctx, cancel := context.WithCancel(ctx)
	w, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return p.policies.Watch(ctx, o)
		}})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for e := range w.ResultChan() {
			u, ok := e.Object.(*unstructured.Unstructured)
			if !ok {
				p.report("the watch failed: %v", e.Object)
				continue
			}
			p.see(e.Type, u)
		}
	}()
	var once sync.Once
	end := func() {
		once.Do(func() {
			cancel()
			<-ended
			p.mu.Lock()
			defer p.mu.Unlock()
			t.Logf("%s: %d versions of policies were seen; %d had a grant again before its revocation was realized", member, p.versions, p.returned)
			for _, text := range p.problems {
				t.Error(text)
			}
		})
	}
	t.Cleanup(end)
	return p, end
}

func (p *memberProbe) report(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = append(p.problems, p.member+": "+fmt.Sprintf(format, args...))
}

// see checks one version of a policy.
func (p *memberProbe) see(event watch.EventType, u *unstructured.Unstructured) {
	if event == watch.Bookmark {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	name := u.GetName()
	p.versions++
	fail := func(format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		p.problems = append(p.problems, fmt.Sprintf("%s, %s, version %s: %s", p.member, name, u.GetResourceVersion(), text))
	}
	if event == watch.Deleted {
		delete(p.admitted, name)
		if p.enforced[name] {
			fail("the policy is gone")
		}
		return
	}
	spec, err := json.Marshal(u.Object["spec"])
	if err != nil {
		fail("%s", err)
		return
	}
	if closed, _, _ := unstructured.NestedBool(u.Object, "spec", "enableDefaultDeny", "ingress"); !closed {
		fail("it does not deny by default: %s", spec)
	}
	if p.enforced[name] && !names(spec, p.kept) {
		fail("it does not admit %s: %s", p.kept, spec)
	}
	for app, since := range p.revoked[name] {
		if later, err := resourceversion.CompareResourceVersion(u.GetResourceVersion(), since); (err != nil || later > 0) && names(spec, app) {
			fail("the revoked grant of %s is back since version %s: %s", app, since, spec)
		}
	}
	before := p.admitted[name]
	p.admitted[name] = map[string]bool{"": true}
	for word := range strings.SplitSeq(string(spec), `"`) {
		p.admitted[name][word] = true
	}
	if p.left[name] == nil {
		p.left[name] = map[string]bool{}
	}
	for word := range before {
		p.left[name][word] = p.left[name][word] || !p.admitted[name][word]
	}
	for word := range p.admitted[name] {
		if p.left[name][word] && !before[word] && len(word) == len(otherApp) {
			p.returned++
		}
	}
}

// names reports whether a spec contains an application.
func names(spec []byte, app string) bool { return strings.Contains(string(spec), `"`+app+`"`) }

// admits reports whether the last version of a policy admits an application; for "", whether there is a policy.
func (p *memberProbe) admits(name, app string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.admitted[name][app]
}

func (p *memberProbe) enforce(name string, enforced bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.enforced[name] = enforced
}

// isRevoked records that the revocation of a grant was reported as realized. No later version may contain it.
func (p *memberProbe) isRevoked(ctx context.Context, name, app string) error {
	u, err := p.policies.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.revoked[name] == nil {
		p.revoked[name] = map[string]string{}
	}
	p.revoked[name][app] = u.GetResourceVersion()
	return nil
}

// dataplaneProbe reads the verdicts of a member's dataplane without pause.
type dataplaneProbe struct {
	member      string
	reader      *enforcement.Reader
	connections []enforcement.Connection
	// wanted is the verdict of each connection: true, false, or nil for a connection whose grant is revoked at some time. It may not pass
	// again after it was refused.
	wanted   []*bool
	refused  []bool
	probes   int
	problems []string
}

// startDataplaneProbe probes a member until the returned function is called, which fails the test if there were problems.
func startDataplaneProbe(t *testing.T, ctx context.Context, f *Fleet, member string, wanted map[enforcement.Connection]*bool) func() {
	t.Helper()
	p := &dataplaneProbe{member: member}
	for c, want := range wanted {
		p.connections, p.wanted, p.refused = append(p.connections, c), append(p.wanted, want), append(p.refused, false)
	}
	var err error
	p.reader, err = enforcement.Start(ctx, f.Built.Path(parts.Dataplane, parts.ACPDataplane), f.Layout.Kubeconfig(Dataplane), member,
		filepath.Join(f.Layout.Logs(), "enforcement-"+member+".log"), p.connections)
	if err != nil {
		t.Fatal(err)
	}
	if err := poll(ctx, "the dataplane of "+member+" does not enforce", func(context.Context) error {
		outcomes, err := p.reader.Outcomes()
		for i, outcome := range outcomes {
			if want := p.wanted[i]; want != nil && enforcement.Passes(outcome) != *want || want == nil && !enforcement.Passes(outcome) {
				return fmt.Errorf("%s: %s", p.connections[i], outcome)
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				if err := p.probe(); err != nil {
					return
				}
			}
		}
	}()
	var once sync.Once
	end := func() {
		once.Do(func() {
			close(stop)
			<-ended
			p.reader.Stop()
			t.Logf("%s: the dataplane was probed %d times for %d connections", member, p.probes, len(p.connections))
			for i, want := range p.wanted {
				if want == nil && !p.refused[i] {
					p.problems = append(p.problems, fmt.Sprintf("%s: %s was never refused", member, p.connections[i]))
				}
			}
			for _, text := range p.problems {
				t.Error(text)
			}
		})
	}
	t.Cleanup(end)
	return end
}

// maxProblems bounds how often the same problem is reported.
const maxProblems = 20

func (p *dataplaneProbe) probe() error {
	outcomes, err := p.reader.Outcomes()
	if err != nil {
		p.problems = append(p.problems, fmt.Sprintf("%s cannot be probed: %s", p.member, err))
		return err
	}
	p.probes++
	for i, outcome := range outcomes {
		pass := enforcement.Passes(outcome)
		wrong := false
		switch want := p.wanted[i]; {
		case want != nil:
			wrong = pass != *want
		case pass:
			wrong = p.refused[i]
		default:
			p.refused[i] = true
		}
		if wrong {
			p.problems = append(p.problems, fmt.Sprintf("%s: %s: %s", p.member, p.connections[i], outcome))
		}
		if len(p.problems) > maxProblems {
			return errors.New("there are too many problems")
		}
	}
	return nil
}

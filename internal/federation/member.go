package federation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/acp-io/acp/internal/backoff"
	"github.com/acp-io/acp/internal/message"
)

// Probing configures how an unreachable member is detected: by Failures failed probes in a row, each started Interval
// after the previous one and aborted after Timeout. With the defaults that takes at most ten seconds, and more only on machines that are too
// busy (maxSlowProbes). An unreachable member is probed every Interval.
type Probing struct {
	Interval, Timeout time.Duration
	Failures          int
}

// DefaultProbing detects a stopped member within ten seconds, and does not treat a restart of its API server, which
// takes a second or two, as an outage.
var DefaultProbing = Probing{Interval: 2 * time.Second, Timeout: 3 * time.Second, Failures: 2}

// Slow returns a probing with a fifth of the frequency, for kinds that are not time-critical: each kind that is read in
// a member is probed separately.
func (p Probing) Slow() Probing {
	if p == (Probing{}) {
		p = DefaultProbing
	}
	p.Interval *= 5
	return p
}

// member watches the objects of one kind in one member, parsed to T, with one set of credentials.
type member[T any] struct {
	cluster Cluster
	token   string
	kind    Kind
	probing Probing
	log     logr.Logger
	// changed is called with an object's name, or with "" when reachability changed.
	changed func(object string)

	stop   context.CancelFunc
	client dynamic.ResourceInterface
	// serves reports whether the API server serves the resource in any version. It is nil for kinds that every member has to serve.
	serves func(context.Context) (bool, error)
	http   *http.Client
	watch  *Watch[T]

	mu    sync.RWMutex
	alive bool
	why   error
}

var errNotProbed = errors.New("not contacted yet")

// errKindAbsent means that the API server of a member answered, and does not serve the kind, so that the member has no object of the kind.
var errKindAbsent = errors.New("the API server does not serve the kind")

// newMember prepares the watch of a member without contacting it. answers counts what the API server answers.
func newMember[T any](c Cluster, token string, kind Kind, parse func(*unstructured.Unstructured) (T, error), probing Probing, log logr.Logger,
	answers *atomic.Uint64, changed func(object string)) (*member[T], error) {
	config, err := restConfig(c, token, maxPage)
	if err != nil {
		return nil, err
	}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("the registration of member %s is unusable: %w", c.Name, err)
	}
	client, err := dynamic.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("the registration of member %s is unusable: %w", c.Name, err)
	}
	m := &member[T]{cluster: c, token: token, kind: kind, probing: probing, log: log, changed: changed,
		client: client.Resource(kind.TargetResource), http: httpClient, why: errNotProbed}
	if kind.Namespace != "" {
		m.client = client.Resource(kind.TargetResource).Namespace(kind.Namespace)
	}
	if kind == IstioPolicy {
		discover, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
		if err != nil {
			return nil, fmt.Errorf("the registration of member %s is unusable: %w", c.Name, err)
		}
		m.serves = func(ctx context.Context) (bool, error) {
			return servesResource(ctx, discover.RESTClient(), kind.TargetResource.GroupResource())
		}
	}
	m.watch = NewWatch(m.client, kind.TargetResource.Resource, log, parse, changed)
	m.watch.everyNamespace, m.watch.only, m.watch.answers = kind.Namespaced, kind.Selector(), answers
	m.watch.bounds = memberBounds
	if m.watch.pages, err = newPageReader(config, httpClient, kind); err != nil {
		return nil, fmt.Errorf("the registration of member %s is unusable: %w", c.Name, err)
	}
	return m, nil
}

// inherit copies the state of the watch with the previous credentials, so that a token rotation is no outage. It is
// valid until this member's own first probe, which shows at once if the new credentials are invalid.
func (m *member[T]) inherit(old *member[T]) {
	if m.cluster.Endpoint != old.cluster.Endpoint || m.cluster.ProxyURL != old.cluster.ProxyURL {
		return // it may be another cluster, whose state is not known
	}
	old.mu.RLock()
	m.alive, m.why = old.alive, old.why
	old.mu.RUnlock()
	m.watch.inherit(old.watch)
}

// Address returns the URL of a member's API server, whose registration may lack the scheme.
func Address(endpoint string) string {
	if !strings.Contains(endpoint, "://") {
		endpoint = "https://" + endpoint
	}
	return strings.TrimSuffix(endpoint, "/")
}

// RESTConfig returns the configuration to reach a member with a token. A registration that does not verify the member's
// certificate is rejected. Answers that are too large, and those that redirect, become errors (boundedAnswers).
func RESTConfig(c Cluster, token string) (*rest.Config, error) {
	return restConfig(c, token, maxAnswer)
}

// restConfig is RESTConfig with the largest number of bytes of an answer.
func restConfig(c Cluster, token string, limit int64) (*rest.Config, error) {
	if c.LaxTLS {
		return nil, fmt.Errorf("KubeFedCluster %s sets disabledTLSValidations: ACP does not trust what it reads that way; "+
			"give the cluster a certificate that its caBundle verifies", c.Name)
	}
	endpoint := Address(c.Endpoint)
	if u, err := url.Parse(endpoint); err != nil || u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("KubeFedCluster %s has apiEndpoint %q: it must be an https address", c.Name, c.Endpoint)
	}
	config := &rest.Config{Host: endpoint, BearerToken: token, UserAgent: "acp-adapter", QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.CABundle}}
	if c.ProxyURL != "" {
		proxy, err := url.Parse(c.ProxyURL)
		if err != nil {
			return nil, fmt.Errorf("KubeFedCluster %s has an unusable proxyURL: %w", c.Name, err)
		}
		config.Proxy = http.ProxyURL(proxy)
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return repeatReads{boundedAnswers{next, limit}} })
	return config, nil
}

// run probes the member until the context ends, and watches it while it is reachable. After every outage the objects
// are listed again, because a broken connection may have missed changes.
func (m *member[T]) run(ctx context.Context) {
	defer m.closeIdleConnections()
	for ctx.Err() == nil {
		err := m.probe(ctx)
		if err != nil {
			m.setAlive(false, err)
			backoff.Pause(ctx, clock.RealClock{}, m.probing.Interval)
			continue
		}
		m.setAlive(true, nil)
		m.watchWhileAlive(ctx)
	}
}

// closeIdleConnections closes the connections to the member that no request uses. The method of http.Client does nothing here, because it looks at the
// outermost transport only, and client-go's transports do not pass it on.
func (m *member[T]) closeIdleConnections() { utilnet.CloseIdleConnectionsFor(m.http.Transport) }

// maxSlowProbes is the number of probes that may take too long without being counted as failed, because the API server answered something else
// meanwhile: a list, a watch or a probe, of this kind or of another one of the same member. On a machine that is too busy, a lost member is listed
// again, which would take the time that the next probes need, so that more members would be lost. The number is bounded, because events may have
// waited in a buffer since before an outage: with DefaultProbing, an outage is found up to half a minute later then.
const maxSlowProbes = 6

func (m *member[T]) watchWhileAlive(ctx context.Context) {
	watching, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.watch.Run(watching)
	}()
	defer func() {
		stop()
		<-done
		m.closeIdleConnections()
	}()
	failures, stale, slow := 0, 0, 0
	for backoff.Pause(ctx, clock.RealClock{}, m.probing.Interval) {
		before := m.watch.answers.Load()
		err := m.probe(ctx)
		if err == nil {
			m.watch.answers.Add(1)
			failures, stale, slow = 0, m.staleFor(stale), 0
			continue
		}
		if slow < maxSlowProbes && errors.Is(err, context.DeadlineExceeded) && m.watch.answers.Load() != before {
			slow++
			continue
		}
		if failures++; failures >= m.probing.Failures {
			m.watch.forget()
			m.setAlive(false, err)
			return
		}
	}
}

// staleFor counts the probes in a row during which one object could be read but not all of them. The objects are then
// stale and must not be shown forever: the watch lists again, and reports the error.
func (m *member[T]) staleFor(probes int) int {
	synced, err := m.watch.State()
	if !synced || err == nil {
		return 0
	}
	if probes++; probes == m.probing.Failures {
		m.watch.forget()
		m.log.Error(err, "Member's objects cannot be listed")
		m.changed("")
	}
	return probes
}

// probe reads one object, without the API server's cache: it needs the same network, credentials, permission, kind and
// storage as the watch.
func (m *member[T]) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, m.probing.Timeout)
	defer cancel()
	_, err := m.watch.pages(ctx, metav1.ListOptions{Limit: 1, FieldSelector: m.watch.only})
	return m.confirmAbsence(ctx, err)
}

// confirmAbsence wraps errKindAbsent if an error may be about a kind that the API server does not serve, and its lists of resources lack the kind. The
// error alone does not say that: a server refuses who has no permission before it looks for the kind, and a proxy in front of it may answer that
// nothing was found.
func (m *member[T]) confirmAbsence(ctx context.Context, err error) error {
	if m.serves == nil || !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return err
	}
	if serves, unknown := m.serves(ctx); unknown != nil || serves {
		return err
	}
	return fmt.Errorf("%w: %w", errKindAbsent, err)
}

// errNoGroups means that what answered is no Kubernetes API server, because these have several API groups.
var errNoGroups = errors.New("the list of API groups is empty")

// servesResource reads from an API server whether it serves a resource in any version.
func servesResource(ctx context.Context, c rest.Interface, resource schema.GroupResource) (bool, error) {
	var groups metav1.APIGroupList
	if err := c.Get().AbsPath("/apis").Do(ctx).Into(&groups); err != nil {
		return false, fmt.Errorf("read the API groups: %w", err)
	}
	if len(groups.Groups) == 0 {
		return false, errNoGroups
	}
	for _, g := range groups.Groups {
		if g.Name != resource.Group {
			continue
		}
		for _, v := range g.Versions {
			var list metav1.APIResourceList
			if err := c.Get().AbsPath("/apis", g.Name, v.Version).Do(ctx).Into(&list); err != nil {
				return false, fmt.Errorf("read the resources of %s: %w", v.GroupVersion, err)
			}
			if slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource.Resource }) {
				return true, nil
			}
		}
	}
	return false, nil
}

func (m *member[T]) setAlive(alive bool, why error) {
	m.mu.Lock()
	// The errors' own texts differ from one attempt to the next; what they mean does not.
	changed := m.alive != alive || (!alive && (m.explain(m.why) != m.explain(why) || errors.Is(m.why, errKindAbsent) != errors.Is(why, errKindAbsent)))
	m.alive, m.why = alive, why
	m.mu.Unlock()
	if !changed {
		return
	}
	// The status gets a sentence that is fit for everyone; the error itself is for the operator.
	switch resource := m.kind.TargetResource.GroupResource().String(); {
	case apierrors.IsNotFound(why):
		m.log.Info("Member does not serve a kind", "kind", resource)
	case why != nil:
		m.log.Error(why, "Member cannot be read", "kind", resource)
	}
	m.changed("")
}

// observe reports whether the member can be read.
func (m *member[T]) observe() Observation {
	o := Observation{Registered: true}
	m.mu.RLock()
	alive, why := m.alive, m.why
	m.mu.RUnlock()
	synced, watchErr := m.watch.State()
	switch {
	case !alive:
		o.Message, o.Unknown = m.explain(why), errors.Is(why, errNotProbed)
	case !synced && watchErr != nil:
		o.Message = m.explain(watchErr)
	case !synced:
		o.Message, o.Unknown = message.MemberBeingListed(m.cluster.Name), true
	default:
		o.Reachable = true
	}
	return o
}

// lacksObjects reports whether the member answered that it does not serve the kind, so that it has no object of it.
func (m *member[T]) lacksObjects() bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return !m.alive && errors.Is(m.why, errKindAbsent)
}

// isForbidden reports whether the member refuses to let its objects be read.
func (m *member[T]) isForbidden() bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	_, err := m.watch.State()
	return apierrors.IsForbidden(m.why) || m.alive && apierrors.IsForbidden(err)
}

// explain returns a message with what to do. It is deterministic, so that a status that contains it does not flap.
func (m *member[T]) explain(err error) message.Message {
	name := m.cluster.Name
	switch {
	case errors.Is(err, errNotProbed):
		return message.MemberNotContacted(name)
	case apierrors.IsUnauthorized(err):
		return message.MemberTokenRefused(name, SecretName(name))
	case apierrors.IsForbidden(err) && m.kind == IstioPolicy: // deploy/istio contains its roles
		return message.MemberIstioForbidden(name, m.kind.TargetResource.Resource)
	case apierrors.IsForbidden(err):
		return message.MemberForbidden(name, m.kind.TargetResource.Resource)
	case apierrors.IsNotFound(err):
		return message.MemberNoKind(name, m.kind.TargetResource.GroupResource().String())
	case errors.Is(err, errTooManyObjects):
		return message.MemberTooManyObjects(name, m.kind.TargetResource.GroupResource().String(), maxObjects)
	case errors.Is(err, errObjectsTooLarge) || errors.Is(err, errAnswerTooLarge):
		return message.MemberTooMuchData(name, m.kind.TargetResource.GroupResource().String())
	case errors.Is(err, errRedirected):
		return message.MemberRedirects(name, m.cluster.Endpoint)
	default:
		return message.MemberNoAnswer(name, m.cluster.Endpoint)
	}
}

// absent reads from the member, without a cache.
func (m *member[T]) absent(ctx context.Context, object string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, m.probing.Timeout)
	defer cancel()
	_, err := m.client.Get(ctx, object, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %s in member %s: %w", object, m.cluster.Name, err)
	}
	return false, nil
}

package federation

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

// SecretName returns the name of the Secret on the host, in the credentials namespace, that contains the adapter's
// token for a member.
func SecretName(cluster string) string { return "acp-reader-" + cluster }

// secretKey is the key of the token in that Secret.
const secretKey = "token"

// FleetConfig configures a Fleet.
type FleetConfig struct {
	// Host is a client of the host cluster.
	Host dynamic.Interface
	// KubeFedNamespace contains the KubeFedClusters, and CredentialsNamespace the Secrets named by SecretName.
	KubeFedNamespace, CredentialsNamespace string
	// Kind is the kind that is read back, and Revision computes the revision of a spec. Identities need neither.
	Kind     Kind
	Revision Revision
	// Probing configures the probes; the zero value means DefaultProbing.
	Probing Probing
	// Answers counts the answers of the members' API servers, also those to others that read the same members; nil means that nothing else reads them.
	Answers *Answers
	Log     logr.Logger
	// Changed is called when an object of a member appeared, changed or was deleted; with object "" when the member was
	// registered, removed, became unreachable or reachable; and with cluster "" when the registry as a whole began to
	// work or failed. It must return quickly.
	Changed func(cluster, object string)
}

func (c FleetConfig) validate() error {
	switch {
	case c.Host == nil:
		return errors.New("federation: FleetConfig.Host is missing")
	case c.KubeFedNamespace == "" || c.CredentialsNamespace == "":
		return errors.New("federation: FleetConfig needs KubeFedNamespace and CredentialsNamespace")
	case c.Changed == nil:
		return errors.New("federation: FleetConfig.Changed is missing")
	}
	return nil
}

// Fleet is the registry of the members, with the objects of each that ACP manages.
type Fleet struct {
	*fleet[Observed]
	// foreign returns an object as a policy of others, or nil for ACP's own; a nil function stands for no policies of others.
	foreign func(*unstructured.Unstructured) *policyObject
}

// NewFleet returns a Fleet that is idle until Run.
func NewFleet(config FleetConfig) (*Fleet, error) {
	if config.Revision == nil {
		return nil, errors.New("federation: FleetConfig.Revision is missing")
	}
	f := &Fleet{}
	var err error
	f.fleet, err = newFleet(config, func(u *unstructured.Unstructured) (Observed, error) {
		o, err := config.Revision.parse(u)
		if f.foreign != nil {
			o.foreign = f.foreign(u)
		}
		return o, err
	})
	if err == nil {
		f.size = sizeOfObserved
	}
	return f, err
}

// Observe returns the observation of an object in a member.
func (f *Fleet) Observe(cluster, object string) Observation {
	o, m := f.observe(cluster)
	return withObject(o, m, object)
}

// Reserved returns the names of a member's objects that have ACP's label or name prefix, sorted. It returns none for a
// member that cannot be read.
func (f *Fleet) Reserved(cluster string) []string {
	o, m := f.observe(cluster)
	if !o.Reachable || m == nil {
		return nil
	}
	var out []string
	m.watch.each(func(found Observed) {
		if found.Managed || strings.HasPrefix(found.Name, v1alpha1.ObjectPrefix) {
			out = append(out, found.Name)
		}
	})
	slices.Sort(out)
	return out
}

// withObject adds the member's object to the observation of the member.
func withObject(o Observation, m *member[Observed], object string) Observation {
	if !o.Reachable || m == nil {
		return o
	}
	found, ok, asOf := m.watch.getAsOf(object)
	if o.AsOf = asOf; ok {
		o.Object = &found
	}
	return o
}

// fleet is the registry of the members with the current objects of one kind in each.
type fleet[T any] struct {
	config FleetConfig
	parse  func(*unstructured.Unstructured) (T, error)
	// group is the second key of the members' objects, as in a Watch.
	group func(T) string
	// size is the size of what is kept of the members' objects, as in a Watch.
	size     func(*unstructured.Unstructured, T) int
	clusters *Watch[Cluster]
	tokens   *Watch[token]
	trigger  chan struct{}

	mu      sync.RWMutex
	members map[string]*member[T]
	// unwatched contains the registered members without a watch.
	unwatched map[string]unwatchedMember
	// sorted are the registered members by name, of the version sortedOf-1 of clusters; nothing was read if sortedOf is 0.
	sorted   []Cluster
	sortedOf uint64
}

// unwatchedMember is a registered member that cannot be watched, and the reason. Changes of its registration are reported, too.
type unwatchedMember struct {
	cluster Cluster
	reason  message.Message
}

type token struct{ name, value string }

func newFleet[T any](config FleetConfig, parse func(*unstructured.Unstructured) (T, error)) (*fleet[T], error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	if config.Probing == (Probing{}) {
		config.Probing = DefaultProbing
	}
	f := &fleet[T]{config: config, parse: parse, trigger: make(chan struct{}, 1), members: map[string]*member[T]{},
		unwatched: map[string]unwatchedMember{}}
	again := func(string) {
		select {
		case f.trigger <- struct{}{}:
		default:
		}
	}
	f.clusters = NewWatch(config.Host.Resource(clusterResource).Namespace(config.KubeFedNamespace), "kubefedclusters", config.Log, ParseCluster, again)
	f.tokens = NewWatch(config.Host.Resource(secretResource).Namespace(config.CredentialsNamespace), "secrets", config.Log, parseToken, again)
	return f, nil
}

func parseToken(u *unstructured.Unstructured) (token, error) {
	encoded, _, _ := unstructured.NestedString(u.Object, "data", secretKey)
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return token{}, fmt.Errorf("key %s is not base64", secretKey)
	}
	return token{u.GetName(), string(raw)}, nil
}

// Run follows the registrations and the members until the context ends. All its goroutines have ended when it returns.
func (f *fleet[T]) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { f.clusters.Run(ctx) })
	running.Go(func() { f.tokens.Run(ctx) })
	registryWorks := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.trigger:
		}
		if works, _ := f.Registry(); works != registryWorks {
			registryWorks = works
			f.config.Changed("", "")
		}
		for _, name := range f.adjust(ctx, &running) {
			f.config.Changed(name, "")
		}
	}
}

// adjust starts and stops watches according to the registrations, and returns the members that changed.
func (f *fleet[T]) adjust(ctx context.Context, running *sync.WaitGroup) []string {
	if synced, _ := f.clusters.State(); !synced {
		return nil
	}
	var changed []string
	present := map[string]Cluster{}
	for _, c := range f.clusters.List() {
		present[c.Name] = c
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, m := range f.members {
		if _, ok := present[name]; !ok {
			m.stop()
			delete(f.members, name)
			changed = append(changed, name)
		}
	}
	for name := range f.unwatched {
		if _, ok := present[name]; !ok {
			delete(f.unwatched, name)
			changed = append(changed, name)
		}
	}
	for name, c := range present {
		if f.adjustMember(ctx, running, c) {
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	return changed
}

func (f *fleet[T]) adjustMember(ctx context.Context, running *sync.WaitGroup, c Cluster) bool {
	secret, _ := f.tokens.Get(SecretName(c.Name))
	old := f.members[c.Name]
	if old != nil && old.token == secret.value && old.cluster.SameConnection(c) {
		same := old.cluster.samePlacementAndStatus(c)
		old.cluster.Labels, old.cluster.Leaving, old.cluster.DowngradeMark = c.Labels, c.Leaving, c.DowngradeMark
		old.cluster.Quarantined, old.cluster.QuarantineReason = c.Quarantined, c.QuarantineReason
		old.cluster.noIstio = c.noIstio
		old.cluster.Istio, old.cluster.Mesh, old.cluster.Enforcer, old.cluster.Locations = c.Istio, c.Mesh, c.Enforcer, c.Locations
		old.cluster.Engine, old.cluster.FormerEngine, old.cluster.Secret = c.Engine, c.FormerEngine, c.Secret
		old.cluster.ReadyForKubeFed = c.ReadyForKubeFed
		return !same
	}
	m, why := f.connect(c, secret.value)
	if !why.IsZero() {
		if old != nil {
			old.stop()
			delete(f.members, c.Name)
		}
		was, had := f.unwatched[c.Name]
		f.unwatched[c.Name] = unwatchedMember{c, why}
		return old != nil || !had || was.reason != why || !was.cluster.samePlacementAndStatus(c)
	}
	if old != nil {
		m.inherit(old)
		old.stop()
	}
	delete(f.unwatched, c.Name)
	var memberCtx context.Context
	memberCtx, m.stop = context.WithCancel(ctx)
	f.members[c.Name] = m
	running.Go(func() { m.run(memberCtx) })
	return true
}

func (f *fleet[T]) connect(c Cluster, tokenValue string) (*member[T], message.Message) {
	if tokenValue == "" {
		if _, err := f.tokens.State(); err != nil {
			return nil, message.MemberSecretsUnreadable(f.config.CredentialsNamespace)
		}
		return nil, message.MemberNoSecret(f.config.CredentialsNamespace+"/"+SecretName(c.Name), secretKey, c.Name)
	}
	m, err := newMember(c, tokenValue, f.config.Kind, f.parse, f.config.Probing, f.config.Log.WithValues("member", c.Name), f.config.Answers.of(c),
		func(object string) { f.config.Changed(c.Name, object) })
	if err != nil {
		return nil, message.Of(err)
	}
	m.watch.group, m.watch.size = f.group, f.size
	return m, message.Message{}
}

// Registry reports whether the members' registrations were listed, and the error if not.
func (f *fleet[T]) Registry() (bool, error) { return f.clusters.State() }

// Clusters returns the registered members by name. It is called for every event in a member, so that the sorted list is kept until a
// registration changes, and not copied: callers must not change it.
func (f *fleet[T]) Clusters() []Cluster {
	version := f.clusters.version()
	f.mu.RLock()
	sorted, current := f.sorted, f.sortedOf == version+1
	f.mu.RUnlock()
	if !current {
		sorted = f.clusters.List() // it may be newer than version, and is replaced then
		slices.SortFunc(sorted, byName)
		f.mu.Lock()
		f.sorted, f.sortedOf = sorted, version+1
		f.mu.Unlock()
	}
	return slices.Clip(sorted) // what a caller appends goes into a list of its own
}

// Cluster returns a registered member.
func (f *fleet[T]) Cluster(name string) (Cluster, bool) { return f.clusters.Get(name) }

// HasCredentials reports whether the adapter has a token for reading a member, or whether this is not known yet.
func (f *fleet[T]) HasCredentials(cluster string) bool {
	if listed, _ := f.tokens.State(); !listed {
		return true
	}
	secret, _ := f.tokens.Get(SecretName(cluster))
	return secret.value != ""
}

// observe reports whether a member can be read. The returned member is nil if it has not been contacted, or has no object because it declares no Istio
// and does not serve Istio's kind: nothing has to be read there, and what waits for the removal of an object need not wait for this member. If it serves
// the kind and does not let it be read, it may have objects, and the message says what to do.
func (f *fleet[T]) observe(cluster string) (Observation, *member[T]) {
	f.mu.RLock()
	m, why := f.members[cluster], f.unwatched[cluster].reason
	withoutIstio := m != nil && f.config.Kind == IstioPolicy && m.cluster.WithoutIstio()
	f.mu.RUnlock()
	if withoutIstio && m.lacksObjects() {
		return Observation{Registered: true, Reachable: true}, nil
	}
	if m != nil {
		o := m.observe()
		if withoutIstio && !o.Reachable && m.isForbidden() {
			o.Message = message.MemberIstioUndeclared(cluster, f.config.Kind.TargetResource.Resource)
		}
		return o, m
	}
	if !why.IsZero() {
		return Observation{Registered: true, Message: why}, nil
	}
	if _, registered := f.clusters.Get(cluster); registered {
		return Observation{Registered: true, Unknown: true, Message: message.MemberNotContacted(cluster)}, nil
	}
	listed, _ := f.Registry()
	return Observation{Unknown: !listed, Message: message.MemberUnregistered(cluster, f.config.KubeFedNamespace)}, nil
}

// Absent reads from the member, without a cache, whether it lacks an object.
func (f *fleet[T]) Absent(ctx context.Context, cluster, object string) (bool, error) {
	f.mu.RLock()
	m := f.members[cluster]
	f.mu.RUnlock()
	if m == nil {
		return false, fmt.Errorf("read %s in member %s: the member cannot be reached", object, cluster)
	}
	return m.absent(ctx, object)
}

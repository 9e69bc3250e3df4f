package controllers

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/acp-io/acp/controllers/dataplane"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/federation"
)

// istio is the way of Istio's policies to the members, where the host has it.
type istio struct {
	all     *triggers
	objects *federation.Objects
	fleet   *federation.Fleet
	root    *federation.Root
	// host is asked whether it has the kind.
	host dynamic.ResourceInterface
	// known is closed when it is known whether the host carries Istio's policies, and carried when it does.
	known, carried         chan struct{}
	onceKnown, onceCarried sync.Once
}

// setUpIstio adds the carrying of Istio's policies. Without deploy/kubefed/istio on the host nothing runs but the question
// whether it is there. The ready that it returns also waits for the answer.
func setUpIstio(mgr manager.Manager, host dynamic.Interface, config Config, all *triggers, ready func(context.Context) error) (*istio, func(context.Context) error, error) {
	s := &istio{all: all, known: make(chan struct{}), carried: make(chan struct{})}
	kind := federation.IstioPolicy
	log := mgr.GetLogger().WithName("istio")
	s.objects = federation.NewObjects(host, kind, log, s.federated)
	s.root = federation.NewRoot(host, kind, log, s.rootChanged)
	var err error
	if s.fleet, err = federation.NewFleet(federation.FleetConfig{
		Host: host, KubeFedNamespace: config.KubeFedNamespace, CredentialsNamespace: config.CredentialsNamespace,
		Kind: kind, Revision: enforcer.Revision, Probing: config.Probing, Log: log, Changed: s.member,
	}); err != nil {
		return nil, nil, err
	}
	s.host = host.Resource(kind.FederatedResource).Namespace(kind.Namespace)
	for _, run := range []manager.Runnable{always(s.watch), always(s.read), manager.RunnableFunc(s.root.Keep)} {
		if err := mgr.Add(run); err != nil {
			return nil, nil, err
		}
	}
	return s, after(ready, s.known), nil
}

// asking is how often the host is asked for what it does not have.
const asking = 15 * time.Second

// watch waits until the host has the kind and lets the adapter see it, and watches then. Most hosts never have it.
func (s *istio) watch(ctx context.Context) error {
	for {
		_, err := s.host.List(ctx, metav1.ListOptions{Limit: 1})
		if err == nil {
			break
		}
		again := asking
		if federation.Missing(err) || apierrors.IsForbidden(err) {
			s.onceKnown.Do(func() { close(s.known) })
		} else {
			again = time.Second // the host does not answer as it should
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(again):
		}
	}
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { _ = s.objects.Run(ctx) }) // they end with the context, and have no other error
	running.Go(func() { _ = s.root.Run(ctx) })
	return nil
}

// read reads the members back once the host carries something to them: before that they need not have the kind.
func (s *istio) read(ctx context.Context) error { return s.whenCarried(ctx, s.fleet.Run) }

func (s *istio) whenCarried(ctx context.Context, run func(context.Context) error) error {
	select {
	case <-s.carried:
		return run(ctx)
	case <-ctx.Done():
		return nil
	}
}

// carries tells whether the host carries Istio's policies.
func (s *istio) carries() bool {
	listed, _ := s.objects.State()
	return listed
}

// drivers are the enforcers with what they need.
func (s *istio) drivers() *dataplane.Drivers {
	return &dataplane.Drivers{Index: s.all.cache, NoHTTP: s.all.inspector.NoHTTP, Changed: s.all.requeueAll, Carried: func() (bool, string) {
		if !s.carries() {
			return false, "the host does not carry its policies to the members: apply deploy/kubefed/istio, or take the enforcer out of the class"
		}
		return true, s.root.Problem()
	}}
}

// federated: a Federated policy appeared, changed or went, or the kind was found or found missing.
func (s *istio) federated(name, resource string) {
	if name != "" {
		s.all.onHostObject(federation.IstioPolicy.Key(name), resource)
		return
	}
	if s.carries() {
		s.onceCarried.Do(func() { close(s.carried) })
	}
	s.all.inspector.Wake()
	s.all.foreign.recheck("")
	s.look()
}

func (s *istio) rootChanged() { s.look() }

// look tells when everything is known, and wakes whoever decides by it.
func (s *istio) look() {
	listed, err := s.objects.State()
	if (listed || err != nil) && s.root.Known() {
		s.onceKnown.Do(func() { close(s.known) })
	}
	s.all.requeueAll()
}

// member: an object in a member did, or the member itself.
func (s *istio) member(cluster, object string) {
	if object == "" {
		s.all.requeueAll()
		return
	}
	s.all.onMemberObject(cluster, federation.IstioPolicy.Key(object))
}

// errNotCarried: what nobody carries is in no member.
var errNotCarried = errors.New("the host carries no such objects")

// ifCarried are the members of which something can be heard.
type ifCarried struct {
	federation.Members
	carries func() bool
}

// Registry fails while nothing is carried.
func (m ifCarried) Registry() (bool, error) {
	if !m.carries() {
		return false, errNotCarried
	}
	return m.Members.Registry()
}

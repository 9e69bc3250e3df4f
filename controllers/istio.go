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
	"github.com/acp-io/acp/internal/message"
)

// istio connects the distribution of Istio's policies to the members, if the host supports it.
type istio struct {
	all     *triggers
	objects *federation.Objects
	fleet   *federation.Fleet
	root    *federation.RootNamespace
	// host is used to check whether the kind is installed.
	host dynamic.ResourceInterface
	// known is closed when it is known whether the host distributes Istio's policies, and carried when it does.
	known, carried         chan struct{}
	onceKnown, onceCarried sync.Once
}

// setUpIstio adds the distribution of Istio's policies. Without deploy/kubefed/istio on the host, only the check for
// its presence runs. The returned ready also waits for the result.
func setUpIstio(mgr manager.Manager, host dynamic.Interface, config Config, all *triggers, ready func(context.Context) error) (*istio, func(context.Context) error, error) {
	s := &istio{all: all, known: make(chan struct{}), carried: make(chan struct{})}
	kind := federation.IstioPolicy
	log := mgr.GetLogger().WithName("istio")
	s.objects = federation.NewObjects(host, kind, log, s.federated)
	s.root = federation.NewRootNamespace(host, kind, log, s.rootChanged)
	var err error
	if s.fleet, err = federation.NewFleet(federation.FleetConfig{
		Host: host, KubeFedNamespace: config.KubeFedNamespace, CredentialsNamespace: config.CredentialsNamespace,
		Kind: kind, Revision: enforcer.Revision, Probing: config.Probing, Log: log, Changed: s.member,
	}); err != nil {
		return nil, nil, err
	}
	s.host = host.Resource(kind.FederatedResource).Namespace(kind.Namespace)
	for _, run := range []manager.Runnable{always(s.watch), always(s.read), manager.RunnableFunc(s.root.KeepCorrect)} {
		if err := mgr.Add(run); err != nil {
			return nil, nil, err
		}
	}
	return s, after(ready, s.known), nil
}

// kindPollInterval is the interval between two checks of a host that lacks the kind.
const kindPollInterval = 15 * time.Second

// watch waits until the host has the kind and the adapter may read it, and then watches. Most hosts never have it.
func (s *istio) watch(ctx context.Context) error {
	for {
		_, err := s.host.List(ctx, metav1.ListOptions{Limit: 1})
		if err == nil {
			break
		}
		again := kindPollInterval
		if federation.Missing(err) || apierrors.IsForbidden(err) {
			s.onceKnown.Do(func() { close(s.known) })
		} else {
			again = time.Second // the host's answer is unexpected
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(again):
		}
	}
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { _ = s.objects.Run(ctx) }) // they end with the context and return no other error
	running.Go(func() { _ = s.root.Run(ctx) })
	return nil
}

// read reads the members once the host distributes something to them; before that they need not have the kind.
func (s *istio) read(ctx context.Context) error { return s.whenCarried(ctx, s.fleet.Run) }

func (s *istio) whenCarried(ctx context.Context, run func(context.Context) error) error {
	select {
	case <-s.carried:
		return run(ctx)
	case <-ctx.Done():
		return nil
	}
}

// carries reports whether the host distributes Istio's policies.
func (s *istio) carries() bool {
	listed, _ := s.objects.State()
	return listed
}

// drivers returns the enforcers with their dependencies.
func (s *istio) drivers() *dataplane.Drivers {
	return &dataplane.Drivers{NoHTTP: s.all.inspector.NoHTTP, Changed: s.all.requeueAll, Carried: func() (bool, message.Message) {
		if !s.carries() {
			return false, message.HostIstioNotCarried()
		}
		return true, s.root.Problem()
	}}
}

// federated handles an event about a Federated policy, or about its kind.
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

// look records when everything is known, and triggers what depends on it.
func (s *istio) look() {
	listed, err := s.objects.State()
	if (listed || err != nil) && s.root.Known() {
		s.onceKnown.Do(func() { close(s.known) })
	}
	s.all.requeueAll()
}

// member handles an event about an object in a member, or about the member.
func (s *istio) member(cluster, object string) {
	if object == "" {
		s.all.requeueAll()
		return
	}
	s.all.onMemberObject(cluster, federation.IstioPolicy.Key(object))
}

// errNotCarried reports that the host distributes no such objects, so no member has any.
var errNotCarried = errors.New("the host carries no such objects")

// membersIfCarried are the members, if the host distributes the kind.
type membersIfCarried struct {
	federation.Members
	carries func() bool
}

// Registry returns an error while the kind is not distributed.
func (m membersIfCarried) Registry() (bool, error) {
	if !m.carries() {
		return false, errNotCarried
	}
	return m.Members.Registry()
}

// Package istiodistribution distributes Istio's policies to the members, if the host has the kind that KubeFed needs for it.
// Most hosts never have it; then only the check for its presence runs.
package istiodistribution

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/acp-io/acp/controllers/startup"
	"github.com/acp-io/acp/internal/backoff"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
)

// Distribution has Istio's policies on the host and in the members.
type Distribution struct {
	Objects *federation.Objects
	Fleet   *federation.Fleet

	root   *federation.RootNamespace
	config Config
	// host is used to check whether the kind is installed.
	host dynamic.ResourceInterface
	// known is closed when it is known whether the host has the kind, and supported when it has.
	known, supported         chan struct{}
	onceKnown, onceSupported sync.Once
}

// Config is the configuration of a Distribution.
type Config struct {
	// Fleet configures how the members are read; its Kind and Changed are not used.
	Fleet federation.FleetConfig
	// HostObject is called for an event about a Federated policy, and MemberObject for one about an object in a member. The
	// names are keys of federation.IstioPolicy.
	HostObject   func(key, resource string)
	MemberObject func(cluster, key string)
	// KindChanged is called when the host begins or ceases to have the kind.
	KindChanged func()
	// Changed is called when it changed what can be distributed, or a member was registered, lost or found again.
	Changed func()
	// Pauses is the clock of the time between two checks for the kind; nil means the real one.
	Pauses clock.WithTicker
}

// New returns a Distribution that is idle until it is added to a manager.
func New(config Config) (*Distribution, error) {
	if config.Pauses == nil {
		config.Pauses = clock.RealClock{}
	}
	d := &Distribution{config: config, known: make(chan struct{}), supported: make(chan struct{})}
	kind, host, log := federation.IstioPolicy, config.Fleet.Host, config.Fleet.Log
	d.Objects = federation.NewObjects(host, kind, log, d.onHostObject)
	d.root = federation.NewRootNamespace(host, kind, log, d.update)
	d.host = host.Resource(kind.FederatedResource).Namespace(kind.Namespace)
	fleet := config.Fleet
	fleet.Kind, fleet.Changed = kind, d.onMemberObject
	var err error
	d.Fleet, err = federation.NewFleet(fleet)
	return d, err
}

// AddToManager runs the distribution. The returned Ready also waits until it is known whether the host has the kind.
func (d *Distribution) AddToManager(mgr manager.Manager, ready startup.Ready) (startup.Ready, error) {
	// The members are read once the host distributes something to them; before that they need not have the kind.
	for _, run := range []manager.Runnable{
		startup.EveryReplica(d.watch), startup.WhenClosed(d.supported, d.Fleet.Run), manager.RunnableFunc(d.root.KeepCorrect),
	} {
		if err := mgr.Add(run); err != nil {
			return nil, err
		}
	}
	return startup.After(ready, d.known), nil
}

const (
	// kindPollInterval is the interval between two checks of a host that lacks the kind.
	kindPollInterval = 15 * time.Second
	// hostRetryInterval is the interval between two checks of a host that does not say whether it has the kind.
	hostRetryInterval = time.Second
)

// watch waits until the host has the kind and the adapter may read it, and then watches.
func (d *Distribution) watch(ctx context.Context) error {
	for {
		_, err := d.host.List(ctx, metav1.ListOptions{Limit: 1})
		if err == nil {
			break
		}
		delay := kindPollInterval
		if federation.IsKindNotInstalled(err) || apierrors.IsForbidden(err) {
			d.onceKnown.Do(func() { close(d.known) })
		} else {
			delay = hostRetryInterval // the host's answer is unexpected
		}
		if !backoff.Pause(ctx, d.config.Pauses, delay) {
			return nil
		}
	}
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { _ = d.Objects.Run(ctx) }) // they end with the context and return no other error
	running.Go(func() { _ = d.root.Run(ctx) })
	return nil
}

// Supported returns a channel that is closed when the host distributes Istio's policies.
func (d *Distribution) Supported() <-chan struct{} { return d.supported }

// Kind returns the kind that is distributed.
func (d *Distribution) Kind() federation.Kind { return federation.IstioPolicy }

// IsSupported reports whether the host distributes Istio's policies.
func (d *Distribution) IsSupported() bool {
	listed, _ := d.Objects.State()
	return listed
}

// Problem returns the reason why policies that the host distributes have no effect, or zero. It returns false and a reason
// if the host distributes none.
func (d *Distribution) Problem() (supported bool, why message.Message) {
	if !d.IsSupported() {
		return false, message.HostIstioNotCarried()
	}
	return true, d.root.Problem()
}

// Reserved returns the keys of a member's objects with ACP's reserved name or label.
func (d *Distribution) Reserved(cluster string) []string {
	if !d.IsSupported() {
		return nil
	}
	var keys []string
	for _, name := range d.Fleet.Reserved(cluster) {
		keys = append(keys, federation.IstioPolicy.Key(name))
	}
	return keys
}

// onHostObject handles an event about a Federated policy, or about its kind.
func (d *Distribution) onHostObject(name, resource string) {
	if name != "" {
		d.config.HostObject(federation.IstioPolicy.Key(name), resource)
		return
	}
	if d.IsSupported() {
		d.onceSupported.Do(func() { close(d.supported) })
	}
	d.config.KindChanged()
	d.update()
}

// update records when everything is known, and triggers what depends on it.
func (d *Distribution) update() {
	listed, err := d.Objects.State()
	if (listed || err != nil) && d.root.Known() {
		d.onceKnown.Do(func() { close(d.known) })
	}
	d.config.Changed()
}

// onMemberObject handles an event about an object in a member, or about the member.
func (d *Distribution) onMemberObject(cluster, object string) {
	if object == "" {
		d.config.Changed()
		return
	}
	d.config.MemberObject(cluster, federation.IstioPolicy.Key(object))
}

// errUnsupported means that the host distributes no such objects, so no member has any.
var errUnsupported = errors.New("the host distributes no policies of Istio")

// Members returns the members, of which there are none while the host does not distribute the kind.
func (d *Distribution) Members() startup.Fleet { return supportedMembers{d.Fleet, d} }

type supportedMembers struct {
	federation.Members
	distribution *Distribution
}

// Registry returns an error while the kind is not distributed.
func (m supportedMembers) Registry() (bool, error) {
	if !m.distribution.IsSupported() {
		return false, errUnsupported
	}
	return m.Members.Registry()
}

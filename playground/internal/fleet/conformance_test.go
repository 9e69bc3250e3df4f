package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/guard"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/propagation"
	"github.com/acp-io/acp/internal/propagation/conformance"
	"github.com/acp-io/acp/internal/propagation/kubefed"
	"github.com/acp-io/acp/playground/internal/supervisor"
)

// conformanceTimeout bounds each wait of the suite. KubeFed takes up to a minute and a half to continue in a member that was away.
const conformanceTimeout = 3 * time.Minute

// TestConformanceOfTheRealKubeFed runs the suite of the engines with KubeFed's controller-manager. The members are guarded, and are
// reached through proxies that can be cut.
func TestConformanceOfTheRealKubeFed(t *testing.T) {
	t.Parallel() // it mostly waits, as does the test of moves
	k := &kubeFedEngine{T: t, gates: map[string]*gate{}}
	k.f, k.s = newFleetOf(t, t.TempDir(), Config{Guarded: true, Between: k.between})
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	if err := k.f.Up(ctx, nil); err != nil {
		t.Fatal(err)
	}
	host := k.f.Applier(Host).Client
	k.registrations = federation.Registrations{Host: host, Namespace: KubeFedNamespace}
	objects := federation.NewObjects(host, federation.CiliumPolicy, logr.Discard(), func(string, string) {})
	read, err := federation.NewFleet(federation.FleetConfig{Host: host, KubeFedNamespace: KubeFedNamespace, CredentialsNamespace: ACPNamespace,
		Kind: federation.CiliumPolicy, Revision: enforcer.Revision, Log: logr.Discard(), Changed: func(string, string) {}})
	if err != nil {
		t.Fatal(err)
	}
	k.run(objects.Run)
	k.run(read.Run)
	k.until("the members are read", func() error {
		if listed, err := objects.State(); !listed {
			return fmt.Errorf("the records are not listed: %w", err)
		}
		for _, m := range Members() {
			if o := read.Observe(m, ""); !o.Reachable {
				return fmt.Errorf("%s: %s", m, o.Message.Text)
			}
		}
		return nil
	})
	conformance.Run(t, conformance.Fleet{
		Kind:  federation.CiliumPolicy,
		Store: propagation.Store{Host: objects, Engines: propagation.NewEngines(read, kubefed.Engine{})},
		Read:  read, Host: host, KubeFedNamespace: KubeFedNamespace, Members: k.breakGlass(),
		Disconnect: func(m string) {
			k.gates[m].cut(true)
			k.untilReady(m, false)
		},
		Reconnect: func(m string) { k.gates[m].cut(false) },
		Stop:      k.stop, Start: k.start,
		Quarantine: func(m string) {
			k.changeRegistration(func() error { return k.registrations.Suspend(t.Context(), m, message.Verbatim("a test")) })
			k.untilReady(m, false)
		},
		Release: func(m string) {
			k.changeRegistration(func() error { return k.registrations.Resume(t.Context(), m) })
		},
		Capabilities: kubefed.Engine{}.Capabilities(), Timeout: conformanceTimeout,
	})
}

// kubeFedEngine is a fleet whose KubeFed is under test.
type kubeFedEngine struct {
	*testing.T
	f             *Fleet
	s             *supervisor.Supervisor
	gates         map[string]*gate
	registrations federation.Registrations
}

// changeRegistration repeats a change that KubeFed's writes of the status interrupt, as the adapter does.
func (k *kubeFedEngine) changeRegistration(change func() error) {
	k.Helper()
	k.must(retry.RetryOnConflict(retry.DefaultBackoff, change))
}

// between puts a gate in front of a member.
func (k *kubeFedEngine) between(member, address string) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	k.Cleanup(func() { l.Close() })
	k.gates[member] = &gate{}
	go relay(l, "tcp", address, k.gates[member])
	return l.Addr().String(), nil
}

// breakGlass returns clients of the members that the guard admits.
func (k *kubeFedEngine) breakGlass() map[string]dynamic.Interface {
	k.Helper()
	out := map[string]dynamic.Interface{}
	for _, m := range Members() {
		config := k.f.AdminConfig(m)
		config.Impersonate = rest.ImpersonationConfig{UserName: "operator", Groups: []string{guard.BreakGlass, "system:masters"}}
		client, err := dynamic.NewForConfig(config)
		k.must(err)
		out[m] = client
	}
	return out
}

// run runs a part until the test ends.
func (k *kubeFedEngine) run(part func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(k.Context()))
	ended := make(chan error, 1)
	go func() { ended <- part(ctx) }()
	k.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			k.Error(err)
		}
	})
}

// stop kills KubeFed, and waits until its process has ended.
func (k *kubeFedEngine) stop() {
	k.Helper()
	k.must(k.s.Kill("kubefed"))
	k.until("KubeFed has ended", func() error {
		for _, p := range k.s.Status() {
			if p.Name == "kubefed" && p.State != supervisor.StateDown {
				return errors.New(string(p.State))
			}
		}
		return nil
	})
}

func (k *kubeFedEngine) start() {
	k.Helper()
	ctx, cancel := context.WithTimeout(k.Context(), conformanceTimeout)
	defer cancel()
	k.must(k.s.StartAndWait(ctx, "kubefed"))
}

// untilReady waits until KubeFed finds a member ready, or not ready.
func (k *kubeFedEngine) untilReady(member string, ready bool) {
	k.Helper()
	registrations := k.f.Applier(Host).Client.Resource(kubeFedClusterResource).Namespace(KubeFedNamespace)
	k.until(fmt.Sprintf("KubeFed finds %s ready: %v", member, ready), func() error {
		u, err := registrations.Get(k.Context(), member, metav1.GetOptions{})
		if err == nil && isTrue(u, "Ready") != ready {
			err = errors.New("it does not")
		}
		return err
	})
}

func (k *kubeFedEngine) until(what string, check func() error) {
	k.Helper()
	ctx, cancel := context.WithTimeout(k.Context(), conformanceTimeout)
	defer cancel()
	if err := poll(ctx, "timed out waiting until "+what, func(context.Context) error { return check() }); err != nil {
		k.Fatal(err)
	}
}

func (k *kubeFedEngine) must(err error) {
	k.Helper()
	if err != nil {
		k.Fatal(err)
	}
}

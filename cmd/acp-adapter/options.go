package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"time"

	"k8s.io/client-go/tools/leaderelection"

	"github.com/acp-io/acp/controllers/memberwriter"
	"github.com/acp-io/acp/controllers/protectedresource"
	"github.com/acp-io/acp/controllers/rotation"
	"github.com/acp-io/acp/controllers/writequeue"
	"github.com/acp-io/acp/internal/configuration"
	"github.com/acp-io/acp/internal/serving"
	"github.com/acp-io/acp/internal/tracing/otlp"
	"github.com/acp-io/acp/internal/version"
)

// options are the settings of the adapter.
type options struct {
	kubeconfig         string
	kubefedNamespace   string
	namespace          string
	account, portal    string // service accounts
	tokenChecks        time.Duration
	healthAddress      string
	metricsAddress     string
	metricsCertificate serving.Certificate
	pprofAddress       string
	webhookAddress     string
	webhookCertificate serving.Certificate
	shutdownGrace      time.Duration
	leaderElect        bool
	lease              lease
	push               writequeue.Limits
	directWrites       int
	workers            int
	tracing            otlp.Settings
	logFormat          string
	logLevel           slog.Level
	// explain adds to an error where the values of the settings that it names come from.
	explain func(error) error
}

// lease configures leader election.
type lease struct {
	// duration is how long other replicas wait after the last renewal, deadline how long a leader tries to renew the lease
	// before it exits, and retry the interval between two attempts.
	duration, deadline, retry time.Duration
}

// defaultLease makes another replica take over 5 to 10 seconds after the leader was killed. An outage of the host that is
// shorter than the deadline causes no change of leader. Standby replicas poll the lease every two to three seconds.
var defaultLease = lease{duration: 7 * time.Second, deadline: 5 * time.Second, retry: 1500 * time.Millisecond}

func (l lease) validate() error {
	switch {
	case l.retry < 100*time.Millisecond:
		return fmt.Errorf("--leader-elect-retry-period %s is less than 100ms", l.retry)
	case float64(l.deadline) <= leaderelection.JitterFactor*float64(l.retry):
		return fmt.Errorf(
			"--leader-elect-renew-deadline %s has to be more than %g times --leader-elect-retry-period %s",
			l.deadline,
			leaderelection.JitterFactor,
			l.retry,
		)
	case l.duration <= l.deadline:
		return fmt.Errorf(
			"--leader-elect-lease-duration %s has to be more than --leader-elect-renew-deadline %s, or two could write at the same time",
			l.duration,
			l.deadline,
		)
	}
	return nil
}

// maxWorkers bounds the concurrent requests that one flag can ask for.
const maxWorkers = 256

func validatePush(l writequeue.Limits) error {
	switch {
	case l.MaxPending < 1:
		return fmt.Errorf("--push-in-flight %d is less than 1: nothing that is not urgent would be written", l.MaxPending)
	case l.PendingTimeout < 100*time.Millisecond:
		return fmt.Errorf("--push-in-flight-timeout %s is less than 100ms", l.PendingTimeout)
	case l.LagTimeout < 0 || l.LagTimeout > l.PendingTimeout:
		return fmt.Errorf("--push-lag %s is not between 0 and --push-in-flight-timeout %s", l.LagTimeout, l.PendingTimeout)
	case !(l.Rate >= 0) || math.IsInf(l.Rate, 0):
		return fmt.Errorf("--push-rate %v is not a number of objects a second", l.Rate)
	case l.Rate > 0 && (l.Reserved < 0 || l.Burst <= l.Reserved):
		return fmt.Errorf("--push-burst %d has to be more than --push-reserve %d, or nothing that is not urgent would be written", l.Burst, l.Reserved)
	}
	return nil
}

// validatePprof accepts loopback addresses only: a profile of the heap contains what the adapter has in memory, and taking one costs
// processor time. In a pod, `kubectl port-forward` reaches the address.
func validatePprof(address string) error {
	if address == off {
		return nil
	}
	if err := serving.CheckAddress("pprof-address", address); err != nil {
		return err
	}
	if !serving.Loopback(address) {
		return fmt.Errorf("--pprof-address %s is not a loopback address: use for example 127.0.0.1:6060, and kubectl port-forward", address)
	}
	return nil
}

// off is the value of an address that disables it.
const off = "0"

// settings defines the settings of the adapter.
func settings(o *options) *configuration.Settings {
	s := configuration.New("acp-adapter", "acp-adapter writes access control policies for KubeFed and reports what is in force in the members.", version.String)

	f := s.Group("Host cluster")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig `file` of the host cluster; empty: the service account of the pod it runs in")
	f.StringVar(
		&o.namespace,
		"namespace",
		"acp-system",
		"`namespace` of ACP in the host cluster: of the Secrets acp-reader-<cluster> with the tokens for reading the members, "+
			"of the leader's lease, and of the Events that say who changed an object",
	)
	f.StringVar(&o.kubefedNamespace, "kubefed-namespace", "kube-federation-system", "`namespace` of the KubeFedClusters on the host")
	f.StringVar(
		&o.account,
		"service-account",
		"acp-adapter",
		"`name` of the adapter's service account in --namespace; its changes are not reported as made by others",
	)
	f.StringVar(
		&o.portal,
		"portal-service-account",
		"acp-portal",
		"`name` of the portal's service account in --namespace; its changes are not reported as made by others",
	)
	f.DurationVar(
		&o.tokenChecks,
		"token-check-interval",
		rotation.DefaultInterval,
		"`time` between two checks of the members' tokens: the longest time until KubeFed is notified of a replaced token",
	)

	f = s.Group("Listening")
	f.StringVar(&o.healthAddress, "health-address", "127.0.0.1:8081", "`address` of /livez, /readyz and /startupz, without TLS; 0: off")
	f.StringVar(&o.metricsAddress, "metrics-address", "127.0.0.1:8082", "`address` of /metrics, without login; 0: off")
	f.StringVar(
		&o.metricsCertificate.CertFile,
		"metrics-tls-cert-file",
		"",
		"`file` with the certificate for --metrics-address, read again when it changes; empty: plain HTTP",
	)
	f.StringVar(&o.metricsCertificate.KeyFile, "metrics-tls-key-file", "", "`file` with the key of that certificate")
	f.StringVar(
		&o.pprofAddress,
		"pprof-address",
		off,
		"`address` of /debug/pprof, without login and TLS, for profiles of processor time and memory: only a loopback address; 0: off",
	)
	f.StringVar(&o.webhookAddress, "webhook-address", "", "`address` of the validating webhook, as in deploy/webhook; empty: off")
	f.StringVar(&o.webhookCertificate.CertFile, "webhook-tls-cert-file", "", "`file` with the webhook's certificate; read again when it changes")
	f.StringVar(&o.webhookCertificate.KeyFile, "webhook-tls-key-file", "", "`file` with the key of the webhook's certificate")

	f = s.Group("Ending")
	f.DurationVar(
		&o.shutdownGrace,
		"shutdown-grace",
		20*time.Second,
		"`duration` from SIGTERM within which what is being reconciled ends, and the lease is given up; less than the pod's terminationGracePeriodSeconds",
	)

	f = s.Group("Replicas")
	f.BoolVar(&o.leaderElect, "leader-elect", true, "work only while holding the lease; needed with more than one replica")
	f.DurationVar(
		&o.lease.duration,
		"leader-elect-lease-duration",
		defaultLease.duration,
		"`time` without a renewal of the lease after which another replica takes over",
	)
	f.DurationVar(
		&o.lease.deadline,
		"leader-elect-renew-deadline",
		defaultLease.deadline,
		"`time` after which a leader ends that cannot write to the host cluster: longer than the host's API servers need to fail over",
	)
	f.DurationVar(
		&o.lease.retry,
		"leader-elect-retry-period",
		defaultLease.retry,
		"`time` between two attempts to renew or acquire the lease; each replica sends a request to the host in this interval",
	)

	f = s.Group("Work")
	o.push = writequeue.DefaultLimits
	f.IntVar(
		&o.push.MaxPending,
		"push-in-flight",
		o.push.MaxPending,
		"maximum number of `objects` not yet propagated to a member; beyond it, non-urgent writes wait for that member",
	)
	f.DurationVar(
		&o.push.PendingTimeout,
		"push-in-flight-timeout",
		o.push.PendingTimeout,
		"`time` after which an object no longer counts as in flight; KubeFed has as long for an urgent one before the adapter writes it itself",
	)
	f.DurationVar(
		&o.push.LagTimeout,
		"push-lag",
		o.push.LagTimeout,
		"`time` after which other members no longer wait for a member that lacks an object they have",
	)
	f.Float64Var(&o.push.Rate, "push-rate", o.push.Rate, "objects a second that KubeFed's client writes into a member; 0: not limited by rate")
	f.IntVar(&o.push.Burst, "push-burst", o.push.Burst, "`objects` that KubeFed's client writes into a member at once after a pause")
	f.IntVar(&o.push.Reserved, "push-reserve", o.push.Reserved, "`objects` of the burst that are kept for urgent changes")
	f.IntVar(
		&o.directWrites,
		"direct-writes",
		memberwriter.DefaultPerMember,
		"`objects` of policies, and as many of groups of addresses, that the adapter itself writes into a member at the same time: "+
			"all with the direct engine, urgent ones while KubeFed is behind",
	)
	f.IntVar(&o.workers, "workers", protectedresource.DefaultWorkers, "`resources` that are reconciled at the same time")
	o.tracing.Define(s)
	s.Logging(&o.logFormat, &o.logLevel, "json")
	return s
}

// parse parses the settings. It returns configuration.ErrAnswered if the command line requested the help or the version,
// which it has then written.
func parse(args []string, out io.Writer) (options, error) {
	var o options
	s := settings(&o)
	o.explain = s.Explain
	if err := s.ParseProcess(args, out); err != nil {
		return o, err
	}
	if err := o.validate(); err != nil {
		return o, s.Explain(err)
	}
	return o, s.Print(out)
}

func (o *options) validate() error {
	for flag, value := range map[string]string{
		"kubefed-namespace": o.kubefedNamespace, "namespace": o.namespace, "service-account": o.account, "portal-service-account": o.portal,
	} {
		if value == "" {
			return fmt.Errorf("--%s must not be empty", flag)
		}
	}
	for flag, value := range map[string]string{"health-address": o.healthAddress, "metrics-address": o.metricsAddress} {
		if value == off {
			continue
		}
		if err := serving.CheckAddress(flag, value); err != nil {
			return err
		}
	}
	if err := validatePprof(o.pprofAddress); err != nil {
		return err
	}
	if o.shutdownGrace < time.Second {
		return fmt.Errorf("--shutdown-grace %s is less than a second", o.shutdownGrace)
	}
	if err := validatePush(o.push); err != nil {
		return err
	}
	for flag, n := range map[string]int{"direct-writes": o.directWrites, "workers": o.workers} {
		if n < 1 || n > maxWorkers {
			return fmt.Errorf("--%s %d is not between 1 and %d", flag, n, maxWorkers)
		}
	}
	if o.tokenChecks < time.Second {
		return fmt.Errorf("--token-check-interval %s is less than a second", o.tokenChecks)
	}
	if o.webhookAddress != "" {
		if err := serving.CheckAddress("webhook-address", o.webhookAddress); err != nil {
			return err
		}
	}
	if set := o.webhookAddress != ""; set != (o.webhookCertificate.CertFile != "") || set != (o.webhookCertificate.KeyFile != "") {
		return errors.New("--webhook-address, --webhook-tls-cert-file and --webhook-tls-key-file are needed together")
	}
	if err := o.metricsCertificate.Validate("metrics-tls-cert-file", "metrics-tls-key-file"); err != nil {
		return err
	}
	if err := o.tracing.Validate(); err != nil {
		return err
	}
	return o.lease.validate()
}

package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/leaderelection"

	"github.com/acp-io/acp/controllers/memberwriter"
	"github.com/acp-io/acp/controllers/protectedresource"
	"github.com/acp-io/acp/controllers/rotation"
	"github.com/acp-io/acp/controllers/writequeue"
)

// options are the flags.
type options struct {
	kubeconfig           string
	kubefedNamespace     string
	credentialsNamespace string
	tokenChecks          time.Duration
	healthAddress        string
	metricsAddress       string
	webhookAddress       string
	webhookCert          string
	webhookKey           string
	leaderElect          bool
	lease                lease
	push                 writequeue.Limits
	directWrites         int
	workers              int
	logFormat            string
	logLevel             slog.Level
	version              bool
}

// lease is how replicas of the adapter take turns.
type lease struct {
	// duration is how long the others wait for a leader that was not heard of, deadline how long a leader tries to be heard
	// before it ends, and retry the time between two attempts.
	duration, deadline, retry time.Duration
}

// defaultLease: another one writes some 5 to 10 seconds after a leader was killed. A host that does not answer for less than
// the deadline costs no leader; replicas that only wait ask it every two or three seconds.
var defaultLease = lease{duration: 7 * time.Second, deadline: 5 * time.Second, retry: 1500 * time.Millisecond}

func (l lease) validate() error {
	switch {
	case l.retry < 100*time.Millisecond:
		return fmt.Errorf("--leader-elect-retry-period %s is less than 100ms", l.retry)
	case float64(l.deadline) <= leaderelection.JitterFactor*float64(l.retry):
		return fmt.Errorf("--leader-elect-renew-deadline %s has to be more than %g times --leader-elect-retry-period %s", l.deadline, leaderelection.JitterFactor, l.retry)
	case l.duration <= l.deadline:
		return fmt.Errorf("--leader-elect-lease-duration %s has to be more than --leader-elect-renew-deadline %s, or two could write at the same time", l.duration, l.deadline)
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

func parse(args []string, help io.Writer) (options, error) {
	var o options
	f := pflag.NewFlagSet("acp-adapter", pflag.ContinueOnError)
	f.SetOutput(help)
	f.SortFlags = false
	f.Usage = func() {
		_, _ = fmt.Fprintf(help, "acp-adapter hands access control policies to KubeFed and tells what is in force in the members.\n\nFlags:\n%s", f.FlagUsages())
	}
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig `file` of the host cluster; empty: the service account of the pod it runs in")
	f.StringVar(&o.kubefedNamespace, "kubefed-namespace", "kube-federation-system", "namespace of the KubeFedClusters on the host")
	f.StringVar(&o.credentialsNamespace, "credentials-namespace", "acp-system",
		"namespace of the Secrets acp-reader-<cluster> with the tokens for reading the members, and of the leader's lease")
	f.DurationVar(&o.tokenChecks, "token-check-interval", rotation.DefaultInterval, "`time` between two looks at the members' tokens: how soon KubeFed hears of one that was replaced")
	f.StringVar(&o.healthAddress, "health-address", "127.0.0.1:8081", "`address` of /healthz and /readyz; 0: off")
	f.StringVar(&o.metricsAddress, "metrics-address", "127.0.0.1:8082", "`address` of /metrics; 0: off")
	f.StringVar(&o.webhookAddress, "webhook-address", "", "`address` of the validating webhook, as in deploy/webhook; empty: off")
	f.StringVar(&o.webhookCert, "webhook-cert", "", "`file` with the webhook's TLS certificate; read again when it changes")
	f.StringVar(&o.webhookKey, "webhook-key", "", "`file` with the key of the webhook's certificate")
	f.BoolVar(&o.leaderElect, "leader-elect", true, "work only while holding the lease; needed with more than one replica")
	f.DurationVar(&o.lease.duration, "leader-elect-lease-duration", defaultLease.duration, "`time` after which another replica takes over from a leader that is not heard of")
	f.DurationVar(&o.lease.deadline, "leader-elect-renew-deadline", defaultLease.deadline, "`time` after which a leader ends that cannot write to the host cluster")
	f.DurationVar(&o.lease.retry, "leader-elect-retry-period", defaultLease.retry, "`time` between two attempts to hold the lease or to get it")
	o.push = writequeue.DefaultLimits
	f.IntVar(&o.push.MaxPending, "push-in-flight", o.push.MaxPending, "`objects` that KubeFed may still have to bring to a member before what is not urgent waits for that member")
	f.DurationVar(&o.push.PendingTimeout, "push-in-flight-timeout", o.push.PendingTimeout, "`time` after which an object no longer counts as in flight; KubeFed has as long for an urgent one before the adapter writes it itself")
	f.DurationVar(&o.push.LagTimeout, "push-lag", o.push.LagTimeout, "`time` after which other members no longer wait for a member that lacks an object they have")
	f.Float64Var(&o.push.Rate, "push-rate", o.push.Rate, "objects a second that KubeFed's client writes into a member; 0: not limited by rate")
	f.IntVar(&o.push.Burst, "push-burst", o.push.Burst, "`objects` that KubeFed's client writes into a member at once after a rest")
	f.IntVar(&o.push.Reserved, "push-reserve", o.push.Reserved, "`objects` of the burst that are kept for urgent changes")
	f.IntVar(&o.directWrites, "direct-writes", memberwriter.DefaultPerMember, "urgent `objects` that the adapter itself writes into a member at the same time while KubeFed lags")
	f.IntVar(&o.workers, "workers", protectedresource.DefaultWorkers, "`resources` that are reconciled at the same time")
	f.StringVar(&o.logFormat, "log-format", "json", "json or text")
	f.TextVar(&o.logLevel, "log-level", slog.LevelInfo, "lowest `level` that is logged: debug, info, warn or error")
	f.BoolVar(&o.version, "version", false, "print the version and exit")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	return o, o.validate()
}

func (o *options) validate() error {
	for flag, value := range map[string]string{"kubefed-namespace": o.kubefedNamespace, "credentials-namespace": o.credentialsNamespace} {
		if value == "" {
			return fmt.Errorf("--%s must not be empty", flag)
		}
	}
	for flag, value := range map[string]string{"health-address": o.healthAddress, "metrics-address": o.metricsAddress} {
		if value == "0" {
			continue
		}
		if _, _, err := net.SplitHostPort(value); err != nil {
			return fmt.Errorf("--%s %q is not HOST:PORT", flag, value)
		}
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
		if _, _, err := net.SplitHostPort(o.webhookAddress); err != nil {
			return fmt.Errorf("--webhook-address %q is not HOST:PORT", o.webhookAddress)
		}
	}
	if set := o.webhookAddress != ""; set != (o.webhookCert != "") || set != (o.webhookKey != "") {
		return errors.New("--webhook-address, --webhook-cert and --webhook-key are needed together")
	}
	if err := o.lease.validate(); err != nil {
		return err
	}
	if o.logFormat != "json" && o.logFormat != "text" {
		return fmt.Errorf("--log-format %q is neither json nor text", o.logFormat)
	}
	return nil
}

package main

import (
	"fmt"
	"io"
	"net"
	"runtime/debug"

	"github.com/spf13/pflag"
)

// options are the flags.
type options struct {
	kubeconfig           string
	kubefedNamespace     string
	credentialsNamespace string
	healthAddress        string
	metricsAddress       string
	leaderElect          bool
	logFormat            string
	logLevel             string
	version              bool
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
	f.StringVar(&o.healthAddress, "health-address", "127.0.0.1:8081", "`address` of /healthz and /readyz; 0: off")
	f.StringVar(&o.metricsAddress, "metrics-address", "127.0.0.1:8082", "`address` of /metrics; 0: off")
	f.BoolVar(&o.leaderElect, "leader-elect", true, "work only while holding the lease; needed with more than one replica")
	f.StringVar(&o.logFormat, "log-format", "json", "json or text")
	f.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error")
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
	if o.logFormat != "json" && o.logFormat != "text" {
		return fmt.Errorf("--log-format %q is neither json nor text", o.logFormat)
	}
	return nil
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "acp-adapter (unknown version)"
	}
	return "acp-adapter " + info.Main.Version
}

package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/acp-io/acp/internal/audit/hubble"
)

type member struct{ name, address string }

type options struct {
	kubeconfig    string
	storePath     string
	members       []member
	tls           hubble.TLSFiles
	healthAddress string
	retention     time.Duration
	logFormat     string
	logLevel      slog.Level
	version       bool
}

const usage = `flow-collector takes in the flows of the member clusters, decides each connection with the policies of the host
cluster, and keeps roll-ups in the flow store.

Usage:
  flow-collector [--kubeconfig FILE] --store sqlite:FILE --hubble NAME=HOST:PORT [--hubble ...]
                 --hubble-tls-ca FILE --hubble-tls-cert FILE --hubble-tls-key FILE --hubble-tls-server-name NAME

Flags:
`

// parse returns pflag.ErrHelp after it has written the help to out.
func parse(args []string, out io.Writer) (options, error) {
	var o options
	var store string
	var members []string
	f := pflag.NewFlagSet("flow-collector", pflag.ContinueOnError)
	f.SetOutput(io.Discard) // errors are written by the caller, once
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig `file` of the host cluster, where the policies are; empty: the service account of the pod it runs in")
	f.StringVar(&store, "store", "", "flow store: sqlite:FILE; the file is created when it is missing")
	f.StringArrayVar(&members, "hubble", nil, "member cluster and its Hubble relay, NAME=HOST:PORT; once for each member")
	f.StringVar(&o.tls.CA, "hubble-tls-ca", "", "certificate authority of the relays; this file and the next two are read again when they change")
	f.StringVar(&o.tls.Cert, "hubble-tls-cert", "", "the collector's own certificate")
	f.StringVar(&o.tls.Key, "hubble-tls-key", "", "the key of that certificate")
	f.StringVar(&o.tls.ServerName, "hubble-tls-server-name", "", "name in the relays' certificates")
	f.StringVar(&o.healthAddress, "health-address", "127.0.0.1:8083", "address of /healthz, /readyz and /metrics")
	f.DurationVar(&o.retention, "retention", 30*24*time.Hour, "how long roll-ups and losses are kept")
	f.StringVar(&o.logFormat, "log-format", "text", "`format` of the log: text or json")
	f.TextVar(&o.logLevel, "log-level", slog.LevelInfo, "lowest `level` that is logged: debug, info, warn or error")
	f.BoolVar(&o.version, "version", false, "print the version and exit")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			_, err := io.WriteString(out, usage+f.FlagUsages())
			return o, errors.Join(pflag.ErrHelp, err)
		}
		return o, err
	}
	if o.version {
		return o, nil
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	var err error
	if o.storePath, err = storePath(store); err != nil {
		return o, err
	}
	if o.members, err = parseMembers(members); err != nil {
		return o, err
	}
	return o, o.validate()
}

func (o *options) validate() error {
	for _, file := range []struct{ flag, path string }{
		{"hubble-tls-ca", o.tls.CA}, {"hubble-tls-cert", o.tls.Cert}, {"hubble-tls-key", o.tls.Key},
	} {
		if file.path == "" {
			return fmt.Errorf("--%s is missing: give it a file", file.flag)
		}
		if _, err := os.Stat(file.path); err != nil {
			return fmt.Errorf("--%s: %w", file.flag, err)
		}
	}
	if o.tls.ServerName == "" {
		return errors.New("--hubble-tls-server-name is missing: give it the name that is in the relays' certificates")
	}
	if err := hostPort(o.healthAddress); err != nil {
		return fmt.Errorf("--health-address %q: %w", o.healthAddress, err)
	}
	if o.retention < time.Hour {
		return fmt.Errorf("--retention %s: keep at least one hour", o.retention)
	}
	if o.logFormat != "text" && o.logFormat != "json" {
		return fmt.Errorf("--log-format %q: use text or json", o.logFormat)
	}
	return nil
}

func storePath(s string) (string, error) {
	kind, path, ok := strings.Cut(s, ":")
	if !ok || kind != "sqlite" || path == "" {
		return "", fmt.Errorf("--store %q: give it as sqlite:FILE", s)
	}
	return path, nil
}

// clusterName is what KubeFedCluster allows, see v1alpha1.ClusterName.
var clusterName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

func parseMembers(list []string) ([]member, error) {
	if len(list) == 0 {
		return nil, errors.New("--hubble is missing: give it as NAME=HOST:PORT, once for each member cluster")
	}
	seen := map[string]bool{}
	out := make([]member, 0, len(list))
	for _, s := range list {
		name, address, ok := strings.Cut(s, "=")
		if !ok || !clusterName.MatchString(name) {
			return nil, fmt.Errorf("--hubble %q: give it as NAME=HOST:PORT, with the name of the member cluster", s)
		}
		if err := hostPort(address); err != nil {
			return nil, fmt.Errorf("--hubble %q: %w", s, err)
		}
		if seen[name] {
			return nil, fmt.Errorf("--hubble %q: member %s is there twice", s, name)
		}
		seen[name] = true
		out = append(out, member{name, address})
	}
	return out, nil
}

func hostPort(s string) error {
	host, port, err := net.SplitHostPort(s)
	if err != nil || host == "" || port == "" {
		return errors.New("an address is HOST:PORT")
	}
	return nil
}

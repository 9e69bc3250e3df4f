package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/acp-io/acp/internal/audit/flowstore"
	"github.com/acp-io/acp/internal/audit/hubble"
)

// member is a source of flows: a relay's address, or a file of Hubble's exporter.
type member struct{ name, address, file string }

type options struct {
	kubeconfig    string
	store         flowstore.Address
	members       []member
	tls           hubble.TLSFiles
	healthAddress string
	flows         hubble.Keep
	retention     time.Duration
	flowRetention time.Duration
	spoolDir      string
	spoolBytes    int64
	tap           tapOptions
	shareAs       string
	logFormat     string
	logLevel      slog.Level
	version       bool
}

const usage = `flow-collector takes in the flows of the member clusters, decides each connection with the policies of the host
cluster, and keeps roll-ups in the flow store.

Usage:
  flow-collector [--kubeconfig FILE] --store sqlite:FILE|clickhouse://HOST:PORT/DB --hubble NAME=HOST:PORT [--hubble ...]
                 --hubble-tls-ca FILE --hubble-tls-cert FILE --hubble-tls-key FILE --hubble-tls-server-name NAME
  flow-collector [--kubeconfig FILE] --store ... --exporter NAME=FILE|- [--exporter ...]

Flags:
`

// parse returns pflag.ErrHelp after it has written the help to out.
func parse(args []string, out io.Writer) (options, error) {
	var o options
	var relays, exporters []string
	var store, flows, spoolSize string
	f := pflag.NewFlagSet("flow-collector", pflag.ContinueOnError)
	f.SetOutput(io.Discard) // errors are written by the caller, once
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig `file` of the host cluster, where the policies are; empty: the service account of the pod it runs in")
	f.StringVar(&store, "store", "", "flow store: sqlite:FILE, which is created when it is missing, clickhouse://USER@HOST:PORT/DATABASE, or @FILE with such an address in it")
	f.StringArrayVar(&relays, "hubble", nil, "member cluster and its Hubble relay, NAME=HOST:PORT; once for each member")
	f.StringArrayVar(&exporters, "exporter", nil, "member cluster and the file that its Hubble exporter writes, NAME=FILE; NAME=- reads the standard input")
	f.StringVar(&o.tls.CA, "hubble-tls-ca", "", "certificate authority of the relays; this file and the next two are read again when they change")
	f.StringVar(&o.tls.Cert, "hubble-tls-cert", "", "the collector's own certificate")
	f.StringVar(&o.tls.Key, "hubble-tls-key", "", "the key of that certificate")
	f.StringVar(&o.tls.ServerName, "hubble-tls-server-name", "", "name in the relays' certificates")
	f.StringVar(&o.healthAddress, "health-address", "127.0.0.1:8083", "address of /healthz, /readyz and /metrics")
	f.DurationVar(&o.retention, "retention", 30*24*time.Hour, "how long roll-ups and losses are kept")
	f.StringVar(&flows, "flows", "", "`which` flows are kept one by one, beside the counts of all: all, refused or none; empty: refused with sqlite, all with clickhouse")
	f.DurationVar(&o.flowRetention, "flow-retention", 3*24*time.Hour, "how long flows are kept one by one")
	f.StringVar(&o.spoolDir, "spool", "", "`folder` for what is counted while the store is away; empty: only the memory")
	f.StringVar(&spoolSize, "spool-size", "1Gi", "most that the spool may hold")
	f.StringVar(&o.tap.to, "tap", "", "write the audit log as JSON lines to stdout, file:PATH or https://...; empty: nowhere")
	f.StringVar(&o.tap.fileSize, "tap-file-size", "100Mi", "size at which the tap's file is rotated; five are kept")
	f.StringVar(&o.tap.tokenFile, "tap-token-file", "", "`file` with the bearer token of the tap's webhook")
	f.StringVar(&o.shareAs, "share-as", "", "share the members with other collectors on the same store, by leases, under this `name`; empty: this one follows all")
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
	if o.store, err = flowstore.Parse(store, os.ReadFile); err != nil {
		return o, fmt.Errorf("--store: %w", err)
	}
	if o.members, err = parseMembers(relays, exporters); err != nil {
		return o, err
	}
	if o.spoolBytes, err = size("spool-size", spoolSize); err != nil {
		return o, err
	}
	if o.tap.bytes, err = size("tap-file-size", o.tap.fileSize); err != nil {
		return o, err
	}
	if o.flows = hubble.Keep(flows); flows == "" {
		o.flows = keeps(o.store)
	}
	return o, o.validate()
}

func (o *options) validate() error {
	switch o.flows {
	case hubble.KeepAll, hubble.KeepRefused, hubble.KeepNone:
	default:
		return fmt.Errorf("--flows %q: use all, refused or none", o.flows)
	}
	if slices.ContainsFunc(o.members, func(m member) bool { return m.address != "" }) {
		if err := o.validateTLS(); err != nil {
			return err
		}
	}
	if err := hostPort(o.healthAddress); err != nil {
		return fmt.Errorf("--health-address %q: %w", o.healthAddress, err)
	}
	if o.retention < time.Hour {
		return fmt.Errorf("--retention %s: keep at least one hour", o.retention)
	}
	if o.flowRetention < time.Hour || o.flowRetention > o.retention {
		return fmt.Errorf("--flow-retention %s: keep at least one hour, and no longer than --retention %s", o.flowRetention, o.retention)
	}
	if err := o.tap.validate(); err != nil {
		return err
	}
	if o.logFormat != "text" && o.logFormat != "json" {
		return fmt.Errorf("--log-format %q: use text or json", o.logFormat)
	}
	return nil
}

func (o *options) validateTLS() error {
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
	return nil
}

// size reads a number of bytes such as 100Mi.
func size(flag, s string) (int64, error) {
	q, err := resource.ParseQuantity(s)
	if err != nil || q.Value() < 1<<20 {
		return 0, fmt.Errorf("--%s %q: give at least one mebibyte, as 512Mi or 2Gi", flag, s)
	}
	return q.Value(), nil
}

// clusterName is what KubeFedCluster allows, see v1alpha1.ClusterName.
var clusterName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

func parseMembers(relays, exporters []string) ([]member, error) {
	if len(relays)+len(exporters) == 0 {
		return nil, errors.New("--hubble is missing: give it as NAME=HOST:PORT, once for each member cluster, or --exporter as NAME=FILE")
	}
	seen := map[string]bool{}
	var out []member
	add := func(flag, form, s string, of func(name, value string) (member, error)) error {
		name, value, ok := strings.Cut(s, "=")
		if !ok || value == "" || !clusterName.MatchString(name) {
			return fmt.Errorf("--%s %q: give it as %s, with the name of the member cluster", flag, s, form)
		}
		m, err := of(name, value)
		if err != nil {
			return fmt.Errorf("--%s %q: %w", flag, s, err)
		}
		if seen[name] {
			return fmt.Errorf("--%s %q: member %s is there twice", flag, s, name)
		}
		seen[name] = true
		out = append(out, m)
		return nil
	}
	for _, s := range relays {
		if err := add("hubble", "NAME=HOST:PORT", s, func(name, address string) (member, error) {
			return member{name: name, address: address}, hostPort(address)
		}); err != nil {
			return nil, err
		}
	}
	stdin := false
	for _, s := range exporters {
		if err := add("exporter", "NAME=FILE", s, func(name, file string) (member, error) {
			if file == "-" && stdin {
				return member{}, errors.New("the standard input is one member's only")
			}
			stdin = stdin || file == "-"
			return member{name: name, file: file}, nil
		}); err != nil {
			return nil, err
		}
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

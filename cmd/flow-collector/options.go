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

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/flowstore"
	"github.com/acp-io/acp/internal/audit/hubble"
	"github.com/acp-io/acp/internal/configuration"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/serving"
	"github.com/acp-io/acp/internal/version"
)

// member is a member cluster with its sources of flows: the address of a relay or a file of Hubble's exporter, the access log of
// its Istio, or both. The relay of a registration has more settings of its own.
type member struct {
	name, address, file, accessLog string
	relay                          *federation.Relay
}

// sameSources reports whether both are followed in the same way.
func (m member) sameSources(o member) bool {
	return m.name == o.name && m.address == o.address && m.file == o.file && m.accessLog == o.accessLog && m.relay.Equal(o.relay)
}

// readsStandardInput reports whether a source of the member is the standard input, which can be read only once.
func (m member) readsStandardInput() bool { return m.file == "-" || m.accessLog == "-" }

// hasHubble reports whether the member's Hubble is a source.
func (m member) hasHubble() bool { return m.address != "" || m.file != "" }

// sources returns the names of the member's sources in the store.
func (m member) sources() []string {
	var out []string
	if m.hasHubble() {
		out = append(out, m.name)
	}
	if m.accessLog != "" {
		out = append(out, audit.IstioSource(m.name))
	}
	return out
}

type options struct {
	kubeconfig string
	store      flowstore.Address
	members    []member
	tls        hubble.TLSFiles
	// tlsFolder has a folder with certificates for each member that needs its own.
	tlsFolder string
	// registrations reports whether the members whose KubeFedClusters, in kubefedNamespace, name a relay are followed, too.
	registrations    bool
	kubefedNamespace string
	healthAddress    string
	// metricsAddress is the address of /metrics; if it is empty, the server of the probes serves them.
	metricsAddress     string
	metricsCertificate serving.Certificate
	shutdownGrace      time.Duration
	flows              hubble.RawFlows
	retention          time.Duration
	flowRetention      time.Duration
	spoolDir           string
	spoolBytes         int64
	auditLog           auditLogOptions
	shareAs            string
	logFormat          string
	logLevel           slog.Level
	// explain adds to an error where the values of the settings that it names come from.
	explain func(error) error
}

// given holds the settings that need further parsing.
type given struct {
	relays, exporters, accessLogs              []string
	dataDir, store, flows, spoolDir, spoolSize string
}

// settings defines the settings of the collector.
func settings(o *options, g *given) *configuration.Settings {
	s := configuration.New(
		"flow-collector",
		"flow-collector takes in the flows of the member clusters, decides each connection with the policies of the host cluster, "+
			"and keeps roll-ups in the flow store.",
		version.String,
	)

	f := s.Group("Host cluster")
	f.StringVar(
		&o.kubeconfig,
		"kubeconfig",
		"",
		"kubeconfig `file` of the host cluster, where the policies are; empty: the service account of the pod it runs in",
	)

	f = s.Group("Sources")
	f.StringArrayVar(
		&g.relays,
		"hubble",
		nil,
		"`member` cluster and its Hubble relay, NAME=HOST:PORT; once for each member; this, --exporter or --registrations is required",
	)
	f.BoolVar(
		&o.registrations,
		"registrations",
		false,
		"also follow the members whose KubeFedCluster names a relay in the annotation "+federation.AnnotationHubble+"; they come and go without a restart",
	)
	f.StringVar(&o.kubefedNamespace, "kubefed-namespace", "kube-federation-system", "`namespace` of the KubeFedClusters on the host")
	f.StringVar(
		&o.tls.CA,
		"hubble-tls-ca",
		"",
		"`file` with the certificate authority of the relays; this file and the next two are read again when they change",
	)
	f.StringVar(&o.tls.Cert, "hubble-tls-cert", "", "`file` with the collector's own certificate")
	f.StringVar(&o.tls.Key, "hubble-tls-key", "", "`file` with the key of that certificate")
	f.StringVar(&o.tls.ServerName, "hubble-tls-server-name", "", "`name` in the relays' certificates, where a registration declares no other")
	f.StringVar(
		&o.tlsFolder,
		"hubble-tls-dir",
		"",
		"`folder` with one folder for each member that has certificates of its own, with the files ca.crt, tls.crt and tls.key",
	)
	f.StringArrayVar(&g.exporters, "exporter", nil, "`member` cluster and the file that its Hubble exporter writes, NAME=FILE; NAME=- reads the standard input")
	f.StringArrayVar(
		&g.accessLogs,
		"istio-access-log",
		nil,
		"`member` cluster and a file with the access log of its Istio as JSON lines, NAME=FILE; NAME=- reads the standard input; "+
			"alone or beside the member's Hubble",
	)
	f.StringVar(
		&o.shareAs,
		"share-as",
		"",
		"share the members with other collectors on the same store, by leases, under this `name`; empty: this one follows all",
	)

	f = s.Group("Data")
	f.StringVar(
		&g.dataDir,
		"data-dir",
		".",
		"`folder` in which relative paths of --store, --spool and --audit-log are; the collector writes nowhere else, except to the folder for temporary files",
	)
	f.StringVar(
		&g.store,
		"store",
		"",
		"flow `store`: sqlite:FILE, which is created when it is missing, clickhouse://USER@HOST:PORT/DATABASE, or @FILE with such an address in it; required",
	)
	s.SecretHint("store", "put the address into a file and give @FILE")
	f.DurationVar(&o.retention, "retention", 365*24*time.Hour, "`duration` for which roll-ups and losses are kept; at least 1h")
	f.StringVar(
		&g.flows,
		"flows",
		"",
		"`which` flows are kept one by one, beside the counts of all: all, refused or none; empty: refused with sqlite, all with clickhouse",
	)
	f.DurationVar(&o.flowRetention, "flow-retention", 3*24*time.Hour, "`duration` for which flows are kept one by one; at least 1h, at most --retention")
	f.StringVar(&g.spoolDir, "spool", "", "`folder` for what is counted while the store is away; empty: only the memory")
	f.StringVar(&g.spoolSize, "spool-size", "1Gi", "most `bytes` that the spool may hold")

	f = s.Group("Audit log")
	f.StringVar(&o.auditLog.to, "audit-log", "", "`place` of the audit log as JSON lines: stdout, file:PATH or https://...; not written if empty")
	s.SecretHint("audit-log", "give the token with --audit-log-token-file")
	f.StringVar(&o.auditLog.fileSize, "audit-log-file-size", "100Mi", "`size` at which the audit log's file is rotated; five are kept")
	f.StringVar(&o.auditLog.tokenFile, "audit-log-token-file", "", "`file` with the bearer token of the audit log's webhook")

	f = s.Group("Listening")
	f.StringVar(
		&o.healthAddress,
		"health-address",
		"127.0.0.1:8083",
		"`address` of /livez, /readyz and /startupz, without TLS; and of /metrics where --metrics-address is empty",
	)
	f.StringVar(&o.metricsAddress, "metrics-address", "", "`address` of /metrics, without login; empty: beside the probes")
	f.StringVar(
		&o.metricsCertificate.CertFile,
		"metrics-tls-cert-file",
		"",
		"`file` with the certificate for --metrics-address, read again when it changes; empty: plain HTTP",
	)
	f.StringVar(&o.metricsCertificate.KeyFile, "metrics-tls-key-file", "", "`file` with the key of that certificate")

	f = s.Group("Ending")
	f.DurationVar(
		&o.shutdownGrace,
		"shutdown-grace",
		20*time.Second,
		"`duration` from SIGTERM within which what was counted is stored; less than the pod's terminationGracePeriodSeconds",
	)
	s.Logging(&o.logFormat, &o.logLevel, "text")
	return s
}

// parse parses the settings. It returns configuration.ErrAnswered if the command line requested the help or the version, which it
// has then written.
func parse(args []string, out io.Writer) (options, error) {
	var o options
	var g given
	s := settings(&o, &g)
	o.explain = s.Explain
	if err := s.ParseProcess(args, out); err != nil {
		return o, err
	}
	if err := o.take(g); err != nil {
		return o, s.Explain(err)
	}
	if err := o.validate(); err != nil {
		return o, s.Explain(err)
	}
	return o, s.Print(out)
}

// take parses and validates the given settings.
func (o *options) take(g given) (err error) {
	if o.store, err = flowstore.Parse(configuration.InFolder(g.dataDir, "sqlite:", g.store), os.ReadFile); err != nil {
		return fmt.Errorf("--store: %w", err)
	}
	if o.members, err = parseMembers(g.relays, g.exporters, g.accessLogs); err != nil {
		return err
	}
	if len(o.members) == 0 && !o.registrations {
		return errors.New("--hubble is missing: give it as NAME=HOST:PORT, once for each member cluster, " +
			"or --exporter or --istio-access-log as NAME=FILE, or --registrations")
	}
	if o.spoolBytes, err = size("spool-size", g.spoolSize); err != nil {
		return err
	}
	if o.auditLog.bytes, err = size("audit-log-file-size", o.auditLog.fileSize); err != nil {
		return err
	}
	o.spoolDir = configuration.InFolder(g.dataDir, "", g.spoolDir)
	o.auditLog.to = configuration.InFolder(g.dataDir, auditLogFilePrefix, o.auditLog.to)
	if o.flows = hubble.RawFlows(g.flows); g.flows == "" {
		o.flows = defaultRawFlows(o.store)
	}
	return nil
}

func (o *options) validate() error {
	switch o.flows {
	case hubble.RawFlowsAll, hubble.RawFlowsRefused, hubble.RawFlowsNone:
	default:
		return fmt.Errorf("--flows %q: use all, refused or none", o.flows)
	}
	if o.kubefedNamespace == "" {
		return errors.New("--kubefed-namespace must not be empty")
	}
	if o.registrations || slices.ContainsFunc(o.members, func(m member) bool { return m.address != "" }) {
		if err := o.validateTLS(); err != nil {
			return err
		}
	}
	if o.registrations && slices.ContainsFunc(o.members, member.readsStandardInput) {
		return errors.New("--registrations cannot be combined with a source that is the standard input: when a registration changes, " +
			"the member's sources may be read anew, which the standard input does not allow; give a file")
	}
	if err := serving.CheckAddress("health-address", o.healthAddress); err != nil {
		return err
	}
	if o.metricsAddress != "" {
		if err := serving.CheckAddress("metrics-address", o.metricsAddress); err != nil {
			return err
		}
	}
	if err := o.metricsCertificate.Validate("metrics-tls-cert-file", "metrics-tls-key-file"); err != nil {
		return err
	}
	if o.metricsCertificate.Given() && o.metricsAddress == "" {
		return errors.New("--metrics-tls-cert-file needs --metrics-address: the probes are served without TLS")
	}
	if o.shutdownGrace < time.Second {
		return fmt.Errorf("--shutdown-grace %s: use at least 1s", o.shutdownGrace)
	}
	if o.retention < time.Hour {
		return fmt.Errorf("--retention %s: keep at least one hour", o.retention)
	}
	if o.flowRetention < time.Hour || o.flowRetention > o.retention {
		return fmt.Errorf("--flow-retention %s: keep at least one hour, and no longer than --retention %s", o.flowRetention, o.retention)
	}
	return o.auditLog.validate()
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
	if o.tls.ServerName == "" && !o.registrations {
		return errors.New("--hubble-tls-server-name is missing: give it the name that is in the relays' certificates")
	}
	return nil
}

// size parses a size in bytes such as 100Mi. It returns an error below one mebibyte.
func size(flag, s string) (int64, error) {
	q, err := resource.ParseQuantity(s)
	if err != nil || q.Value() < 1<<20 {
		return 0, fmt.Errorf("--%s %q: give at least one mebibyte, as 512Mi or 2Gi", flag, s)
	}
	return q.Value(), nil
}

// clusterName matches the names that a KubeFedCluster may have, see v1alpha1.ClusterName.
var clusterName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

func parseMembers(relays, exporters, accessLogs []string) ([]member, error) {
	seen := map[string]bool{}
	var out []member
	stdin := false
	readsFile := func(file string) error {
		if file == "-" && stdin {
			return errors.New("only one source can use the standard input")
		}
		stdin = stdin || file == "-"
		return nil
	}
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
			return fmt.Errorf("--%s %q: member %s is given twice", flag, s, name)
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
	for _, s := range exporters {
		if err := add("exporter", "NAME=FILE", s, func(name, file string) (member, error) {
			return member{name: name, file: file}, readsFile(file)
		}); err != nil {
			return nil, err
		}
	}
	hubble := out
	seen, out = map[string]bool{}, nil
	for _, s := range accessLogs {
		if err := add("istio-access-log", "NAME=FILE", s, func(name, file string) (member, error) {
			return member{name: name, accessLog: file}, readsFile(file)
		}); err != nil {
			return nil, err
		}
	}
	for _, m := range out {
		if i := slices.IndexFunc(hubble, func(h member) bool { return h.name == m.name }); i >= 0 {
			hubble[i].accessLog = m.accessLog
		} else {
			hubble = append(hubble, m)
		}
	}
	return hubble, nil
}

func hostPort(s string) error {
	host, port, err := net.SplitHostPort(s)
	if err != nil || host == "" || port == "" {
		return errors.New("an address is HOST:PORT")
	}
	return nil
}

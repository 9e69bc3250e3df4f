package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/acp-io/acp/internal/audit/flowstore"
	"github.com/acp-io/acp/internal/audit/insight"
	"github.com/acp-io/acp/internal/catalog/workloads"
	"github.com/acp-io/acp/internal/database"
)

type options struct {
	listen, publicURL, kubeconfig, flowStore, catalog string
	database, databaseURLFile                         string
	issuer, clientID, clientSecretFile                string
	backstage, backstageTokenFile                     string
	sessionIdle, backstageEvery                       time.Duration
	metricsAddress                                    string
	trustedProxies                                    []string
	notify                                            string
	ledgerAnchors                                     []string
	ledgerAnchorEvery                                 time.Duration
	workloadAddresses                                 int
	evidenceWindow                                    time.Duration
	evidenceThreshold                                 int
	demo, version                                     bool
	logFormat                                         string
	logLevel                                          slog.Level
}

func parse(args []string, out io.Writer) (options, error) {
	var o options
	f := pflag.NewFlagSet("portal", pflag.ContinueOnError)
	f.SetOutput(out)
	f.SortFlags = false
	f.Usage = func() {
		fmt.Fprintf(out, "portal serves ACP's web application and API, and brings approved requests into the host cluster.\n\nFlags:\n%s", f.FlagUsages())
	}
	f.StringVar(&o.listen, "listen", "127.0.0.1:8080", "`address` to listen on; 127.0.0.1 only, a proxy with TLS goes in front")
	f.StringVar(&o.publicURL, "public-url", "", "`URL` at which browsers reach the portal; empty: http://<listen>")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig `file` of the host cluster; empty: the service account of the pod it runs in")
	f.StringVar(&o.database, "database", "sqlite:portal.db", "`database` of tickets, sessions and ledger: sqlite:FILE, or postgres://USER@HOST/NAME")
	f.StringVar(&o.databaseURLFile, "database-url-file", "", "`file` with the database, in place of --database; for a URL that has a password")
	f.StringVar(&o.flowStore, "flow-store", "sqlite:flows.db", "flow `store` that flow-collector writes: sqlite:FILE, clickhouse://USER@HOST:PORT/DATABASE, or @FILE with such an address in it; only read")
	f.IntVar(&o.workloadAddresses, "workload-addresses", workloads.DefaultAddresses, "`number` of addresses outside the fleet that owners may register for one application (1 to 131072); beyond it the security team registers")
	f.DurationVar(&o.evidenceWindow, "evidence-window", insight.DefaultWindow, "`duration` of the past that scores, replays and proposals look at (1m to 744h)")
	f.IntVar(&o.evidenceThreshold, "evidence-threshold", insight.DefaultThreshold, "`score` (0 to 100) from which on a resource can be enforced without an override; 0: always")
	f.StringVar(&o.catalog, "catalog", "", "`folder` of Backstage entity files and CSV files: who owns what; it or --catalog-backstage is required")
	f.StringVar(&o.backstage, "catalog-backstage", "", "`URL` of a Backstage backend whose catalog is read")
	f.StringVar(&o.backstageTokenFile, "catalog-backstage-token-file", "", "`file` with the bearer token for it; read anew each time")
	f.DurationVar(&o.backstageEvery, "catalog-backstage-every", 5*time.Minute, "`duration` between two readings of it (at least 10s)")
	f.StringVar(&o.issuer, "oidc-issuer", "", "`URL` of the OIDC provider; required")
	f.StringVar(&o.clientID, "oidc-client-id", "acp-portal", "OIDC client `id`")
	f.StringVar(&o.clientSecretFile, "oidc-client-secret-file", "", "`file` with the OIDC client secret; empty: a public client")
	f.DurationVar(&o.sessionIdle, "session-idle", 8*time.Hour, "`duration` after which an idle session ends (at most 24h)")
	f.StringSliceVar(&o.trustedProxies, "trusted-proxy", nil, "`addresses` of reverse proxies (10.0.0.5 or 10.0.0.0/24) whose X-Forwarded-For is believed, for rate limits and the log")
	f.StringVar(&o.metricsAddress, "metrics-address", "", "`address` on this machine that serves Prometheus metrics at /metrics; empty: none")
	f.StringVar(&o.notify, "notify", "", "`file` that says how people are told by mail, Slack and webhooks; empty: only in the portal")
	f.StringArrayVar(&o.ledgerAnchors, "ledger-anchor", []string{"configmap"}, "`place` that keeps the ledger's head: configmap, file:PATH, webhook:URL,KEYFILE, or none; repeatable")
	f.DurationVar(&o.ledgerAnchorEvery, "ledger-anchor-every", 10*time.Minute, "`duration` between two heads that are kept (at least 1s)")
	f.BoolVar(&o.demo, "demo", false, "say in the web application that this is a playground")
	f.StringVar(&o.logFormat, "log-format", "text", "`format` of the log: text or json")
	f.TextVar(&o.logLevel, "log-level", slog.LevelInfo, "lowest `level` that is logged: debug, info, warn or error")
	f.BoolVar(&o.version, "version", false, "print the version and exit")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.version {
		return o, nil
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if o.publicURL == "" {
		o.publicURL = "http://" + o.listen
	}
	if o.databaseURLFile != "" && f.Changed("database") {
		return o, errors.New("--database and --database-url-file are two answers to one question: give one of them")
	}
	return o, o.check()
}

func (o *options) check() error {
	if !here(o.listen) {
		return fmt.Errorf("--listen %q: use 127.0.0.1:PORT; other machines reach the portal through a proxy with TLS", o.listen)
	}
	if o.metricsAddress != "" && !here(o.metricsAddress) {
		return fmt.Errorf("--metrics-address %q: use 127.0.0.1:PORT", o.metricsAddress)
	}
	if _, err := proxies(o.trustedProxies); err != nil {
		return err
	}
	if o.catalog == "" && o.backstage == "" {
		return errors.New("--catalog or --catalog-backstage is required: a folder of Backstage entity files, or a Backstage installation, says who owns what")
	}
	if o.backstageEvery < 10*time.Second {
		return fmt.Errorf("--catalog-backstage-every %s: at least 10s", o.backstageEvery)
	}
	if o.workloadAddresses < 1 || o.workloadAddresses > workloads.MaxAddressesOfMachines {
		return fmt.Errorf("--workload-addresses %d: use between 1 and %d", o.workloadAddresses, workloads.MaxAddressesOfMachines)
	}
	if o.evidenceWindow < time.Minute || o.evidenceWindow > 31*24*time.Hour {
		return fmt.Errorf("--evidence-window %s: use between 1m and 744h, 31 days", o.evidenceWindow)
	}
	if o.evidenceThreshold < 0 || o.evidenceThreshold > 100 {
		return fmt.Errorf("--evidence-threshold %d: use between 0 and 100", o.evidenceThreshold)
	}
	if o.ledgerAnchorEvery < time.Second {
		return fmt.Errorf("--ledger-anchor-every %s: use at least 1s", o.ledgerAnchorEvery)
	}
	if o.logFormat != "text" && o.logFormat != "json" {
		return fmt.Errorf("--log-format %q: use text or json", o.logFormat)
	}
	if err := database.Check(o.database); err != nil {
		return fmt.Errorf("--database: %w", err)
	}
	if u, err := url.Parse(o.database); err == nil && u.User != nil {
		if _, has := u.User.Password(); has {
			return errors.New("--database has a password, which every user of the machine could read: put the URL into a file and name that with --database-url-file")
		}
	}
	if _, err := flowstore.Parse(o.flowStore, os.ReadFile); err != nil {
		return fmt.Errorf("--flow-store: %w", err)
	}
	return nil
}

// here tells whether only this machine can reach an address.
func here(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && ip != nil && ip.IsLoopback()
}

func proxies(in []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, s := range in {
		p, err := netip.ParsePrefix(s)
		if a, e := netip.ParseAddr(s); e == nil {
			p, err = a.Prefix(a.BitLen())
		}
		if err != nil {
			return nil, fmt.Errorf("--trusted-proxy %q: use an address such as 10.0.0.5, or a prefix such as 10.0.0.0/24", s)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

// dsn of the portal's database.
func (o *options) dsn() (string, error) {
	if o.databaseURLFile == "" {
		return o.database, nil
	}
	data, err := os.ReadFile(o.databaseURLFile)
	if err != nil {
		return "", fmt.Errorf("--database-url-file: %w", err)
	}
	dsn := strings.TrimSpace(string(data))
	if err := database.Check(dsn); err != nil {
		return "", fmt.Errorf("--database-url-file %s: %w", o.databaseURLFile, err)
	}
	return dsn, nil
}

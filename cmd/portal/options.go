package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"
)

type options struct {
	listen, publicURL, kubeconfig, database, flowStore, catalog string
	issuer, clientID, clientSecretFile                          string
	sessionIdle                                                 time.Duration
	demo, version                                               bool
	logFormat                                                   string
	logLevel                                                    slog.Level
}

func parse(args []string, out io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("portal", flag.ContinueOnError)
	f.SetOutput(out)
	f.StringVar(&o.listen, "listen", "127.0.0.1:8080", "`address` to listen on; 127.0.0.1 only, a proxy with TLS goes in front")
	f.StringVar(&o.publicURL, "public-url", "", "`URL` at which browsers reach the portal (default http://<listen>)")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "`file` with the host cluster's address and credentials (default: in-cluster)")
	f.StringVar(&o.database, "database", "sqlite:portal.db", "tickets, sessions and ledger: sqlite:`FILE`")
	f.StringVar(&o.flowStore, "flow-store", "sqlite:flows.db", "flow store that flow-collector writes: sqlite:`FILE`")
	f.StringVar(&o.catalog, "catalog", "", "`folder` of Backstage entity files")
	f.StringVar(&o.issuer, "oidc-issuer", "", "`URL` of the OIDC provider")
	f.StringVar(&o.clientID, "oidc-client-id", "acp-portal", "OIDC client `id`")
	f.StringVar(&o.clientSecretFile, "oidc-client-secret-file", "", "`file` with the OIDC client secret")
	f.DurationVar(&o.sessionIdle, "session-idle", 8*time.Hour, "`duration` after which an idle session ends (at most 24h)")
	f.BoolVar(&o.demo, "demo", false, "say in the web application that this is a playground")
	f.StringVar(&o.logFormat, "log-format", "text", "text or json")
	f.TextVar(&o.logLevel, "log-level", slog.LevelInfo, "debug, info, warn or error")
	f.BoolVar(&o.version, "version", false, "print the version and exit")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.version {
		return o, nil
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: see --help", f.Arg(0))
	}
	if o.publicURL == "" {
		o.publicURL = "http://" + o.listen
	}
	return o, o.check()
}

func (o *options) check() error {
	host, _, err := net.SplitHostPort(o.listen)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("--listen %q: use 127.0.0.1:PORT; other machines reach the portal through a proxy with TLS", o.listen)
	}
	if o.catalog == "" {
		return errors.New("--catalog is required: a folder of Backstage entity files says who owns what")
	}
	if o.logFormat != "text" && o.logFormat != "json" {
		return fmt.Errorf("--log-format %q: use text or json", o.logFormat)
	}
	for name, v := range map[string]string{"--database": o.database, "--flow-store": o.flowStore} {
		if _, err := sqliteFile(v); err != nil {
			return fmt.Errorf("%s %q: %w", name, v, err)
		}
	}
	return nil
}

func sqliteFile(v string) (string, error) {
	file, ok := strings.CutPrefix(v, "sqlite:")
	if !ok || file == "" {
		return "", errors.New("use sqlite:FILE")
	}
	return file, nil
}

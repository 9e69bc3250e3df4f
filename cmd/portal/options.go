package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit/flowstore"
	"github.com/acp-io/acp/internal/audit/insight"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/catalog/workloads"
	"github.com/acp-io/acp/internal/configuration"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/serving"
	"github.com/acp-io/acp/internal/tracing/otlp"
	"github.com/acp-io/acp/internal/version"
)

type options struct {
	listen, publicURL, kubeconfig, namespace string
	certificate, metricsCertificate          serving.Certificate
	healthAddress, metricsAddress            string
	trustedProxies, embedOrigins             []string
	shutdownDelay, shutdownGrace             time.Duration
	dataDir, database, databaseURLFile       string
	flowStore, catalog                       string
	issuer, clientID, clientSecretFile       string
	claims                                   core.Claims
	backstage, backstageTokenFile            string
	sessionIdle, backstageEvery              time.Duration
	loginMaxAge                              time.Duration
	notify                                   string
	onCall                                   string
	builtin                                  approval.BuiltinTimeout
	accessRequests                           bool
	ledgerAnchors                            []string
	ledgerAnchorEvery                        time.Duration
	workloadAddresses                        int
	evidenceWindow                           time.Duration
	evidenceThreshold                        int
	demo                                     bool
	tracing                                  otlp.Settings
	traceURL                                 string
	logFormat                                string
	logLevel                                 slog.Level
	// explain adds to an error where the settings that it names come from.
	explain func(error) error
}

// settings defines the settings of the portal.
func settings(o *options) *configuration.Settings {
	return settingsFor("portal", "portal serves ACP's web application and API, and writes approved requests into the host cluster. "+
		"portal backup and portal restore write and restore a backup; see their --help.", o)
}

// settingsFor defines the settings of the portal for one of its commands.
func settingsFor(program, about string, o *options) *configuration.Settings {
	s := configuration.New(program, about, version.String)

	f := s.Group("Listening")
	f.StringVar(&o.listen, "listen", "127.0.0.1:8080", "`address` to listen on; one that other machines reach needs a certificate or --trusted-proxies")
	f.StringVar(&o.publicURL, "public-url", "", "`URL` at which browsers reach the portal; required unless --listen is on 127.0.0.1")
	f.StringVar(&o.certificate.CertFile, "tls-cert-file", "", "`file` with the certificate for --listen, read again when it changes; empty: plain HTTP")
	f.StringVar(&o.certificate.KeyFile, "tls-key-file", "", "`file` with the key of that certificate")
	f.StringSliceVar(
		&o.trustedProxies,
		"trusted-proxies",
		nil,
		"`addresses` of the reverse proxies in front (10.0.0.5 or 10.0.0.0/24): only their X-Forwarded-For and X-Forwarded-Proto are believed, "+
			"and over plain HTTP only they are served",
	)
	f.StringSliceVar(
		&o.embedOrigins,
		"embed-origins",
		nil,
		"`origins` (https://backstage.example.com) whose pages may show the page of one application or resource in a frame, read only, at its address "+
			"with ?embed=1; http only for localhost; empty: no page of the portal is framed",
	)
	f.StringVar(&o.healthAddress, "health-address", "", "`address` of /livez, /readyz and /startupz, without TLS and login; empty: none")
	f.StringVar(&o.metricsAddress, "metrics-address", "", "`address` of Prometheus metrics at /metrics, without login; empty: none")
	f.StringVar(
		&o.metricsCertificate.CertFile,
		"metrics-tls-cert-file",
		"",
		"`file` with the certificate for --metrics-address, read again when it changes; empty: plain HTTP",
	)
	f.StringVar(&o.metricsCertificate.KeyFile, "metrics-tls-key-file", "", "`file` with the key of that certificate")

	f = s.Group("Ending")
	f.DurationVar(
		&o.shutdownDelay,
		"shutdown-delay",
		0,
		"`duration` after SIGTERM in which requests are still taken, while /readyz fails, so that load balancers notice",
	)
	f.DurationVar(
		&o.shutdownGrace,
		"shutdown-grace",
		20*time.Second,
		"`duration` from SIGTERM within which requests end and approved changes that are due are written; less than the pod's terminationGracePeriodSeconds",
	)

	f = s.Group("Host cluster")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig `file` of the host cluster; empty: the service account of the pod it runs in")
	f.StringVar(
		&o.namespace,
		"namespace",
		"acp-system",
		"`namespace` of ACP in the host cluster: of the ledger's anchor, and of the Events that say who changed an object",
	)

	f = s.Group("Data")
	f.StringVar(
		&o.dataDir,
		"data-dir",
		".",
		"`folder` in which relative sqlite: paths are; the portal writes nowhere else, except to the folder for temporary files",
	)
	f.StringVar(&o.database, "database", "sqlite:portal.db", "`database` of tickets, sessions and ledger: sqlite:FILE, or postgres://USER@HOST/NAME")
	f.StringVar(&o.databaseURLFile, "database-url-file", "", "`file` with the database, in place of --database; for a URL that has a password")
	s.SecretHint("database", "put the URL into a file and name that with --database-url-file")
	f.StringVar(
		&o.flowStore,
		"flow-store",
		"sqlite:flows.db",
		"flow `store` that flow-collector writes: sqlite:FILE, clickhouse://USER@HOST:PORT/DATABASE, or @FILE with such an address in it; only read",
	)
	s.SecretHint("flow-store", "put the address into a file and give @FILE")

	f = s.Group("Catalog")
	f.StringVar(&o.catalog, "catalog", "", "`folder` of Backstage entity files and CSV files: who owns what; it or --catalog-backstage is required")
	f.StringVar(&o.backstage, "catalog-backstage", "", "`URL` of a Backstage backend whose catalog is read")
	f.StringVar(&o.backstageTokenFile, "catalog-backstage-token-file", "", "`file` with the bearer token for it; read anew each time")
	f.DurationVar(&o.backstageEvery, "catalog-backstage-every", 5*time.Minute, "`duration` between two readings of it (at least 10s)")
	f.IntVar(
		&o.workloadAddresses,
		"workload-addresses",
		workloads.DefaultAddresses,
		"`number` of addresses outside the fleet that owners may register for one application without approval (1 to 131072); "+
			"beyond it the owners of the resources that it reaches approve, or the security team registers",
	)

	f = s.Group("Login")
	f.StringVar(
		&o.issuer,
		"oidc-issuer",
		"",
		"`URL` of the OIDC provider; none: nobody can log in, and the login page says that no provider is configured; required",
	)
	f.StringVar(&o.clientID, "oidc-client-id", "acp-portal", "OIDC client `id`")
	f.StringVar(&o.clientSecretFile, "oidc-client-secret-file", "", "`file` with the OIDC client secret, read at each login; empty: a public client")
	f.StringVar(
		&o.claims.Username,
		"oidc-username-claim",
		core.DefaultUsernameClaim,
		"`claim` of the ID token with the person's id in the catalog; a path such as user.id names a part of a claim",
	)
	f.StringVar(
		&o.claims.Groups,
		"oidc-groups-claim",
		core.DefaultGroupsClaim,
		"`claim` of the ID token with the person's groups; a path such as realm_access.roles names a part of a claim",
	)
	f.StringSliceVar(
		&o.claims.Security,
		"oidc-security-groups",
		[]string{catalog.GroupSecurity},
		"`groups` in that claim that make a person a security administrator; empty: only the catalog's group "+catalog.GroupSecurity+" does",
	)
	f.StringSliceVar(
		&o.claims.Auditors,
		"oidc-auditor-groups",
		[]string{catalog.GroupAuditors},
		"`groups` in that claim that make a person an auditor; empty: only the catalog's group "+catalog.GroupAuditors+" does",
	)
	f.DurationVar(&o.sessionIdle, "session-idle", 8*time.Hour, "`duration` after which an idle session ends (1m to 24h); a session ends after 24h in any case")
	f.DurationVar(
		&o.loginMaxAge,
		"sensitive-login-max-age",
		15*time.Minute,
		"`duration` for which a login suffices to decide a sensitive request, to change the catalog, to begin a temporary audit or a downgrade, or to "+
			"create a token that may do so (0 for any login, or at least 1m); "+
			"the OIDC provider must support max_age and auth_time",
	)

	f = s.Group("Approvals")
	f.DurationVar(
		&o.builtin.RemindEvery,
		"approval-remind-every",
		24*time.Hour,
		"`duration` until the first reminder of the approvers of a step of the built-in chain; the further intervals double, up to a week "+
			"(0 for none, or at least 1m); approval policies define their own",
	)
	f.DurationVar(
		&o.builtin.After,
		"approval-timeout",
		72*time.Hour,
		"`duration` after which --approval-timeout-action happens to a step of the built-in chain (0 for never, or at least 1m)",
	)
	f.StringVar(
		(*string)(&o.builtin.Action),
		"approval-timeout-action",
		string(v1alpha1.TimeoutEscalate),
		"`action`: Escalate (the next leader up may also decide the leader's step; approvers of other steps are reminded), Deny (except requests to "+
			"revoke), or Remind",
	)
	f.StringVar(
		&o.onCall,
		"on-call",
		"",
		"`file` with the on-call schedules that approval policies name with onCall; read again when it changes; empty: it is never known who is on call",
	)

	f.BoolVar(
		&o.accessRequests,
		"access-requests",
		false,
		"submit tickets for the AccessRequest objects of the host cluster, for the application that the label acp.io/app-id of their namespace names; "+
			"only platform administrators may be able to set that label",
	)

	f = s.Group("Evidence")
	f.DurationVar(&o.evidenceWindow, "evidence-window", insight.DefaultWindow, "`duration` of the past that scores, replays and proposals look at (1m to 744h)")
	f.IntVar(
		&o.evidenceThreshold,
		"evidence-threshold",
		insight.DefaultThreshold,
		"`score` (0 to 100) from which on a resource can be enforced without an override; 0: always",
	)

	f = s.Group("Notifications and ledger")
	f.StringVar(&o.notify, "notify", "", "`file` that configures notifications by mail, Slack and webhooks; empty: only in the portal")
	f.StringArrayVar(
		&o.ledgerAnchors,
		"ledger-anchor",
		[]string{"configmap"},
		"`place` that keeps the ledger's head: configmap, file:PATH, webhook:URL,KEYFILE, or none; repeatable",
	)
	f.DurationVar(&o.ledgerAnchorEvery, "ledger-anchor-every", 10*time.Minute, "`duration` between two heads that are kept (at least 1s)")
	f.BoolVar(&o.demo, "demo", false, "say in the web application that this is a playground")
	o.tracing.Define(s).
		StringVar(&o.traceURL, "trace-url", "",
			"`URL` of a page about a trace, with {traceId} in place of its id, to which the page of a ticket has a link; empty: none")
	s.Logging(&o.logFormat, &o.logLevel, "text")
	return s
}

// parse returns configuration.ErrAnswered after it has printed what the command line requested.
func parse(args []string, out io.Writer) (options, error) {
	var o options
	s := settings(&o)
	o.explain = s.Explain
	if err := s.ParseProcess(args, out); err != nil {
		return o, err
	}
	err := o.checkDatabase(s)
	if err == nil {
		err = o.check()
	}
	if err != nil {
		return o, s.Explain(err)
	}
	o.complete()
	return o, s.Print(out)
}

func (o *options) checkDatabase(s *configuration.Settings) error {
	if o.databaseURLFile != "" && s.Given("database") {
		return errors.New("--database and --database-url-file are two answers to one question: give one of them")
	}
	if err := database.Check(o.database); err != nil {
		return fmt.Errorf("--database: %w", err)
	}
	return nil
}

// checkLogin checks the settings of the login. A wrong address of the OIDC provider would otherwise be found only when somebody tries to log in.
func (o *options) checkLogin() error {
	if o.issuer != "" && o.issuer != core.NoIssuer {
		if u, err := url.Parse(o.issuer); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
			return fmt.Errorf("--oidc-issuer %q is not a URL: use one such as https://login.example.com, or none if nobody is to log in", o.issuer)
		}
	}
	if o.claims.Username == "" || o.claims.Groups == "" {
		return errors.New(
			"--oidc-username-claim and --oidc-groups-claim must not be empty: name the claims of the ID token that have the person and the groups",
		)
	}
	if o.loginMaxAge != 0 && o.loginMaxAge < time.Minute {
		return fmt.Errorf("--sensitive-login-max-age %s: at least 1m, or 0 for any login", o.loginMaxAge)
	}
	return nil
}

func (o *options) check() error {
	if err := o.checkListening(); err != nil {
		return err
	}
	if o.shutdownDelay < 0 || o.shutdownGrace < time.Second || o.shutdownDelay >= o.shutdownGrace {
		return fmt.Errorf("--shutdown-grace %s: use at least 1s, and more than --shutdown-delay %s, which is a part of it", o.shutdownGrace, o.shutdownDelay)
	}
	if o.namespace == "" {
		return errors.New("--namespace must not be empty")
	}
	if o.catalog == "" && o.backstage == "" {
		return errors.New("--catalog or --catalog-backstage is required: a folder of Backstage entity files, or a Backstage installation, says who owns what")
	}
	if o.backstageEvery < 10*time.Second {
		return fmt.Errorf("--catalog-backstage-every %s: at least 10s", o.backstageEvery)
	}
	if err := o.checkLogin(); err != nil {
		return err
	}
	if o.workloadAddresses < 1 || o.workloadAddresses > workloads.MaxAddressesOfMachines {
		return fmt.Errorf("--workload-addresses %d: use between 1 and %d", o.workloadAddresses, workloads.MaxAddressesOfMachines)
	}
	if err := o.builtin.Validate(); err != nil {
		return fmt.Errorf("--approval-remind-every, --approval-timeout, --approval-timeout-action: %w", err)
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
	if _, err := flowstore.Parse(o.flowStore, os.ReadFile); err != nil {
		return fmt.Errorf("--flow-store: %w", err)
	}
	return o.tracing.Validate()
}

// checkListening refuses what would send passwords and cookies through a network in the clear.
func (o *options) checkListening() error {
	for name, address := range map[string]string{"listen": o.listen, "health-address": o.healthAddress, "metrics-address": o.metricsAddress} {
		if address == "" && name != "listen" {
			continue
		}
		if err := serving.CheckAddress(name, address); err != nil {
			return err
		}
	}
	if err := errors.Join(
		o.certificate.Validate("tls-cert-file", "tls-key-file"),
		o.metricsCertificate.Validate("metrics-tls-cert-file", "metrics-tls-key-file"),
	); err != nil {
		return err
	}
	if _, err := serving.Prefixes("trusted-proxies", o.trustedProxies); err != nil {
		return err
	}
	if err := core.CheckEmbedOrigins(o.embedOrigins); err != nil {
		return err
	}
	here, https := serving.Loopback(o.listen), strings.HasPrefix(o.publicURL, "https://")
	switch {
	case !here && !o.certificate.Given() && len(o.trustedProxies) == 0:
		return fmt.Errorf(
			"--listen %q would serve other machines without TLS: give --tls-cert-file and --tls-key-file, or name the proxies with TLS that are in "+
				"front with --trusted-proxies, or listen on 127.0.0.1",
			o.listen,
		)
	case !here && o.publicURL == "":
		return fmt.Errorf("--public-url is required with --listen %q: it is where browsers and the login provider send people", o.listen)
	case o.publicURL != "" && !https && (!here || o.certificate.Given()):
		return fmt.Errorf("--public-url %q has to be https: the portal is served with TLS, directly or through a proxy", o.publicURL)
	}
	return nil
}

// complete fills in what follows from other settings.
func (o *options) complete() {
	if o.publicURL == "" {
		o.publicURL = "http://" + o.listen
		if o.certificate.Given() {
			o.publicURL = "https://" + o.listen
		}
	}
	o.database = configuration.InFolder(o.dataDir, "sqlite:", o.database)
	o.flowStore = configuration.InFolder(o.dataDir, "sqlite:", o.flowStore)
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

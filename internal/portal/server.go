package portal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/catalog/workloads"
	"github.com/acp-io/acp/internal/credential"
	"github.com/acp-io/acp/internal/idempotency"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/notify"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/rollout"
	"github.com/acp-io/acp/internal/tracing"
)

// Host provides the state of the host cluster.
type Host interface {
	// Snapshot returns the snapshot of all policies, and false if they were not read yet.
	Snapshot() (*policy.Snapshot, bool)
	// Cached returns a policy by name, and false if it does not exist or was not read yet.
	Cached(name string) (*v1alpha1.AccessControlPolicy, bool)
	// Protection returns the ProtectedResource of a resource name, or nil if it is not onboarded or was not read yet.
	Protection(resource string) *v1alpha1.ProtectedResource
	// Input returns the input of the snapshot, which must not be changed, and false if it was not read yet.
	Input() (policy.Input, bool)
	// ApprovalPolicies returns all approval policies, in no order.
	ApprovalPolicies() ([]*v1alpha1.ApprovalPolicy, error)
	// Members returns the reports of the adapter about the members, in no order; none before the first report.
	Members() []*v1alpha1.MemberCluster
	Ready() bool
	// AwaySince returns the time since which the host cluster has not answered, or zero if it answers. The other methods return the
	// state of that time.
	AwaySince() time.Time
}

// Flows is the reading side of the flow store.
type Flows = audit.Reader

// Config is the configuration of a Server. All fields are required except Accepting, Demo, TrustedProxies, Channels, Witnesses,
// Metrics, Stats, Tracer and TraceURL.
type Config struct {
	// TrustedProxies are the addresses of reverse proxies. Only their X-Forwarded-For and X-Forwarded-Proto headers are trusted, and
	// over plain HTTP other machines are served only through them.
	TrustedProxies []netip.Prefix
	Credentials    *credential.Service
	Once           idempotency.Store
	Inbox          Inbox
	Channels       []notify.Channel // the channels of notifications in addition to the inbox
	Workloads      *workloads.Registrar
	Ledger         ledger.Reader
	// Witnesses returns the ledger heads that the anchors store; nil if there is no anchor.
	Witnesses func(context.Context) ([]ledger.Witness, error)
	// Tracer records requests. If it is nil, nothing is recorded.
	Tracer *tracing.Tracer
	// TraceURL is the address of a page about a trace, with traceIDPlaceholder in place of its id; "": there is none.
	TraceURL string
	// Accepting returns the reason why the program does not accept requests while it starts or ends. If Accepting is nil, it always does.
	Accepting func() error
	Metrics   prometheus.Registerer
	Stats     func(context.Context) (Stats, error)
	PublicURL *url.URL
	Tickets   *approval.Service
	Host      Host
	Flows     Flows
	// EvidenceWindow is the period that scores, replays and proposals cover.
	EvidenceWindow time.Duration
	// Insight evaluates flows of resources, and Rollout manages their rollout.
	Insight *rollout.Insight
	Rollout *rollout.Service
	// Downgrades manages temporary audits of many resources.
	Downgrades  *rollout.Downgrades
	Directory   *catalog.Service
	Sessions    scs.CtxStore
	SessionIdle time.Duration
	Issuer      string
	ClientID    string
	// ClientSecret is called at each login, so that a new secret needs no restart. It is nil for a public client.
	ClientSecret func() (string, error)
	Web          fs.FS // contains index.html if the web application was built
	Hub          *Hub
	Demo         bool
	Now          func() time.Time
	Log          *slog.Logger
}

// Validate returns an error that names missing or unsafe settings, for the operator.
func (c *Config) Validate() error {
	u := c.PublicURL
	switch {
	case u == nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.User != nil:
		return errors.New("--public-url must be an origin such as https://acp.example.com")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return errors.New("--public-url must be https unless it is on this machine (127.0.0.1, ::1, localhost): cookies and tokens would travel in the clear")
	case c.Issuer == "" || c.ClientID == "":
		return errors.New("--oidc-issuer and --oidc-client-id are required: people log in there")
	case c.SessionIdle < time.Minute || c.SessionIdle > sessionLifetime:
		return errors.New("--session-idle must be between 1m and 24h")
	}
	return checkTraceURL(c.TraceURL)
}

// Server is the portal's HTTP handler.
type Server struct {
	Config
	engine   *gin.Engine
	sessions *scs.SessionManager
	login    *login
	limits   *limits
	metrics  *metrics
	replays  replays
	turns    *turns
	// largeBodies bounds the memory for request bodies.
	largeBodies *largeBodies
	analyses    analyses
	stop        context.Context
}

// New returns a server. The end of the context ends its event streams, for which a graceful shutdown would wait.
func New(ctx context.Context, c Config) (*Server, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	s := &Server{Config: c, stop: ctx, limits: newLimits(c.Now), turns: &turns{atOnce: questionsAtOnce}, largeBodies: newLargeBodies()}
	s.metrics = newMetrics(c.Metrics, c.Hub, c.Stats, c.Now, c.Log)
	s.sessions = newSessions(c)
	s.login = newLogin(c)
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	e.HandleMethodNotAllowed = true
	e.RedirectTrailingSlash, e.RedirectFixedPath = false, false
	// Gin trusts no X-Forwarded-For header; address evaluates those of trusted proxies.
	if err := e.SetTrustedProxies(nil); err != nil {
		return nil, err
	}
	e.Use(s.requestID, s.trace, s.accessLog, s.measure, s.recovery, s.securityHeaders, s.transport, s.recognise, s.rateLimit, s.sameOrigin, s.guard, s.body, s.patient, s.once)
	e.NoMethod(func(c *gin.Context) {
		s.fail(c, newProblem(http.StatusMethodNotAllowed, "invalid", message.CallMethodNotAllowed()))
	})
	e.NoRoute(s.web)

	e.GET("/auth/login", s.startLogin)
	e.GET("/auth/callback", s.finishLogin)
	e.POST("/auth/logout", s.logout)
	e.GET("/healthz", func(c *gin.Context) { c.String(http.StatusOK, "ok\n") })
	e.GET("/readyz", s.readyz)
	strict := openapi.NewStrictHandlerWithOptions(&api{s}, []openapi.StrictMiddlewareFunc{inTurn(), bodyDecoded}, openapi.StrictGinServerOptions{ //nolint:contextcheck // waiting requests have contexts of their own
		RequestErrorHandlerFunc:  func(c *gin.Context, err error) { s.fail(c, badRequest(err)) },
		HandlerErrorFunc:         func(c *gin.Context, err error) { s.fail(c, err) },
		ResponseErrorHandlerFunc: s.responseFailed,
	})
	openapi.RegisterHandlersWithOptions(e, strict, openapi.GinServerOptions{BaseURL: apiBase,
		ErrorHandler: func(c *gin.Context, err error, _ int) { s.fail(c, badRequest(err)) }})
	s.engine = e
	return s, nil
}

// Configure makes the HTTP server serve the portal, with time limits for everything that a slow caller could keep open.
func (s *Server) Configure(h *http.Server) {
	h.Handler, h.ReadHeaderTimeout, h.ReadTimeout, h.WriteTimeout = s, 5*time.Second, 15*time.Second, 30*time.Second
	h.IdleTimeout, h.MaxHeaderBytes = 2*time.Minute, 32<<10
}

// Catalog returns the current catalog.
func (s *Server) Catalog() *catalog.Catalog { return s.Directory.Catalog() }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.engine.ServeHTTP(w, r) }

// Ready reports whether the portal can serve requests, for which it needs the ticket store and the policies. The note names other
// services that are unavailable.
func (s *Server) Ready(ctx context.Context) (note string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if s.Accepting != nil {
		if err := s.Accepting(); err != nil {
			return "", err
		}
	}
	if err := s.Tickets.Store.Ping(ctx); err != nil {
		s.Log.Warn("not ready", "error", err)
		return "", errors.New("the ticket store cannot be used")
	}
	if !s.Host.Ready() {
		return "", errors.New("the host cluster's policies are not known yet")
	}
	// Requests are still served with the last known state, which pages report; see GetMe.
	if since := s.Host.AwaySince(); !since.IsZero() {
		return fmt.Sprintf(", but the host cluster has not answered since %s", since.UTC().Format(time.RFC3339)), nil
	}
	return "", nil
}

// readyz serves load balancers, which use the portal's own address.
func (s *Server) readyz(c *gin.Context) {
	note, err := s.Ready(c.Request.Context())
	if err != nil {
		c.String(http.StatusServiceUnavailable, "%s\n", err)
		return
	}
	c.String(http.StatusOK, "ok%s\n", note)
}

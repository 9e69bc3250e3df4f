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
)

// Host is what the portal shows of the host cluster.
type Host interface {
	// Snapshot of all policies; false: not seen yet.
	Snapshot() (*policy.Snapshot, bool)
	// Cached policy by name; false: not there, or not seen yet.
	Cached(name string) (*v1alpha1.AccessControlPolicy, bool)
	// Protection of a resource by its resource name; nil: not onboarded, or not seen yet.
	Protection(resource string) *v1alpha1.ProtectedResource
	// Changes counts how often what Cached and Protection return may have changed.
	Changes() uint64
	// Input that the snapshot is made of, which nobody may change; false: not seen yet.
	Input() (policy.Input, bool)
	// ApprovalPolicies that there are, in no order.
	ApprovalPolicies() ([]*v1alpha1.ApprovalPolicy, error)
	// Members of the fleet as the adapter reports on them, in no order; none before it does.
	Members() []*v1alpha1.MemberCluster
	Ready() bool
	// AwaySince is since when the host cluster does not answer; zero: it does. What the others return is from then.
	AwaySince() time.Time
}

// Flows is the flow store, which the portal only reads.
type Flows = audit.Reader

// Config of a Server; all fields are required but Accepting, Demo, TrustedProxies, Channels, Witnesses, Metrics and Stats.
type Config struct {
	// TrustedProxies are the addresses of reverse proxies: only their X-Forwarded-For and X-Forwarded-Proto are believed, and over plain
	// HTTP nobody else is served from another machine.
	TrustedProxies []netip.Prefix
	Credentials    *credential.Service
	Once           idempotency.Store
	Inbox          Inbox
	Channels       []notify.Channel // by which people can be told, beside the inbox
	Workloads      *workloads.Registrar
	Ledger         ledger.Reader
	// Witnesses are the heads that the ledger's anchors keep; nil: there is no anchor.
	Witnesses func(context.Context) ([]ledger.Witness, error)
	// Accepting returns why the program takes no requests, while it starts or ends; nil: it always does.
	Accepting func() error
	Metrics   prometheus.Registerer
	Stats     func(context.Context) (Stats, error)
	PublicURL *url.URL
	Tickets   *approval.Service
	Host      Host
	Flows     Flows
	// EvidenceWindow is the past that scores, replays and proposals look at.
	EvidenceWindow time.Duration
	// Insight is what the flows say about resources, Rollout what people do with that.
	Insight *rollout.Insight
	Rollout *rollout.Service
	// Downgrades are for many resources at once.
	Downgrades  *rollout.Downgrades
	Directory   *catalog.Service
	Sessions    scs.CtxStore
	SessionIdle time.Duration
	Issuer      string
	ClientID    string
	// ClientSecret is asked for at each login, so that a new one needs no restart; nil: a public client.
	ClientSecret func() (string, error)
	Web          fs.FS // holds index.html, or not if the web application was not built
	Hub          *Hub
	Demo         bool
	Now          func() time.Time
	Log          *slog.Logger
}

// Validate says what is missing or unsafe, in words for the one who starts the program.
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
	return nil
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
	lists       shownLists
	stop        context.Context
}

// New makes a server. The context ends its event streams, which a graceful shutdown would wait for.
func New(ctx context.Context, c Config) (*Server, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	s := &Server{Config: c, stop: ctx, limits: newLimits(c.Now), lists: newShownLists(), turns: &turns{atOnce: questionsAtOnce}, largeBodies: newLargeBodies()}
	s.metrics = newMetrics(c.Metrics, c.Hub, c.Stats, c.Now, c.Log)
	s.sessions = newSessions(c)
	s.login = newLogin(c)
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	e.HandleMethodNotAllowed = true
	e.RedirectTrailingSlash, e.RedirectFixedPath = false, false
	// Gin believes nobody's X-Forwarded-For; see address for whose the portal believes.
	if err := e.SetTrustedProxies(nil); err != nil {
		return nil, err
	}
	e.Use(s.requestID, s.accessLog, s.measure, s.recovery, s.securityHeaders, s.transport, s.recognise, s.rateLimit, s.sameOrigin, s.guard, s.body, s.patient, s.once)
	e.NoMethod(func(c *gin.Context) {
		s.fail(c, newProblem(http.StatusMethodNotAllowed, "invalid", message.CallMethodNotAllowed()))
	})
	e.NoRoute(s.web)

	e.GET("/auth/login", s.startLogin)
	e.GET("/auth/callback", s.finishLogin)
	e.POST("/auth/logout", s.logout)
	e.GET("/healthz", func(c *gin.Context) { c.String(http.StatusOK, "ok\n") })
	e.GET("/readyz", s.readyz)
	strict := openapi.NewStrictHandlerWithOptions(&api{s}, []openapi.StrictMiddlewareFunc{inTurn(), bodyDecoded}, openapi.StrictGinServerOptions{ //nolint:contextcheck // who waits has a context of his own
		RequestErrorHandlerFunc:  func(c *gin.Context, err error) { s.fail(c, badRequest(err)) },
		HandlerErrorFunc:         func(c *gin.Context, err error) { s.fail(c, err) },
		ResponseErrorHandlerFunc: s.responseFailed,
	})
	openapi.RegisterHandlersWithOptions(e, strict, openapi.GinServerOptions{BaseURL: apiBase,
		ErrorHandler: func(c *gin.Context, err error, _ int) { s.fail(c, badRequest(err)) }})
	s.engine = e
	return s, nil
}

// Configure makes the HTTP server serve the portal, with an end to everything that a slow or silent caller could hold open.
func (s *Server) Configure(h *http.Server) {
	h.Handler, h.ReadHeaderTimeout, h.ReadTimeout, h.WriteTimeout = s, 5*time.Second, 15*time.Second, 30*time.Second
	h.IdleTimeout, h.MaxHeaderBytes = 2*time.Minute, 32<<10
}

// Catalog as it is now.
func (s *Server) Catalog() *catalog.Catalog { return s.Directory.Catalog() }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.engine.ServeHTTP(w, r) }

// Ready reports whether people can be served: without the ticket store or the policies they cannot. The note is about what they are
// served without.
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
	// People are still served then, with what was known, and told so; see GetMe.
	if since := s.Host.AwaySince(); !since.IsZero() {
		return fmt.Sprintf(", but the host cluster has not answered since %s", since.UTC().Format(time.RFC3339)), nil
	}
	return "", nil
}

// readyz is for load balancers in front, which know the portal's own address.
func (s *Server) readyz(c *gin.Context) {
	note, err := s.Ready(c.Request.Context())
	if err != nil {
		c.String(http.StatusServiceUnavailable, "%s\n", err)
		return
	}
	c.String(http.StatusOK, "ok%s\n", note)
}

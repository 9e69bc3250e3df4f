package core

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

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/credential"
	"github.com/acp-io/acp/internal/idempotency"
	"github.com/acp-io/acp/internal/loopback"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/tracing"
)

// HostState reports whether the host cluster can be read.
type HostState interface {
	// Ready reports whether the policies were read.
	Ready() bool
	// AwaySince returns the time since which the host cluster has not answered, or zero if it answers.
	AwaySince() time.Time
}

// Config is the configuration of a Server. All fields are required except Accepting, TrustedProxies, EmbedOrigins, Metrics, Stats,
// Tracer, TraceURL and Claims.
type Config struct {
	// TrustedProxies are the addresses of reverse proxies. Only their X-Forwarded-For and X-Forwarded-Proto headers are trusted, and
	// over plain HTTP other machines are served only through them.
	TrustedProxies []netip.Prefix
	Credentials    *credential.Service
	Once           idempotency.Store
	// Tracer records requests. If it is nil, nothing is recorded.
	Tracer *tracing.Tracer
	// TraceURL is the address of a page about a trace, with TraceIDPlaceholder in place of its id; "": there is none.
	TraceURL string
	// Accepting returns the reason why the program does not accept requests while it starts or ends. If Accepting is nil, it always does.
	Accepting func() error
	Metrics   prometheus.Registerer
	Stats     func(context.Context) (Stats, error)
	PublicURL *url.URL
	// EmbedOrigins are the origins whose pages may frame the page of one application or resource. Without one, no page is framed.
	EmbedOrigins []string
	Tickets      *approval.Service
	// HostState is the state of the host cluster.
	HostState   HostState
	Directory   *catalog.Service
	Sessions    scs.CtxStore
	SessionIdle time.Duration
	Issuer      string
	ClientID    string
	// Claims are the names of the claims of ID tokens that the portal reads.
	Claims Claims
	// ClientSecret is called at each login, so that a new secret needs no restart. It is nil for a public client.
	ClientSecret func() (string, error)
	Web          fs.FS // contains index.html if the web application was built
	Hub          *Hub
	Now          func() time.Time
	Log          *slog.Logger
}

// Validate returns an error that names missing or unsafe settings, for the operator.
func (c *Config) Validate() error {
	u := c.PublicURL
	switch {
	case u == nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.User != nil:
		return errors.New("--public-url must be an origin such as https://acp.example.com")
	case u.Scheme == "http" && !loopback.Is(u.Hostname()):
		return errors.New("--public-url must be https unless it is on this machine (127.0.0.1, ::1, localhost): cookies and tokens would travel in the clear")
	case c.Issuer == "" || c.ClientID == "":
		return errors.New("--oidc-issuer and --oidc-client-id are required: people log in there")
	case c.SessionIdle < time.Minute || c.SessionIdle > sessionLifetime:
		return errors.New("--session-idle must be between 1m and 24h")
	}
	return errors.Join(CheckEmbedOrigins(c.EmbedOrigins), checkTraceURL(c.TraceURL))
}

// Server is the portal's HTTP handler.
type Server struct {
	Config
	table    map[string]Route // by method and path
	rows     []Route
	engine   *gin.Engine
	sessions *scs.SessionManager
	login    *login
	limits   *limits
	metrics  *metrics
	queries  *callerLimit
	// largeBodies bounds the memory for request bodies.
	largeBodies *largeBodies
	stop        context.Context
}

// New returns a server of the routes of a table, without the operations of the API, which Register adds. The end of the context
// ends its event streams, for which a graceful shutdown would wait.
func New(ctx context.Context, c Config, table []Route) (*Server, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	s := &Server{
		Config:      c,
		stop:        ctx,
		rows:        table,
		table:       map[string]Route{},
		limits:      newLimits(c.Now),
		queries:     &callerLimit{perCaller: QueriesPerCaller},
		largeBodies: newLargeBodies(),
	}
	for _, r := range table {
		s.table[r.Method+" "+r.Path] = r
	}
	s.metrics = newMetrics(c.Metrics, c.Hub, c.Stats, c.Now, c.Log)
	s.sessions = newSessions(c)
	s.login = newLogin(c)
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	e.HandleMethodNotAllowed = true
	e.RedirectTrailingSlash, e.RedirectFixedPath = false, false
	// Gin trusts no X-Forwarded-For header; ClientAddress evaluates those of trusted proxies.
	if err := e.SetTrustedProxies(nil); err != nil {
		return nil, err
	}
	e.Use(
		s.requestID,
		s.trace,
		s.accessLog,
		s.measure,
		s.recovery,
		s.securityHeaders,
		s.transport,
		s.authenticate,
		s.rateLimit,
		s.sameOrigin,
		s.guard,
		s.body,
		s.limitExpensive,
		s.executeOnce,
	)
	e.NoMethod(func(c *gin.Context) {
		s.fail(c, NewProblem(http.StatusMethodNotAllowed, "invalid", message.CallMethodNotAllowed()))
	})
	e.NoRoute(s.web)

	e.GET("/auth/login", s.startLogin)
	e.GET("/auth/callback", s.finishLogin)
	e.POST("/auth/logout", s.logout)
	e.GET("/healthz", func(c *gin.Context) { c.String(http.StatusOK, "ok\n") })
	e.GET("/readyz", s.readyz)
	s.engine = e
	return s, nil
}

// Register adds the operations of the API. It is called once, before the server serves requests.
func (s *Server) Register(operations openapi.StrictServerInterface) {
	strict := openapi.NewStrictHandlerWithOptions(
		operations,
		[]openapi.StrictMiddlewareFunc{limitBrief(briefOperations(s.rows)), bodyDecoded},
		openapi.StrictGinServerOptions{ //nolint:contextcheck // waiting requests have contexts of their own
			RequestErrorHandlerFunc:  func(c *gin.Context, err error) { s.fail(c, badRequest(err)) },
			HandlerErrorFunc:         func(c *gin.Context, err error) { s.fail(c, err) },
			ResponseErrorHandlerFunc: s.responseFailed,
		},
	)
	openapi.RegisterHandlersWithOptions(s.engine, strict, openapi.GinServerOptions{BaseURL: APIBase,
		ErrorHandler: func(c *gin.Context, err error, _ int) { s.fail(c, badRequest(err)) }})
}

// callerKey is the key of the caller in the context of a request to a mounted handler.
type callerKey struct{}

// Mount serves the paths below base with a handler that is not part of the API, by the rows of the table for base + "/*path". The
// handler gets the paths without prefix. It is called once for each handler, before the server serves requests.
func (s *Server) Mount(base, prefix string, h http.Handler) {
	h = http.StripPrefix(prefix, h)
	path := base + "/*path"
	for _, r := range s.rows {
		if r.Path == path {
			s.engine.Handle(r.Method, path, func(c *gin.Context) {
				h.ServeHTTP(c.Writer, c.Request.WithContext(context.WithValue(c.Request.Context(), callerKey{}, Caller(c))))
			})
		}
	}
}

// MountedCaller returns the caller of a request to a mounted handler. guard ensures that there is one.
func MountedCaller(r *http.Request) approval.Actor {
	a, _ := r.Context().Value(callerKey{}).(approval.Actor)
	return a
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

// Routes returns the routes that the server serves, each as its method and path.
func (s *Server) Routes() []string {
	var out []string
	for _, r := range s.engine.Routes() {
		out = append(out, r.Method+" "+r.Path)
	}
	return out
}

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
	if !s.HostState.Ready() {
		return "", errors.New("the host cluster's policies are not known yet")
	}
	// Requests are still served with the last known state, which pages report; see accountapi.
	if since := s.HostState.AwaySince(); !since.IsZero() {
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

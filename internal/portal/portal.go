package portal

import (
	"context"
	"net/http"
	"time"

	"github.com/acp-io/acp/internal/accesspackage"
	"github.com/acp-io/acp/internal/accessreview"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/catalog/scim"
	"github.com/acp-io/acp/internal/catalog/workloads"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/notify"
	"github.com/acp-io/acp/internal/notify/slack"
	"github.com/acp-io/acp/internal/notify/webhook"
	"github.com/acp-io/acp/internal/portal/accountapi"
	"github.com/acp-io/acp/internal/portal/answerapi"
	"github.com/acp-io/acp/internal/portal/catalogapi"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/flowapi"
	"github.com/acp-io/acp/internal/portal/governanceapi"
	"github.com/acp-io/acp/internal/portal/historyapi"
	"github.com/acp-io/acp/internal/portal/insightapi"
	"github.com/acp-io/acp/internal/portal/ledgerapi"
	"github.com/acp-io/acp/internal/portal/notificationapi"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/packageapi"
	"github.com/acp-io/acp/internal/portal/reviewapi"
	"github.com/acp-io/acp/internal/portal/rolloutapi"
	"github.com/acp-io/acp/internal/portal/ticketapi"
	"github.com/acp-io/acp/internal/portal/views"
	"github.com/acp-io/acp/internal/rollout"
	"github.com/acp-io/acp/internal/savedview"
)

// Config is the configuration of a portal. All fields are required except Slack, Receivers, Channels, Witnesses and Demo, and the optional ones of the
// HTTP core, whose HostState New sets.
type Config struct {
	core.Config
	Host  views.Host
	Flows audit.Reader
	// EvidenceWindow is the period that scores, replays and proposals cover.
	EvidenceWindow time.Duration
	// Insight evaluates flows of resources, and Rollout manages their rollout.
	Insight *rollout.Insight
	Rollout *rollout.Service
	// FleetDowngrader begins and ends downgrades: temporary audits of many resources.
	FleetDowngrader *rollout.FleetDowngrader
	Inbox           notificationapi.Inbox
	// Slack is the bot in whose messages people can decide; nil if nobody can.
	Slack *slack.Bot
	// Receivers are the receivers of webhooks that may decide for people, by name.
	Receivers  map[string]*webhook.Receiver
	Channels   []notify.Channel // the channels of notifications in addition to the inbox
	SavedViews savedview.Store
	// Packages stores access packages. It is also the one of Tickets.
	Packages accesspackage.Store
	// Reviews manages access reviews, which ReviewStore stores.
	Reviews     *accessreview.Service
	ReviewStore accessreview.Store
	Workloads   *workloads.Registrar
	Ledger      ledger.Reader
	// Witnesses returns the ledger heads that the anchors store; nil if there is no anchor.
	Witnesses func(context.Context) ([]ledger.Witness, error)
	Demo      bool
}

// New returns the portal's server. The end of the context ends its event streams, for which a graceful shutdown would wait.
func New(ctx context.Context, c Config) (*core.Server, error) {
	c.HostState = c.Host
	s, err := core.New(ctx, c.Config, routes)
	if err != nil {
		return nil, err
	}
	s.Register(newAPI(s, c)) //nolint:contextcheck // waiting requests have contexts of their own
	provisioning, err := scim.New(scim.Config{Directory: c.Directory, BaseURL: s.Origin() + scimBase, Actor: provisioner, Log: c.Log})
	if err != nil {
		return nil, err
	}
	s.Mount(scimBase, scimPrefix, provisioning) //nolint:contextcheck // requests have contexts of their own
	//nolint:contextcheck // requests have contexts of their own
	s.Mount(integrations, "", answerapi.New(answerapi.Config{
		Server: s, Slack: c.Slack, Receivers: c.Receivers, Preferences: c.Inbox.Preferences,
	}))
	return s, nil
}

// provisioner returns the caller of a SCIM request as an actor of the catalog.
func provisioner(r *http.Request) catalog.Actor {
	who := core.MountedCaller(r)
	return catalog.Actor{ID: who.ID, Security: who.Security && !who.Auditor}
}

// The features have different names here, so that one type can embed all of them.
type (
	accountAPI      = accountapi.API
	catalogAPI      = catalogapi.API
	flowAPI         = flowapi.API
	governanceAPI   = governanceapi.API
	historyAPI      = historyapi.API
	insightAPI      = insightapi.API
	ledgerAPI       = ledgerapi.API
	notificationAPI = notificationapi.API
	packageAPI      = packageapi.API
	reviewAPI       = reviewapi.API
	rolloutAPI      = rolloutapi.API
	ticketAPI       = ticketapi.API
)

// api implements the generated interface with the operations of all features and the event stream of the core.
type api struct {
	*accountAPI
	*catalogAPI
	*flowAPI
	*governanceAPI
	*historyAPI
	*insightAPI
	*ledgerAPI
	*notificationAPI
	*packageAPI
	*reviewAPI
	*rolloutAPI
	*ticketAPI
	streams *core.Server
}

var _ openapi.StrictServerInterface = (*api)(nil)

func newAPI(s *core.Server, c Config) *api {
	data := &views.Data{Host: c.Host, Directory: c.Directory, Tickets: c.Tickets, Flows: c.Flows, EvidenceWindow: c.EvidenceWindow, Now: c.Now, Log: c.Log}
	return &api{
		accountAPI: &accountapi.API{
			Data: data, Server: s, Credentials: c.Credentials, SessionIdle: c.SessionIdle, Inbox: c.Inbox, Saved: c.SavedViews, Demo: c.Demo,
		},
		catalogAPI:      &catalogapi.API{Data: data, Workloads: c.Workloads},
		flowAPI:         &flowapi.API{Data: data},
		governanceAPI:   governanceapi.New(data),
		historyAPI:      &historyapi.API{Data: data, Ledger: c.Ledger},
		insightAPI:      &insightapi.API{Data: data, Insight: c.Insight, Rollout: c.Rollout},
		ledgerAPI:       &ledgerapi.API{Data: data, Server: s, Ledger: c.Ledger, Witnesses: c.Witnesses},
		notificationAPI: &notificationapi.API{Data: data, Inbox: c.Inbox, Channels: c.Channels},
		packageAPI:      &packageapi.API{Data: data, Packages: c.Packages},
		reviewAPI:       &reviewapi.API{Data: data, Server: s, Reviews: c.Reviews, Store: c.ReviewStore},
		rolloutAPI:      &rolloutapi.API{Data: data, Insight: c.Insight, Rollout: c.Rollout, FleetDowngrader: c.FleetDowngrader},
		ticketAPI:       &ticketapi.API{Data: data, Server: s, Insight: c.Insight, Rollout: c.Rollout},
		streams:         s,
	}
}

// StreamEvents implements openapi.StrictServerInterface.
func (a *api) StreamEvents(ctx context.Context, r openapi.StreamEventsRequestObject) (openapi.StreamEventsResponseObject, error) {
	return a.streams.StreamEvents(ctx, r)
}

package portal

import (
	"context"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/catalog/workloads"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/notify"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/rollout"
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
	// Ready reports whether the policies were read.
	Ready() bool
	// AwaySince returns the time since which the host cluster has not answered, or zero if it answers. The other methods return the
	// state of that time.
	AwaySince() time.Time
}

// Flows is the reading side of the flow store.
type Flows = audit.Reader

// Config is the configuration of a portal. All fields are required except Witnesses, Channels and Demo, and the optional ones of the
// HTTP server, whose HostState New sets.
type Config struct {
	core.Config
	Host  Host
	Flows Flows
	// EvidenceWindow is the period that scores, replays and proposals cover.
	EvidenceWindow time.Duration
	// Insight evaluates flows of resources, and Rollout manages their rollout.
	Insight *rollout.Insight
	Rollout *rollout.Service
	// Downgrades manages temporary audits of many resources.
	Downgrades *rollout.Downgrades
	Inbox      Inbox
	Channels   []notify.Channel // the channels of notifications in addition to the inbox
	Workloads  *workloads.Registrar
	Ledger     ledger.Reader
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
	s.Register(newAPI(s, c))
	return s, nil
}

// api implements the generated interface. Each method calls the domain packages and maps the result; decoding is generated.
type api struct {
	*core.Server
	Host           Host
	Flows          Flows
	EvidenceWindow time.Duration
	Insight        *rollout.Insight
	Rollout        *rollout.Service
	Downgrades     *rollout.Downgrades
	Inbox          Inbox
	Channels       []notify.Channel
	Workloads      *workloads.Registrar
	Ledger         ledger.Reader
	Witnesses      func(context.Context) ([]ledger.Witness, error)
	Demo           bool
	replays        replays
	analyses       analyses
}

func newAPI(s *core.Server, c Config) *api {
	return &api{Server: s, Host: c.Host, Flows: c.Flows, EvidenceWindow: c.EvidenceWindow, Insight: c.Insight, Rollout: c.Rollout, Downgrades: c.Downgrades, Inbox: c.Inbox,
		Channels: c.Channels, Workloads: c.Workloads, Ledger: c.Ledger, Witnesses: c.Witnesses, Demo: c.Demo}
}

var _ openapi.StrictServerInterface = (*api)(nil)

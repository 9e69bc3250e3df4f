package views

import (
	"cmp"
	"log/slog"
	"slices"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/policy"
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

// Data reads what several features show: the objects of the host cluster, the catalog, tickets and flows. It must not be copied.
type Data struct {
	Host      Host
	Directory *catalog.Service
	Tickets   *approval.Service
	Flows     audit.Reader
	// EvidenceWindow is the period that scores, replays and proposals cover.
	EvidenceWindow time.Duration
	Now            func() time.Time
	Log            *slog.Logger

	watch watchCache
}

// Catalog returns the current catalog.
func (d *Data) Catalog() *catalog.Catalog { return d.Directory.Catalog() }

// ApprovalPolicies returns the approval policies in the order in which they are tried.
func (d *Data) ApprovalPolicies() ([]*v1alpha1.ApprovalPolicy, error) {
	all, err := d.Host.ApprovalPolicies()
	if err != nil {
		return nil, err
	}
	all = slices.Clone(all)
	slices.SortFunc(all, func(x, y *v1alpha1.ApprovalPolicy) int {
		return cmp.Or(cmp.Compare(x.Spec.Priority, y.Spec.Priority), cmp.Compare(x.Name, y.Name))
	})
	return all, nil
}

// MayBreakGlass reports whether a policy allows a person to get access before its approval. A policy of an organization never does.
func MayBreakGlass(p *v1alpha1.ApprovalPolicy, person string) bool {
	return p.Spec.BreakGlass != nil && p.Spec.Organization == "" && slices.Contains(p.Spec.BreakGlass.People, person)
}

// Input returns the objects of the host cluster, or an error if they were not read yet.
func (d *Data) Input() (policy.Input, error) {
	in, ok := d.Host.Input()
	if !ok {
		return in, approval.HostUnknown()
	}
	return in, nil
}

// ClassOf returns the class of a resource name, or an empty string if no class covers it or the policies are not known yet.
func (d *Data) ClassOf(name string) string {
	s, ok := d.Host.Snapshot()
	if !ok {
		return ""
	}
	c, ok := s.ResourceClassOf(name)
	if !ok {
		return ""
	}
	return c.Name
}

// Snapshot returns the snapshot of all policies, or an error if they were not read yet.
func (d *Data) Snapshot() (*policy.Snapshot, error) {
	s, ok := d.Host.Snapshot()
	if !ok {
		return nil, approval.HostUnknown()
	}
	return s, nil
}

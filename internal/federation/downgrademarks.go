package federation

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/internal/federation/guard"
)

// DowngradeMarks are the downgrade marks that the members currently have.
type DowngradeMarks struct{ *fleet[guard.Downgrade] }

// NewDowngradeMarks returns DowngradeMarks that are idle until Run. The config needs no Kind and Revision.
func NewDowngradeMarks(config FleetConfig) (*DowngradeMarks, error) {
	config.Kind = downgradeMark
	f, err := newFleet(config, func(u *unstructured.Unstructured) (guard.Downgrade, error) { return guard.ParseMark(u), nil })
	if err != nil {
		return nil, err
	}
	return &DowngradeMarks{f}, nil
}

// In returns the mark of a member, as last seen if the member cannot be read, or nil.
func (m *DowngradeMarks) In(cluster string) *guard.Downgrade {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if one := m.members[cluster]; one != nil {
		if found, ok := one.watch.Get(guard.Mark); ok {
			return &found
		}
	}
	return nil
}

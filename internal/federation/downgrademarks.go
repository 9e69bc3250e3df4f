package federation

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/internal/federation/guard"
)

// DowngradeMarks are the downgrade marks that the members currently have.
type DowngradeMarks struct{ *fleet[guard.DowngradeMark] }

// NewDowngradeMarks returns DowngradeMarks that are idle until Run. The config needs no Kind and Revision.
func NewDowngradeMarks(config FleetConfig) (*DowngradeMarks, error) {
	config.Kind = downgradeMark
	f, err := newFleet(config, func(u *unstructured.Unstructured) (guard.DowngradeMark, error) {
		return guard.ParseDowngradeMark(u), nil
	})
	if err != nil {
		return nil, err
	}
	return &DowngradeMarks{f}, nil
}

// In returns the mark of a member, as last seen if the member cannot be read, or nil.
func (m *DowngradeMarks) In(cluster string) *guard.DowngradeMark {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if one := m.members[cluster]; one != nil {
		if found, ok := one.watch.Get(guard.DowngradeMarkName); ok {
			return &found
		}
	}
	return nil
}

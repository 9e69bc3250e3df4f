package federation

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/internal/federation/guard"
)

// Marks are those of downgrades, as the members have them now.
type Marks struct{ *fleet[guard.Downgrade] }

// NewMarks makes Marks that do nothing until Run. Kind and Revision of the config are not needed.
func NewMarks(config FleetConfig) (*Marks, error) {
	config.Kind = downgradeMark
	f, err := newFleet(config, func(u *unstructured.Unstructured) (guard.Downgrade, error) { return guard.ParseMark(u), nil })
	if err != nil {
		return nil, err
	}
	return &Marks{f}, nil
}

// In is the mark of a member, also the last that was seen of one that cannot be read now; nil: none was seen.
func (m *Marks) In(cluster string) *guard.Downgrade {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if one := m.members[cluster]; one != nil {
		if found, ok := one.watch.Get(guard.Mark); ok {
			return &found
		}
	}
	return nil
}

package approval

import (
	"sync"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval/rules"
)

// compiler caches compiled approval policies by the resource version of their object.
type compiler struct {
	mu    sync.Mutex
	known map[string]*rules.Policy // by resource version
}

func (s *Service) compiled(objects []*v1alpha1.ApprovalPolicy) []*rules.Policy {
	s.compiler.mu.Lock()
	defer s.compiler.mu.Unlock()
	out, known := make([]*rules.Policy, 0, len(objects)), make(map[string]*rules.Policy, len(objects))
	for _, o := range objects {
		key := o.Name + "/" + string(o.UID) + "/" + o.ResourceVersion
		p, ok := s.compiler.known[key]
		if !ok || o.ResourceVersion == "" {
			p, _ = rules.Compile(o) // a policy that does not compile matches, so that the request is refused
		}
		known[key], out = p, append(out, p)
	}
	s.compiler.known = known
	return out
}

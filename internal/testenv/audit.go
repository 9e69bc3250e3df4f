package testenv

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Request is a request that an API server answered, from its audit log.
type Request struct {
	User, Verb                         string
	Group, Resource, Subresource, Name string
	Namespace                          string
	Code                               int
}

const auditPolicy = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [{"level": "Metadata"}]}`

// audit makes the API server keep a log of all requests, which Requests reads.
func (s *Server) audit() error {
	policy := filepath.Join(s.dir, "audit-policy.json")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return fmt.Errorf("write the audit policy: %w", err)
	}
	s.env.ControlPlane.GetAPIServer().Configure().Set("audit-policy-file", policy).Set("audit-log-path", s.auditLog())
	return nil
}

func (s *Server) auditLog() string { return filepath.Join(s.dir, "audit.log") }

// Requests returns the requests of resources so far. A watch is there from its first answer on.
func (s *Server) Requests() ([]Request, error) {
	f, err := os.Open(s.auditLog())
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	defer func() { _ = f.Close() }() // it is only read
	var out []Request
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			Verb      string
			User      struct{ Username string }
			ObjectRef *struct{ APIGroup, Resource, Subresource, Name, Namespace string }
			Response  struct{ Code int } `json:"responseStatus"`
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			var syntax *json.SyntaxError
			if errors.As(err, &syntax) {
				break // the last line is being written
			}
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		if o := e.ObjectRef; o != nil {
			out = append(
				out,
				Request{
					User:        e.User.Username,
					Verb:        e.Verb,
					Group:       o.APIGroup,
					Resource:    o.Resource,
					Subresource: o.Subresource,
					Name:        o.Name,
					Namespace:   o.Namespace,
					Code:        e.Response.Code,
				},
			)
		}
	}
	return out, lines.Err()
}

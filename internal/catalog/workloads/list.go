package workloads

import (
	"strings"

	"github.com/acp-io/acp/internal/message"
)

// Query selects registered workloads. Empty fields are no condition.
type Query struct {
	Source, Subject string
	// Text is searched in the id, the subject and the addresses.
	Text string
	// Cursor is the cursor of the previous page, or empty. Limit is the number of workloads, at least 1.
	Cursor string
	Limit  int
}

// List returns one page, sorted by the names of the objects. People see the workloads of their applications.
func (r *Registrar) List(a Actor, q Query) (out []Registered, next string, err error) {
	if a.ID == "" {
		return nil, "", message.CallLoginFirst().WithKind(ErrForbidden)
	}
	if err := r.known(); err != nil {
		return nil, "", err
	}
	text := strings.ToLower(q.Text)
	mine := map[string]bool{}
	sees := func(subject string) bool {
		if a.Machine || a.Security || a.Auditor {
			return true
		}
		own, known := mine[subject]
		if !known {
			own = r.owns(a, subject)
			mine[subject] = own
		}
		return own
	}
	r.State.listAfter(q.Cursor, func(x Registered) bool {
		if !sees(x.Subject) || q.Source != "" && (x.Source != q.Source || !x.Managed) || q.Subject != "" && x.Subject != q.Subject ||
			text != "" && !strings.Contains(strings.ToLower(x.Object+"\n"+x.Subject+"\n"+strings.Join(x.Addresses, "\n")), text) {
			return true
		}
		if len(out) == q.Limit {
			next = out[q.Limit-1].Object
			return false
		}
		out = append(out, x)
		return true
	})
	return out, next, nil
}

package insight

import (
	"context"
	"fmt"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
)

// knownFor is how long before a review flows are searched for clients. A client whose last flow is older is new again, because what it
// does now is not what was reviewed.
const knownFor = 90 * 24 * time.Hour

// KnownClients contains the clients of a resource that were seen before an instant. Any other client is new, also if the time at which it
// was first seen is unknown.
type KnownClients struct {
	before  time.Time
	lines   map[clientKey]bool
	sources map[string]bool
	ports   map[portKey]map[string]bool
}

// KnownInput is the input of Known.
type KnownInput struct {
	ProposeInput
	// Before is the end of the flows that were reviewed.
	Before time.Time
}

// Known returns the clients of a resource that were seen before an instant, with the names and actions that a proposal of the same input
// has. The window of the input does not matter: earlier flows are read, too.
func Known(ctx context.Context, r Reader, in KnownInput) (*KnownClients, error) {
	k := &KnownClients{before: in.Before, lines: map[clientKey]bool{}, sources: map[string]bool{}, ports: map[portKey]map[string]bool{}}
	state := newPolicyState(in.Snapshot, in.Now)
	f := audit.Filter{Since: in.Before.Add(-knownFor), Until: in.Before, Resources: []string{in.Resource}}
	err := r.Totals(ctx, f, func(t audit.Total) error {
		// The end of the filter is rounded up to a minute.
		if t.FirstSeen.IsZero() || !t.FirstSeen.Before(in.Before) {
			return nil
		}
		port := portOf(&t.Edge)
		action, _ := state.actionOf(in.Resource, port)
		client := t.Subject
		if client == "" {
			client = t.Source
			k.sources[client] = true
		}
		if action != "" {
			k.lines[clientKey{action, t.Subject}] = true
			return nil
		}
		if k.ports[port] == nil {
			k.ports[port] = map[string]bool{}
		}
		k.ports[port][client] = true
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the earlier clients of %s: %w", in.Resource, err)
	}
	return k, nil
}

// old reports whether the evidence itself proves that a client was seen before the instant.
func (k *KnownClients) old(s FlowEvidence) bool { return !s.First.IsZero() && s.First.Before(k.before) }

// Line reports whether the client of a line used its action before the instant.
func (k *KnownClients) Line(l ProposalLine) bool {
	return k.old(l.Evidence) || k.lines[clientKey{l.Action, l.Subject}]
}

// Source reports whether a source without a name was seen before the instant.
func (k *KnownClients) Source(l UnattributedLine) bool {
	return k.old(l.Evidence) || k.sources[l.Source]
}

// Port reports whether a client used a port that no action has before the instant. The evidence of a port does not prove it, because it is
// that of all its clients.
func (k *KnownClients) Port(protocol v1alpha1.Protocol, port uint16, client string) bool {
	return k.ports[portKey{protocol: protocol, port: port}][client]
}

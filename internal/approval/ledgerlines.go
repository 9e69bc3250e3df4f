package approval

import "github.com/acp-io/acp/internal/ledger"

// LedgerEntries are the ledger's lines for the events that are not stored yet. What members did is not a decision
// and is kept in the timeline only.
func LedgerEntries(t *Ticket) []ledger.Entry {
	var out []ledger.Entry
	for _, e := range t.Events {
		if e.Saved {
			continue
		}
		switch e.Kind {
		case EventCompiled, EventPropagated, EventRealized:
			continue
		}
		details := map[string]string{"state": string(t.State)}
		for k, v := range map[string]string{"step": e.Step, "comment": e.Comment} {
			if v != "" {
				details[k] = v
			}
		}
		if e.Kind == EventSubmitted {
			for _, it := range t.Items {
				details["application"], details["resource"] = it.ApplicationName, it.ResourceName
			}
		}
		if e.Kind == EventWritten || e.Kind == EventRevokeWritten {
			details["policy"] = t.Policy
		}
		out = append(out, ledger.Entry{At: e.At, Actor: e.Actor, Action: "ticket." + string(e.Kind), Object: t.ID(), Details: details})
	}
	return out
}

package approval

import (
	"strconv"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/ledger"
)

// LedgerEntries returns the ledger entries for the events that are not stored yet. Events of members are no decisions and
// are only in the timeline.
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
		details := map[string]string{"kind": string(t.Kind), "state": string(t.State())}
		for k, v := range map[string]string{"step": e.Step, "comment": e.Comment, "onBehalfOf": e.OnBehalfOf, "digest": e.Revision,
			"through": e.Through} {
			if v != "" {
				details[k] = v
			}
		}
		if e.Comment == "" {
			ledger.SetMessage(details, "comment", e.Message)
		}
		if e.Kind == EventShortened {
			details["until"] = t.Items[e.Item].End().UTC().Format(time.RFC3339)
		}
		if e.Item >= 0 {
			describe(details, t.Items[e.Item])
			details["item"] = strconv.Itoa(e.Item + 1)
		} else if len(t.Items) == 1 {
			describe(details, t.Items[0])
		}
		out = append(out, ledger.Entry{At: e.At, Actor: e.Actor, Action: "ticket." + string(e.Kind), Object: t.ID(), Details: details})
	}
	return out
}

// describe adds what an item is about, and what was shown of it, to the details of an entry.
func describe(details map[string]string, it Item) {
	details["state"] = string(it.State)
	add := func(k, v string) {
		if v != "" {
			details[k] = v
		}
	}
	add("application", it.ApplicationName)
	add("resource", it.ResourceName)
	add("policy", it.Policy)
	add("shown", it.Shown.Digest)
	add("approval", it.Approval)
	if c := it.Change; c != nil {
		add("object", c.Kind+"/"+c.Name)
		add("verb", c.Verb)
		if w, ok := c.Workload(); ok {
			add("addresses", strings.Join(w.Addresses, " "))
		}
	}
	if it.Adopt {
		details["adopt"] = "true"
	}
	if o := it.Override; o != nil {
		details["override"], details["evidence"] = o.Reason, o.Evidence
	}
	if p := it.Package; p != nil {
		details["package"], details["version"] = p.Name, strconv.Itoa(p.Version)
	}
	if it.Target != nil {
		add("target", SID(it.Target.Ticket, it.Target.Item))
	}
}

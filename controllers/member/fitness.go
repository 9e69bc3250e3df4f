package member

import (
	"slices"

	"github.com/acp-io/acp/internal/federation/preflight"
)

// Unenforced says why what a member has of a class would refuse nobody there; "": as far as is known it would. What was
// never looked at is not known.
func (i *Inspector) Unenforced(cluster, class string) string {
	i.mu.RLock()
	defer i.mu.RUnlock()
	for _, f := range i.unfit[cluster] {
		if f.About == "" || f.About == class {
			return f.Message
		}
	}
	return ""
}

// toothless are the findings that make enforcement a matter of words. The others keep a cluster from joining, but what is
// pushed to one that has joined is enforced all the same.
func toothless(findings []preflight.Finding) []preflight.Finding {
	codes := []string{preflight.AuditMode, preflight.NotEnforcing, preflight.LabelNotIdentity, preflight.LabelsUnreadable}
	return slices.DeleteFunc(slices.Clone(findings), func(f preflight.Finding) bool {
		return f.Severity != preflight.Fails || !slices.Contains(codes, f.Code)
	})
}

// note keeps what was found in a member, and tells whoever decides about units when that changed. A member that does not
// answer is as it was.
func (i *Inspector) note(cluster string, findings []preflight.Finding) {
	if len(findings) > 0 && findings[0].Code == preflight.Unreachable {
		return
	}
	now := toothless(findings)
	i.mu.Lock()
	changed := !slices.Equal(i.unfit[cluster], now)
	i.unfit[cluster] = now
	i.mu.Unlock()
	if !changed {
		return
	}
	for _, f := range now {
		i.Log.Info("Member does not enforce what is pushed", "member", cluster, "code", f.Code, "class", f.About, "message", f.Message, "do", f.Do)
	}
	if i.Changed != nil {
		i.Changed(cluster)
	}
}

// forget drops what is known of members that are not registered.
func (i *Inspector) forget(registered map[string]history) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for c := range i.unfit {
		if _, ok := registered[c]; !ok {
			delete(i.unfit, c)
		}
	}
	for c := range i.looks {
		if _, ok := registered[c]; !ok {
			delete(i.looks, c)
		}
	}
}

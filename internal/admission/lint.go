package admission

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// Prefixes shorter than these contain so many addresses that they hardly identify anyone.
const (
	broad4 = 8
	broad6 = 16
)

// Note is a warning about something valid but questionable.
type Note struct {
	// Kind and Name identify the object. Ref is set if the note is about one statement.
	Kind, Name string
	Ref        policy.Ref
	Message    message.Message
}

// Lint returns notes about all objects, sorted by kind, name and statement.
func Lint(s *policy.Snapshot, in policy.Input, at time.Time) []Note {
	var out []Note
	for _, p := range in.Policies {
		out = append(out, lintStatements(s, p, at)...)
	}
	for _, r := range in.Resources {
		out = append(out, lintResource(s, r, at)...)
	}
	for _, c := range in.ResourceClasses {
		out = append(out, lintResourceClass(nil, c)...)
	}
	for _, w := range in.Workloads {
		out = append(out, lintWorkload(w)...)
	}
	out = append(out, waitingRequests(s, in, at)...)
	out = append(out, sharedKeys(in)...)
	slices.SortStableFunc(out, func(a, b Note) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Ref.SID, b.Ref.SID))
	})
	return out
}

func lintStatements(s *policy.Snapshot, p *v1alpha1.AccessControlPolicy, at time.Time) []Note {
	var out []Note
	for i := range p.Spec.Statements {
		st := &p.Spec.Statements[i]
		note := func(m message.Message) {
			out = append(out, Note{Kind: "AccessControlPolicy", Name: p.Name, Ref: policy.Ref{Policy: p.Name, SID: st.SID}, Message: m})
		}
		if st.NotAfter != nil && !at.Before(st.NotAfter.Time) {
			note(message.LintExpired(st.NotAfter.UTC().Format(time.RFC3339)))
			continue
		}
		anyone := slices.Contains(st.Subjects, v1alpha1.Subject("*"))
		wild := anyone || slices.ContainsFunc(st.Subjects, func(n v1alpha1.Subject) bool { return strings.HasSuffix(string(n), "*") }) ||
			slices.ContainsFunc(st.Resources, func(n v1alpha1.ResourceName) bool { return strings.HasSuffix(string(n), "*") })
		switch {
		case anyone && st.Effect == v1alpha1.EffectAllow:
			note(message.LintAllowsAnyone())
		case anyone:
			note(message.LintDeniesEveryone())
		}
		if wild && st.Effect == v1alpha1.EffectAllow && st.NotAfter == nil {
			note(message.LintWildcardWithoutEnd())
		}
		for _, subject := range st.Subjects {
			if n, err := policy.ParseName(string(subject)); err == nil && n.IsPrefix() && broad(n.ID) {
				note(message.LintBroadSubject(n.ID))
			}
		}
		for _, r := range st.Resources {
			if mode := notOnboarded(s, p.Name, string(r)); mode != "" {
				note(message.LintNotOnboarded(string(r), string(mode)))
			}
		}
		if st.Effect == v1alpha1.EffectDeny {
			for _, r := range st.Resources {
				if mode, ineffective := ineffectiveDeny(s, string(r), at); ineffective {
					note(message.LintDenyWithoutEffect(string(r), string(mode)))
				}
			}
		}
	}
	return out
}

// ineffectiveDeny reports whether a deny on a resource takes effect in no member, with the resource's mode.
func ineffectiveDeny(s *policy.Snapshot, resource string, at time.Time) (v1alpha1.Mode, bool) {
	if strings.HasSuffix(resource, "*") {
		return "", false
	}
	mode := s.EffectiveMode(resource, "", at)
	if u, ok := s.CompileResource(resource, at); ok {
		for _, m := range u.ClusterModes {
			if m == v1alpha1.ModeEnforce {
				return mode, false
			}
		}
	}
	return mode, mode != v1alpha1.ModeEnforce
}

func lintResource(s *policy.Snapshot, r *v1alpha1.ProtectedResource, at time.Time) []Note {
	var out []Note
	note := func(m message.Message) { out = append(out, Note{Kind: "ProtectedResource", Name: r.Name, Message: m}) }
	name := string(r.Spec.Resource)
	if u, ok := s.CompileResource(name, at); ok && u.Mode == v1alpha1.ModeEnforce && !allowed(s, name, at) {
		note(message.LintResourceClosed(name))
	}
	if t := r.Spec.TemporaryAudit; t != nil {
		switch {
		case !at.Before(t.Until.Time):
			note(message.LintTemporaryAuditOver(t.Until.UTC().Format(time.RFC3339)))
		case strictest(r) != v1alpha1.ModeEnforce:
			note(message.LintTemporaryAuditWithoutEffect(string(strictest(r))))
		}
	}
	return out
}

func allowed(s *policy.Snapshot, resource string, at time.Time) bool {
	return slices.ContainsFunc(s.WhoCanReach(resource, at), func(g policy.Grant) bool { return g.Effect == policy.Allow })
}

// lintResourceClass also reports what an update removes; old is nil for a class that is not being changed.
func lintResourceClass(old, c *v1alpha1.ResourceClass) []Note {
	var out []Note
	note := func(m message.Message) { out = append(out, Note{Kind: "ResourceClass", Name: c.Name, Message: m}) }
	if c.Spec.OtherPorts == v1alpha1.OtherPortsAllow && (old == nil || old.Spec.OtherPorts != v1alpha1.OtherPortsAllow) {
		note(message.LintOtherPortsOpen())
	}
	if p := c.Spec.Placement.Clusters; p != nil && len(*p) == 0 {
		note(message.LintPlacementEmpty())
	}
	if old != nil {
		for _, a := range old.Spec.Actions {
			if !slices.ContainsFunc(c.Spec.Actions, func(b v1alpha1.ClassAction) bool { return a.Name == b.Name }) {
				note(message.LintActionRemoved(a.Name))
			}
		}
	}
	return out
}

func lintWorkload(w *v1alpha1.ExternalWorkload) []Note {
	var out []Note
	for _, a := range w.Spec.Addresses {
		if broad(a) {
			out = append(out, Note{Kind: "ExternalWorkload", Name: w.Name, Message: message.LintBroadWorkload(a, string(w.Spec.Subject))})
		}
	}
	return out
}

// broad reports whether a prefix is so large that it hardly identifies anyone.
func broad(text string) bool {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return false
	}
	if p.Addr().Is4() {
		return p.Bits() < broad4
	}
	return p.Bits() < broad6
}

// notOnboarded returns the default mode of the resource's class if the statement names exactly a resource that is not protected
// and will not be onboarded automatically, because only the portal's own policies cause onboarding. Otherwise it returns an empty
// mode.
func notOnboarded(s *policy.Snapshot, name, resource string) v1alpha1.Mode {
	c, ok := s.ResourceClassOf(resource)
	base, _ := policy.SplitPolicyShard(name)
	if !ok || strings.HasSuffix(resource, "*") || c.Spec.DefaultMode == "" || base == policy.PolicyNameFor(resource) || s.IsProtected(resource) {
		return ""
	}
	return c.Spec.DefaultMode
}

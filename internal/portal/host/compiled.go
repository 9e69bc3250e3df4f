package host

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/enforcer/registry"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/change"
	"github.com/acp-io/acp/internal/wallclock"
)

// mostLines is the maximum number of lines of one item. A class may have thousands of resources.
const mostLines = 1000

// CompiledLines returns the lines that the statement of one item adds in the fleet of the input, as if its resource were in Enforce and
// had no other statement. Changes of other statements do not affect them; changes of a class or of the subject's addresses do.
func CompiledLines(in policy.Input, it approval.Item) []string {
	it.SID, it.ExpiresAt = "shown", time.Time{}
	alone := policy.Objects{ResourceClasses: in.ResourceClasses, SubjectClasses: in.SubjectClasses,
		Resources: []*v1alpha1.ProtectedResource{{ObjectMeta: metav1.ObjectMeta{Name: "shown"},
			Spec: v1alpha1.ProtectedResourceSpec{Resource: v1alpha1.ResourceName(it.ResourceName), Mode: v1alpha1.ModeEnforce}}},
		Policies: []*v1alpha1.AccessControlPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "shown"},
			Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{approval.Statement(it)}}}},
	}
	for _, w := range in.Workloads {
		if string(w.Spec.Subject) == it.ApplicationName {
			alone.Workloads = append(alone.Workloads, w)
		}
	}
	s := policy.NewSnapshot(policy.NewInput(alone, in.Fleet()))
	at := wallclock.Now()
	u, ok := s.CompileResource(it.ResourceName, at)
	if !ok {
		return []string{"nothing: the resource cannot be compiled"}
	}
	var lines []string
	for _, r := range append(u.Refused, registry.Refused(s, &u, s.Targets(&u), at)...) {
		lines = append(lines, approval.LineRefused+r.Message.Text)
	}
	for _, peer := range groups(s) {
		lines = append(lines, "workloads outside the fleet: "+peer)
	}
	lines = append(lines, unitLines{u: &u}.access()...)
	return append(lines, placementLines(u)...)
}

// ChangedLines returns the lines of a change of an object. For a ProtectedResource they are the compiled unit after the change, and
// the restrictions of the unit before that the new one does not have. For a class they are the differences of all units, each with a
// leading + or -, because all of them are effects of the change.
func ChangedLines(base *policy.Snapshot, in policy.Input, it approval.Item, at time.Time) []string {
	before, after, names := change.Snapshots(base, in, approval.KindClass, []approval.Item{it})
	if it.Change.Kind == approval.ObjectProtectedResource {
		lines := compiledUnit(after, it.ResourceName, at, false)
		for _, l := range missing(lines, compiledUnit(before, it.ResourceName, at, false)) {
			if !strings.HasPrefix(l, approval.LineAllow) {
				lines = append(lines, approval.LineRemoved+l)
			}
		}
		return lines
	}
	for _, folded := range []bool{false, true} {
		if lines, ok := differences(before, after, names, at, folded); ok {
			return lines
		}
	}
	lines, _ := differences(before, after, names, at, true)
	return bounded(lines)
}

// ScopeLines returns the lines that a statement about several subjects or resources adds to the units of the protected resources, and with
// a leading - those that it removes, such as what a deny takes away. The end and the hours of the statement do not count, so that the
// lines are the same at any time. For the end of another ticket's statement they are the lines of that statement.
func ScopeLines(base *policy.Snapshot, in policy.Input, it approval.Item, at time.Time) []string {
	if it.Target != nil && it.SID == "" {
		in.Policies = change.WithoutTarget(in.Policies, it)
	}
	if it.SID == "" {
		it.SID = "shown"
	}
	it.ExpiresAt, it.ShortenTo, it.Hours = time.Time{}, time.Time{}, nil
	before, after, names := change.Snapshots(base, in, approval.KindStatement, []approval.Item{it})
	for _, folded := range []bool{false, true} {
		if lines, ok := differences(before, after, names, at, folded); ok {
			return signless(lines)
		}
	}
	lines, _ := differences(before, after, names, at, true)
	return bounded(signless(lines))
}

// signless removes the sign of added lines, so that an added deny is a LineDeny, which grants nothing.
func signless(lines []string) []string {
	for i, l := range lines {
		lines[i] = strings.TrimPrefix(l, approval.LineAdded)
	}
	return lines
}

// differences returns the differences of the units with these names, sorted. Without folding it returns false as soon as there are more
// than mostLines. Folded lines do not name single applications or resources, so a class has few of them.
func differences(before, after *policy.Snapshot, names []string, at time.Time, folded bool) ([]string, bool) {
	found := map[string]bool{}
	for _, name := range names {
		a, b := compiledUnit(before, name, at, folded), compiledUnit(after, name, at, folded)
		for _, l := range missing(a, b) {
			found[approval.LineAdded+l] = true
		}
		for _, l := range missing(b, a) {
			found[approval.LineRemoved+l] = true
		}
		if !folded && len(found) > mostLines {
			return nil, false
		}
	}
	return slices.Sorted(maps.Keys(found)), len(found) <= mostLines
}

// missing returns the lines of b that a does not have.
func missing(a, b []string) []string {
	has := make(map[string]bool, len(a))
	for _, l := range a {
		has[l] = true
	}
	var out []string
	for _, l := range b {
		if !has[l] {
			out = append(out, l)
		}
	}
	return out
}

// compiledUnit returns the lines of a unit: its access, its modes and its members. It returns nil if there is no such unit.
func compiledUnit(s *policy.Snapshot, name string, at time.Time, folded bool) []string {
	u, ok := s.CompileResource(name, at)
	if !ok {
		return nil
	}
	l := unitLines{u: &u, folded: folded}
	return slices.Concat(l.access(), l.modes(), placementLines(u))
}

// groups are the addresses of external workloads of the subject.
func groups(s *policy.Snapshot) []string {
	var out []string
	for _, g := range s.ExternalGroups() {
		for _, p := range g.Prefixes {
			out = append(out, g.ID+" "+p.String())
		}
	}
	return out
}

// unitLines formats a unit as lines, so that each added line is added access. Folded lines do not name single applications and
// resources. With the name of a subject, the lines are only about its external addresses, which must be the only ones of the unit.
type unitLines struct {
	u       *policy.Unit
	folded  bool
	outside string
}

func (l unitLines) value(v string) string {
	if l.folded {
		return "<each>"
	}
	return v
}

// target returns the text that names the pods of the unit.
func (l unitLines) target() string {
	switch {
	case l.u.LabelValue != "":
		return "pods with " + l.u.LabelKey + "=" + l.value(l.u.LabelValue)
	case len(l.u.LabelValues) > 0:
		return "pods with " + l.u.LabelKey + " in (" + l.value(strings.Join(l.u.LabelValues, ", ")) + ")"
	}
	return "pods with " + l.u.LabelKey
}

// access returns the lines of the rules of every enforcer.
func (l unitLines) access() []string {
	var lines []string
	for i := range l.u.Rules {
		lines = append(lines, l.rule(&l.u.Rules[i])...)
	}
	for _, p := range l.u.OpenPorts {
		if l.outside != "" {
			break // they are open for anyone
		}
		lines = append(lines, approval.LineAllow+"anyone to "+l.target()+" on "+portText(p)+", a port of no action")
	}
	if slices.Contains(l.u.Enforcers, v1alpha1.EnforcerIstio) {
		for i := range l.u.Statements {
			lines = append(lines, l.statement(&l.u.Statements[i])...)
		}
	}
	return lines
}

// rule returns one line for each peer, port and request of a rule.
func (l unitLines) rule(r *policy.Rule) []string {
	var peers []string
	if l.outside != "" {
		if len(r.External)+len(r.ExternalClasses) > 0 {
			peers = []string{"workloads outside the fleet of " + l.outside}
		}
		return l.each(r.Effect, peers, r.Ports, r.HTTP, "")
	}
	if r.Anyone {
		peers = append(peers, "anyone")
	}
	for _, s := range r.Subjects {
		if s.Any {
			peers = append(peers, "pods with "+s.LabelKey)
		}
		for _, v := range s.Values {
			peers = append(peers, "pods with "+s.LabelKey+"="+l.value(v))
		}
	}
	for _, p := range r.Prefixes {
		peers = append(peers, "addresses "+p.String())
	}
	for _, g := range r.External {
		peers = append(peers, "workloads outside the fleet of "+l.value(g))
	}
	for _, g := range r.ExternalClasses {
		peers = append(peers, "workloads outside the fleet of "+g)
	}
	return l.each(r.Effect, peers, r.Ports, r.HTTP, "")
}

// statement returns the lines of one statement for a dataplane that identifies clients by service accounts.
func (l unitLines) statement(st *policy.UnitStatement) []string {
	if st.OverriddenBy != (policy.Ref{}) {
		return nil
	}
	var peers []string
	if st.Anyone {
		peers = append(peers, "anyone")
	}
	for _, s := range st.Subjects {
		if l.outside != "" {
			break
		}
		if s.ServiceAccount == "" {
			peers = append(peers, "no service account")
			continue
		}
		peers = append(peers, "service account "+l.account(s))
	}
	for _, p := range st.Patterns {
		peers = append(peers, "service accounts of "+p)
	}
	for _, r := range st.Ranges {
		text := "addresses " + r.Prefix.String()
		for _, e := range r.Except {
			text += " but " + e.String()
		}
		peers = append(peers, text)
	}
	var lines []string
	for _, a := range st.Actions {
		lines = append(lines, l.each(st.Effect, peers, a.Ports, a.HTTP, " by istio")...)
	}
	return lines
}

// account returns the text of a subject's service account. Folded, it contains the template, which a change of a SubjectClass may
// change.
func (l unitLines) account(s policy.UnitSubject) string {
	if !l.folded {
		return s.ServiceAccount
	}
	name, err := policy.ParseName(s.Name)
	if err != nil {
		return s.ServiceAccount
	}
	id := name.ID[strings.LastIndexByte(name.ID, '/')+1:]
	if at := strings.LastIndex(s.ServiceAccount, id); at >= 0 {
		return s.ServiceAccount[:at] + "<each>" + s.ServiceAccount[at+len(id):]
	}
	return s.ServiceAccount
}

func (l unitLines) each(effect policy.Effect, peers []string, ports []v1alpha1.Port, http []v1alpha1.HTTPMatch, by string) []string {
	requests := []string{""}
	if len(http) > 0 {
		requests = nil
		for _, m := range http {
			requests = append(requests, strings.TrimRight(" "+m.Method+" "+m.Path, " "))
		}
	}
	begin := approval.LineAllow
	if effect == policy.Deny {
		begin = approval.LineDeny
	}
	var lines []string
	for _, peer := range peers {
		for _, p := range ports {
			for _, request := range requests {
				lines = append(lines, fmt.Sprintf("%s%s to %s on %s%s%s", begin, peer, l.target(), portText(p), request, by))
			}
		}
	}
	return lines
}

func portText(p v1alpha1.Port) string {
	ports := fmt.Sprint(p.Port)
	if p.EndPort != nil {
		ports += fmt.Sprintf("-%d", *p.EndPort)
	}
	return ports + "/" + string(p.Protocol)
}

// modes returns one line for the base mode and one for each member with its own mode.
func (l unitLines) modes() []string {
	if l.u.Wildcard {
		return nil
	}
	lines := []string{fmt.Sprintf("%s in %s", l.target(), l.u.Mode)}
	for _, cluster := range slices.Sorted(maps.Keys(l.u.ClusterModes)) {
		lines = append(lines, fmt.Sprintf("%s in %s in member %s", l.target(), l.u.ClusterModes[cluster], cluster))
	}
	return lines
}

// placementLines returns one line for each member, or for the selector of members.
func placementLines(u policy.Unit) []string {
	var lines []string
	if u.Placement.Clusters != nil {
		for _, c := range *u.Placement.Clusters {
			lines = append(lines, "in member "+string(c))
		}
	}
	if sel := u.Placement.ClusterSelector; sel != nil {
		if len(sel.MatchLabels)+len(sel.MatchExpressions) == 0 {
			lines = append(lines, "in every member")
		} else {
			lines = append(lines, "in members with "+metav1.FormatLabelSelector(sel))
		}
	}
	for _, e := range u.Enforcers {
		lines = append(lines, "enforced by "+string(e))
	}
	return lines
}

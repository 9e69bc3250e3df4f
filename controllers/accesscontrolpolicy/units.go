package accesscontrolpolicy

import (
	"cmp"
	"slices"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/controllers/statusfields"
)

// worstMembers is the number of members of a unit that are listed with their messages.
const worstMembers = 3

// unit is one unit while the bounded list is built.
type unit struct {
	v1alpha1.PolicyUnit
	report *statuscache.Report
	sids   []string
	// sorted are the members, the worst first.
	sorted []v1alpha1.ClusterState
	worst  v1alpha1.ClusterState
}

// The space in the status that is reserved for other content when there are very many units, in bytes of JSON.
const (
	// detailsRoom is the space that units which only have counts may not use.
	detailsRoom = 20_000
	// worstRoom is the part of detailsRoom for the worst members of the worst units; it is used before statements are listed.
	worstRoom = 10_000
)

// units returns the list of units that fits into room bytes of JSON. The content is added in the order of its
// importance: the units with their counts; the worst members of the worst units; statements; the worst members of
// others; and all other members.
func (f *facts) units(reports []statuscache.Report, room int) []v1alpha1.PolicyUnit {
	all := make([]*unit, 0, len(reports))
	for i := range reports {
		all = append(all, newUnit(&reports[i], f.Policy.Name))
	}
	slices.SortFunc(all, compareUnits)
	left := 0
	fits := func(size int) bool {
		if size > room-left {
			return false
		}
		room -= size
		return true
	}
	for i, u := range all {
		if left = detailsRoom; i == 0 {
			left = 0
		}
		if !fits(u.sizeOfLine()) {
			all = all[:i]
			break
		}
	}
	left = max(room-worstRoom, 0)
	for _, u := range all {
		if u.report.Realized() || !u.listWorst(fits) {
			break
		}
	}
	left = 0
	for _, u := range all {
		if fits(sizeOfSIDs(u.sids)) {
			u.SIDs = u.sids
		} else {
			u.Statements = int32(min(len(u.sids), 1<<20))
		}
		if fits(len(`"revision":"",`) + len(u.report.Revision)) {
			u.Revision = u.report.Revision
		}
	}
	for _, u := range all {
		if !u.report.Realized() && !u.listWorst(fits) {
			break
		}
	}
	for _, wildcards := range []bool{true, false} { // the members of other units are also in their ProtectedResource
		for _, u := range all {
			if strings.HasSuffix(u.report.Resource, "*") != wildcards {
				continue
			}
			if !u.listWorst(fits) || !u.listRest(fits) {
				break // the following content is less important and of similar size
			}
		}
	}
	for _, u := range all {
		if u.Unlisted() == 0 {
			continue
		}
		if name := f.Protecting(u.report.Resource); name != "" && fits(len(`"details":"ProtectedResource/",`)+len(name)) {
			u.Details = "ProtectedResource/" + name
		}
	}
	out := make([]v1alpha1.PolicyUnit, 0, len(all))
	for _, u := range all {
		out = append(out, u.PolicyUnit)
	}
	slices.SortFunc(out, func(a, b v1alpha1.PolicyUnit) int { return cmp.Compare(a.Resource, b.Resource) })
	return out
}

func newUnit(r *statuscache.Report, policyName string) *unit {
	u := &unit{report: r, sids: r.SIDs[policyName], PolicyUnit: v1alpha1.PolicyUnit{Resource: v1alpha1.ResourceName(r.Resource)}}
	if len(r.Clusters) > 0 {
		u.Members = new(v1alpha1.CountMembers(r.Clusters))
		u.worst = slices.MinFunc(r.Clusters, v1alpha1.CompareMembers)
	}
	return u
}

// compareUnits orders units by importance: first unfinished revocations, which only the status records; then by the
// state of the worst member. A unit that no member gets is not healthy either.
func compareUnits(a, b *unit) int {
	class := func(u *unit) int {
		switch {
		case len(u.sids) == 0:
			return 0
		case !u.report.Realized() || len(u.report.Clusters) == 0:
			return 1
		default:
			return 2
		}
	}
	worst := func(c v1alpha1.ClusterState) v1alpha1.ClusterState { return v1alpha1.ClusterState{State: c.State} }
	return cmp.Or(cmp.Compare(class(a), class(b)), v1alpha1.CompareMembers(worst(a.worst), worst(b.worst)), cmp.Compare(a.report.Resource, b.report.Resource))
}

// listWorst lists the worst members that are not listed yet, or returns false if they do not all fit.
func (u *unit) listWorst(fits func(int) bool) bool {
	if u.sorted == nil {
		u.sorted = slices.SortedFunc(slices.Values(u.report.Clusters), v1alpha1.CompareMembers)
	}
	for n := len(u.Clusters); n < min(worstMembers, len(u.sorted)); n++ {
		if !fits(statusfields.SizeOfMember(&u.sorted[n])) {
			return false
		}
		u.Clusters = u.sorted[: n+1 : n+1]
	}
	return true
}

// listRest lists the other members, or returns false if they do not fit.
func (u *unit) listRest(fits func(int) bool) bool {
	groups := v1alpha1.GroupMembers(u.sorted[len(u.Clusters):])
	if !fits(statusfields.SizeOfGroups(groups) + len(`"groups":[],"clusters":[],`)) {
		return false
	}
	u.Groups = groups
	return true
}

// sizeOfLine bounds the minimal size of a unit.
func (u *unit) sizeOfLine() int {
	return len(`{"resource":"","statements":512},`) + statusfields.SizeOfText(u.report.Resource) + statusfields.SizeOfCounts(u.Members)
}

func sizeOfSIDs(sids []string) int {
	n := len(`"sids":[],`)
	for _, s := range sids {
		n += len(s) + len(`"",`)
	}
	return n
}

func sizeOfRefusal(r *v1alpha1.RefusedStatement) int {
	return len(`{"sid":"","reason":"","message":"","messageCode":"","messageParams":""},`) + len(r.SID) + len(r.Reason) + statusfields.SizeOfText(r.Message) +
		len(r.MessageCode) + statusfields.SizeOfText(r.MessageParams)
}

// refusedRoom bounds the refusals with their messages, in bytes of JSON.
const refusedRoom = 12_000

// boundRefusals divides refusals into those that fit, and the sids of statements of which none fits. The first refusal
// of each statement is added before any second one.
func boundRefusals(all []v1alpha1.RefusedStatement) (listed []v1alpha1.RefusedStatement, others []string) {
	room := refusedRoom
	in := make([]bool, len(all))
	for _, first := range []bool{true, false} {
		for i := range all {
			r := &all[i]
			if in[i] || first != (i == 0 || all[i-1].SID != r.SID) {
				continue
			}
			if size := sizeOfRefusal(r); size <= room {
				in[i], room = true, room-size
			} else if first {
				others = append(others, r.SID)
			}
		}
	}
	for i := range all {
		if in[i] {
			listed = append(listed, all[i])
		}
	}
	return listed, others
}

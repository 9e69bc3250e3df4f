package policy

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/norace"
)

// reference decides as the page on semantics says, sentence by sentence and without any index. It shares no code with
// the evaluator, and it finds "audited" by deciding twice.
type reference struct{ in Input }

func (w reference) decide(q Query) (Verdict, []Ref) {
	now, by := w.outcome(q, func(m v1alpha1.Mode) v1alpha1.Mode { return m })
	if now == Denied || now == DefaultDenied {
		return now, by
	}
	then, thenBy := w.outcome(q, func(m v1alpha1.Mode) v1alpha1.Mode {
		if m == v1alpha1.ModeAudit {
			return v1alpha1.ModeEnforce
		}
		return m
	})
	if then == Denied || then == DefaultDenied {
		return Audited, thenBy
	}
	return now, by
}

// outcome is the rule: a counting deny wins; else a counting allow; else, if any enforces, deny; else let through.
func (w reference) outcome(q Query, adjust func(v1alpha1.Mode) v1alpha1.Mode) (Verdict, []Ref) {
	var allows, denies []Ref
	enforced, onboarded := false, false
	for _, r := range q.Resources {
		enforced = enforced || adjust(w.mode(r, q)) == v1alpha1.ModeEnforce
	}
	for _, r := range q.Resources {
		mode := adjust(w.mode(r, q))
		onboarded = onboarded || mode != v1alpha1.ModeObserve
		for _, p := range w.in.Policies {
			for _, st := range p.Spec.Statements {
				if st.NotBefore != nil && q.At.Before(st.NotBefore.Time) || st.NotAfter != nil && !q.At.Before(st.NotAfter.Time) ||
					st.Hours != nil && !openByClock(st.Hours, q.At) {
					continue
				}
				for _, written := range st.Resources {
					wild := strings.HasSuffix(string(written), "*")
					if !covers(string(written), r) || !w.subject(st, q) || !w.action(st, r, q, false) {
						continue
					}
					if st.Effect == Allow && !wild && mode == v1alpha1.ModeAudit && enforced && !w.action(st, r, q, true) {
						continue // an allow of requests in Audit, on a pod that something closes
					}
					ref := Ref{p.Name, st.SID}
					switch {
					case st.Effect == Deny && mode == v1alpha1.ModeEnforce:
						denies = append(denies, ref)
					case st.Effect == Allow && (wild || mode == v1alpha1.ModeAudit || mode == v1alpha1.ModeEnforce):
						allows = append(allows, ref)
					}
				}
			}
		}
	}
	switch {
	case len(denies) > 0:
		return Denied, unique(denies)
	case len(allows) > 0:
		return Allowed, unique(allows)
	case !onboarded:
		return Unmanaged, nil
	case w.otherPort(q):
		return Allowed, nil
	case enforced:
		return DefaultDenied, nil
	default:
		return Audited, nil
	}
}

func unique(refs []Ref) []Ref {
	var out []Ref
	for _, r := range refs {
		if !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b Ref) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return out
}

func covers(written, name string) bool {
	if strings.HasSuffix(written, "*") {
		return strings.HasPrefix(name, strings.TrimSuffix(written, "*"))
	}
	return written == name
}

func (w reference) mode(resource string, q Query) v1alpha1.Mode {
	order := []v1alpha1.Mode{v1alpha1.ModeObserve, v1alpha1.ModeAudit, v1alpha1.ModeEnforce}
	best := 0
	for _, p := range w.in.Resources {
		if string(p.Spec.Resource) != resource {
			continue
		}
		mode := p.Spec.Mode
		for _, m := range p.Spec.ClusterModes {
			if string(m.Cluster) == q.Cluster {
				mode = m.Mode
			}
		}
		if t := p.Spec.TemporaryAudit; t != nil && q.At.Before(t.Until.Time) && mode == v1alpha1.ModeEnforce {
			mode = v1alpha1.ModeAudit
		}
		if r := p.Status.Rollout; r != nil && mode == v1alpha1.ModeEnforce {
			here := v1alpha1.ClusterName(q.Cluster)
			permitted := slices.Contains(r.Settled.Clusters, here) != r.Settled.AllExcept
			if r.Progress != nil {
				permitted = permitted || slices.Contains(r.Progress.Begun.Clusters, here) != r.Progress.Begun.AllExcept
			}
			if !permitted {
				mode = v1alpha1.ModeAudit
			}
		}
		best = max(best, slices.Index(order, mode))
	}
	return order[best]
}

func (w reference) subject(st v1alpha1.Statement, q Query) bool {
	names := slices.Clone(q.Subjects)
	if q.Source.IsValid() {
		longest, owners := -1, []string(nil)
		for _, x := range w.in.Workloads {
			for _, text := range x.Spec.Addresses {
				p := netip.MustParsePrefix(text)
				if !p.Contains(q.Source) || p.Bits() < longest {
					continue
				}
				if p.Bits() > longest {
					longest, owners = p.Bits(), nil
				}
				if !slices.Contains(owners, string(x.Spec.Subject)) {
					owners = append(owners, string(x.Spec.Subject))
				}
			}
		}
		if len(owners) == 1 || st.Effect == Deny {
			names = append(names, owners...)
		}
	}
	for _, s := range st.Subjects {
		if s == "*" {
			return true
		}
		if text, ok := strings.CutPrefix(string(s), cidrHead); ok {
			if q.Source.IsValid() && netip.MustParsePrefix(text).Contains(q.Source) {
				return true
			}
			continue
		}
		for _, n := range names {
			if covers(string(s), n) {
				return true
			}
		}
	}
	return false
}

func (w reference) class(resource string) *v1alpha1.ResourceClass {
	for _, c := range w.in.ResourceClasses {
		if covers(string(c.Spec.Pattern), resource) {
			return c
		}
	}
	return nil
}

func hasPort(a v1alpha1.ClassAction, q Query) bool {
	for _, p := range a.Ports {
		last, proto := p.Port, p.Protocol
		if p.EndPort != nil {
			last = *p.EndPort
		}
		if proto == "" {
			proto = v1alpha1.ProtocolTCP
		}
		if proto == q.Protocol && int32(q.Port) >= p.Port && int32(q.Port) <= last {
			return true
		}
	}
	return false
}

// action reports whether the statement has an action that the query is; with whole, one of whole connections.
func (w reference) action(st v1alpha1.Statement, resource string, q Query, whole bool) bool {
	c := w.class(resource)
	if c == nil {
		return false
	}
	for _, a := range c.Spec.Actions {
		named := slices.Contains(st.Actions, v1alpha1.Action(a.Name)) ||
			slices.Contains(st.Actions, v1alpha1.Action(strings.SplitN(a.Name, ":", 2)[0]+":*"))
		if !named || !hasPort(a, q) {
			continue
		}
		if len(a.HTTP) == 0 {
			return true
		}
		if whole {
			continue
		}
		for _, h := range a.HTTP {
			field := func(expr, value string) bool {
				if expr == "" {
					return true
				}
				if value == "" {
					return st.Effect == Allow
				}
				return regexp.MustCompile("^(" + expr + ")$").MatchString(value)
			}
			if field(h.Method, q.Method) && field(h.Path, q.Path) {
				return true
			}
		}
	}
	return false
}

func (w reference) otherPort(q Query) bool {
	seen := map[string]bool{}
	for _, r := range q.Resources {
		c := w.class(r)
		if c == nil || c.Spec.OtherPorts != v1alpha1.OtherPortsAllow {
			return false
		}
		seen[c.Name] = true
		for _, a := range c.Spec.Actions {
			if hasPort(a, q) {
				return false
			}
		}
	}
	return len(seen) == 1
}

// dice makes random but valid worlds from few names, so that matches, overlaps and conflicts are common.
type dice struct{ *rand.Rand }

func pick[T any](d dice, from ...T) T { return from[d.IntN(len(from))] }

func several[T comparable](d dice, most int, from ...T) []T {
	var out []T
	for range 1 + d.IntN(most) {
		if v := pick(d, from...); !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

func (d dice) time() *metav1.Time {
	if d.IntN(3) > 0 {
		return nil
	}
	return hours(d.IntN(5) - 2)
}

func (d dice) weekly() *v1alpha1.WeeklyHours {
	if d.IntN(8) > 0 {
		return nil
	}
	w := &v1alpha1.WeeklyHours{TimeZone: pick(d, "UTC", "Asia/Shanghai", "America/New_York")}
	for range 1 + d.IntN(2) {
		w.Periods = append(w.Periods, v1alpha1.DailyPeriod{
			Days: several(d, 7, v1alpha1.Weekdays()...),
			From: fmt.Sprintf("%02d:00", d.IntN(24)), To: fmt.Sprintf("%02d:30", d.IntN(24)),
		})
	}
	return w
}

// openByClock reports whether the clocks of the zone show a time in one of the periods.
func openByClock(w *v1alpha1.WeeklyHours, at time.Time) bool {
	zone, err := time.LoadLocation(w.TimeZone)
	if err != nil {
		panic(err)
	}
	clock := at.In(zone).Format("15:04")
	today, yesterday := at.In(zone).Weekday(), (at.In(zone).Weekday()+6)%7
	for _, p := range w.Periods {
		on := func(day time.Weekday) bool { return slices.Contains(p.Days, v1alpha1.Weekday(day.String()[:3])) }
		overnight := p.To < p.From
		if on(today) && clock >= p.From && (overnight || clock < p.To) || overnight && on(yesterday) && clock < p.To {
			return true
		}
	}
	return false
}

func (d dice) rollout() *v1alpha1.RolloutStatus {
	some := func() (out []v1alpha1.ClusterName) {
		for _, c := range []v1alpha1.ClusterName{"m1", "m2"} {
			if d.IntN(2) == 0 {
				out = append(out, c)
			}
		}
		return out
	}
	r := &v1alpha1.RolloutStatus{Settled: v1alpha1.MemberSet{AllExcept: d.IntN(2) == 0, Clusters: some()}}
	if d.IntN(2) == 0 {
		r.Progress = &v1alpha1.RolloutProgress{Begun: v1alpha1.MemberSet{AllExcept: d.IntN(4) == 0, Clusters: some()}}
	}
	return r
}

func (d dice) world() Input {
	in := world()
	resources := []string{bobs, orders, redisHead + "bobs-2", shop, webHead + "blog"}
	for i := range 2 + d.IntN(6) {
		p := protect(pick(d, resources...), d.mode(), as(fmt.Sprint("r", i)))
		for _, c := range several(d, 2, "m1", "m2") {
			if d.IntN(3) == 0 {
				p.Spec.ClusterModes = append(p.Spec.ClusterModes, v1alpha1.ClusterMode{Cluster: v1alpha1.ClusterName(c), Mode: d.mode()})
			}
		}
		if t := d.time(); t != nil && d.IntN(2) == 0 {
			auditUntil(t)(p)
		}
		if d.IntN(4) == 0 {
			p.Status.Rollout = d.rollout()
		}
		in.Resources = append(in.Resources, p)
	}
	for i := range d.IntN(4) {
		in.Workloads = append(in.Workloads, workload(fmt.Sprint("w", i), pick(d, app888, app889, teamApp),
			several(d, 2, "10.5.0.0/24", "10.5.0.0/16", "10.5.0.9/32", "2001:db8::/32", "2001:db8::/48")...))
	}
	in.KnownNames = []string{app888, app889, teamApp, cart, bobs, orders, redisHead + "bobs-2", shop, webHead + "blog"}
	for i := range d.IntN(4) {
		p := acp(fmt.Sprint("p", i))
		for j := range d.IntN(9) {
			p.Spec.Statements = append(p.Spec.Statements, d.statement(fmt.Sprint("s", j), resources))
		}
		in.Policies = append(in.Policies, p)
	}
	return in
}

func (d dice) mode() v1alpha1.Mode {
	return pick(d, v1alpha1.ModeObserve, v1alpha1.ModeAudit, v1alpha1.ModeEnforce, v1alpha1.ModeEnforce)
}

func (d dice) statement(sid string, resources []string) v1alpha1.Statement {
	st := v1alpha1.Statement{SID: sid, Effect: pick(d, Allow, Deny), NotBefore: d.time(), NotAfter: d.time(), Hours: d.weekly()}
	st.Subjects = several(d, 2, v1alpha1.Subject(app888), app888, app889, teamApp, cart, cart, svcHead+"*", appHead+"app/*", appHead+"app/team-*", "*",
		cidrHead+"10.5.0.0/24", cidrHead+"2001:db8::/32", cidrHead+"0.0.0.0/0")
	st.Actions = several(d, 2, v1alpha1.Action("redis:connect"), "redis:admin", "redis:*", "web:read", "web:orders", "web:connect", "web:*")
	wild := pick(d, allRedis, redisHead+"bobs-*", webHead+"*", webHead+"s*")
	for _, r := range several(d, 2, append(slices.Clone(resources), wild)...) {
		st.Resources = append(st.Resources, v1alpha1.ResourceName(r))
	}
	return st
}

func (d dice) query() Query {
	q := Query{Cluster: pick(d, "", "m1", "m2"), Protocol: pick(d, v1alpha1.ProtocolTCP, v1alpha1.ProtocolTCP, v1alpha1.ProtocolUDP),
		Port: pick[uint16](d, 6379, 6379, 6380, 16380, 80, 80, 9121), Method: pick(d, "", "GET", "POST"), Path: pick(d, "", "/", "/orders/1"),
		At: noon.Add(time.Duration(d.IntN(5)-2) * time.Hour)}
	if d.IntN(3) == 0 {
		q.Source = netip.MustParseAddr(pick(d, "10.5.0.9", "10.5.0.8", "10.5.7.7", "10.9.9.9", "2001:db8::1", "2001:db8:1::1", "2001:dead::1"))
	} else {
		// A pod has one value for a label, so one name of each class.
		q.Subjects = several(d, 2, pick(d, app888, app889, teamApp), cart)
	}
	q.Resources = several(d, 2, pick(d, bobs, orders, redisHead+"bobs-2"), pick(d, shop, webHead+"blog"), "trnv1:rsc:trip-com:x:y:none")
	return q
}

func TestDecideAgreesWithReference(t *testing.T) {
	norace.SkipUnderRace(t)
	words := map[Verdict]int{}
	for seed := range uint64(2500) {
		d := dice{rand.New(rand.NewPCG(seed, 1))}
		in := d.world()
		s := NewSnapshot(in)
		for range 20 {
			q := d.query()
			got := s.Decide(q)
			word, by := reference{in}.decide(q)
			words[word]++
			if diff := cmp.Diff(Decision{Verdict: word, Statements: by}, Decision{Verdict: got.Verdict, Statements: got.Statements}); diff != "" {
				t.Fatalf("seed %d, query %+v: -reference +snapshot:\n%s", seed, q, diff)
			}
		}
	}
	for _, w := range []Verdict{Allowed, Denied, DefaultDenied, Audited, Unmanaged} {
		if words[w] < 300 {
			t.Errorf("only %d of the random decisions were %s: the test would not notice a mistake there", words[w], w)
		}
	}
}

package approval_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/approvaltest"
	"github.com/acp-io/acp/internal/approval/gormstore"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/ledger"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
	"github.com/acp-io/acp/internal/norace"
)

var (
	modelSeed  = flag.Uint64("seed", 0, "repeat the one walk of the model that began with this seed; 0: walk all")
	modelWalks = flag.Uint64("walks", 10_000, "walks of the model on the store in memory")
)

const stepsOfAWalk = 70

// TestWalks walks random sequences of everything that can happen, on a store in memory.
func TestWalks(t *testing.T) {
	norace.SkipUnderRace(t)
	seeds := make([]uint64, 0, *modelWalks)
	for s := range *modelWalks {
		seeds = append(seeds, s+1)
	}
	if *modelSeed != 0 {
		seeds = []uint64{*modelSeed}
	}
	reached, m := map[string]bool{}, newModel(t)
	for _, seed := range seeds {
		store := &approvaltest.Memory{}
		m.begin(seed, store, func() []ledger.Entry { return store.Lines })
		m.walk(seed, reached, store.Jobs)
	}
	if *modelSeed == 0 {
		for _, must := range []string{"pending", "approved", "applying", "effective", "rejected", "timed-out", "withdrawn", "failed",
			"revoking", "revoked", "expired",
			"grant", "extend", "revoke", "mode", "onboard", "offboard", "class", "approval-policy", "workload", "statement", "effective statement",
			"effective workload", "effective revoke", "effective mode", "effective onboard", "effective offboard",
			"effective class", "effective approval-policy", "effective extend", "voided", "reduced", "escalated",
			"reminded", "expires-soon", "break-glass", "reviewed", "delegate", "auto", "auto denied", "limited", "two votes"} {
			if !reached[must] {
				t.Errorf("no walk came to %q, so they prove nothing about it", must)
			}
		}
	}
}

// TestWalksOnTheRealStore: the same on SQL, fewer, because each writes to a disk.
func TestWalksOnTheRealStore(t *testing.T) {
	m := newModel(t)
	for seed := range uint64(12) {
		db := databasetest.Open(t, databasetest.SQLite(t))
		store := gormstore.New(db)
		m.begin(seed+1, store, nil)
		m.walk(seed+1, map[string]bool{}, nil)
		if _, _, err := ledger.Verify(ledgerstore.NewReader(db).Lines(t.Context(), 1)); err != nil {
			t.Errorf("seed %d: %v", seed+1, err)
		}
	}
}

func (m *model) walk(seed uint64, reached map[string]bool, jobs func() []string) {
	m.t.Helper()
	for range stepsOfAWalk {
		accepted, err := m.step()
		fmt.Fprintf(&m.log, "%s -> %v\n", m.op, err)
		m.look(accepted, err, jobs)
		if m.changed {
			for _, t := range m.before {
				note(reached, t)
			}
		}
		if m.fault != "" {
			break
		}
	}
	if m.ledger != nil {
		m.ledgerAgrees(m.before)
	}
	if m.fault != "" {
		m.t.Fatalf("%s, after the walk of -seed %d:\n%s", m.fault, seed, m.log.String())
	}
}

func note(reached map[string]bool, t *approval.Ticket) {
	reached[string(t.Kind)] = true
	for i, it := range t.Items {
		reached[string(it.State)] = true
		reached["auto denied"] = reached["auto denied"] || mayNotBeAuto(t, it) && !it.Steps[0].Auto
		if it.State == approval.StateEffective {
			reached["effective "+string(t.Kind)] = true
		}
		for _, s := range t.Items[i].Steps {
			reached["limited"] = reached["limited"] || !s.OnCall.IsZero() && len(s.Votes) > 0
			reached["auto"] = reached["auto"] || s.Auto && s.State == approval.StepApproved
			reached["two votes"] = reached["two votes"] || s.Quorum > 1 && len(s.Votes) > 1
			for _, v := range s.Votes {
				reached["delegate"] = reached["delegate"] || v.OnBehalfOf != ""
			}
		}
	}
	for _, e := range t.Events {
		reached[string(e.Kind)] = true
	}
}

// look compares the tickets with those before the operation, and with everything else.
func (m *model) look(accepted bool, opErr error, jobs func() []string) {
	now, changed := map[int64]*approval.Ticket{}, false
	open := ""
	if jobs != nil {
		open = "\n" + strings.Join(jobs(), "\n") + "\n"
	}
	m.all = m.tickets()
	for _, t := range m.all {
		now[t.Number] = t
		was := m.before[t.Number]
		if was != nil && was.Version == t.Version {
			continue
		}
		changed = true
		for i := range t.Items {
			m.lookAt(was, t, i, open)
		}
		m.timeline(was, t)
	}
	for n := range m.before {
		if now[n] == nil {
			m.fail("%s is lost", approval.FormatID(n))
		}
	}
	if m.actor != "" && changed {
		if m.catalog.InGroup(m.actor, catalog.GroupAuditors) {
			m.fail("the auditor %s changed something", m.actor)
		}
		if opErr != nil && approval.CodeOf(opErr) != approval.CodeStale {
			m.fail("a refused operation changed something")
		}
	}
	m.before, m.changed = now, changed
}

// lookAt checks one item.
func (m *model) lookAt(was, t *approval.Ticket, i int, open string) {
	it := t.Items[i]
	for _, s := range append(slices.Clone(it.Steps), review(it)...) {
		m.votes(t, it, s)
	}
	if it.State.MayBeOnHost() || it.State == approval.StateRevoking || it.State == approval.StateRevoked || it.State == approval.StateExpired {
		if why := fullChain(t, i); why != "" {
			m.fail("%s is %s, and %s", it.SID, it.State, why)
		}
	}
	if slices.ContainsFunc(m.host.Policies, func(p *v1alpha1.ApprovalPolicy) bool { return p.Name == "careful" }) && mayNotBeAuto(t, it) && it.Steps[0].Auto {
		m.fail("%s is approved automatically, and a policy forbids that", it.SID)
	}
	if open != "" {
		waits := it.State == approval.StateApproved || it.State == approval.StateApplying && it.WrittenGeneration == 0
		if waits && !strings.Contains(open, "\napply "+it.SID+"\n") {
			m.fail("%s is %s, and no job will write it", it.SID, it.State)
		}
		if it.State == approval.StateRevoking && it.RevokeGeneration == 0 && !strings.Contains(open, "\nremove "+it.SID+"\n") {
			m.fail("%s is %s, and no job will remove it", it.SID, it.State)
		}
	}
	if was == nil {
		return
	}
	before := was.Items[i]
	m.shift(before, it)
	if before.State != it.State && !follows(before.State, it.State) {
		m.fail("%s was %s and is %s", it.SID, before.State, it.State)
	}
	if strings.HasPrefix(m.op, "time passes") && before.State == approval.StatePending && it.State != approval.StatePending &&
		it.State != approval.StateTimedOut {
		m.fail("time made %s %s", it.SID, it.State)
	}
}

// mayNotBeAuto reports whether the policy careful, which does not define the steps, forbids an automatic approval that the policy easy gives.
func mayNotBeAuto(t *approval.Ticket, it approval.Item) bool {
	return it.Approval == "easy" && t.Kind == approval.KindGrant && it.Target == nil && it.Duration > 0 && it.Duration < 48*time.Hour &&
		(t.Requester == "alice" || slices.Contains(it.Actions, "x:write"))
}

// shift checks that new decisions of a limited step are by people who are on call now.
func (m *model) shift(before, it approval.Item) {
	for k, s := range it.Steps {
		if s.OnCall.IsZero() || k >= len(before.Steps) || before.Steps[k].Name != s.Name || len(s.Votes) <= len(before.Steps[k].Votes) {
			continue
		}
		v := s.Votes[len(s.Votes)-1]
		who := v.Person
		if v.OnBehalfOf != "" {
			who = v.OnBehalfOf
		}
		isOn := m.onCall.Known && slices.Contains(m.onCall.People, who)
		if !isOn && !s.OnCall.Approvers && (!before.Steps[k].Escalated || !slices.Contains(s.EscalateTo, who)) {
			m.fail("%s decided %s of %s without being on call", who, s.Name, it.SID)
		}
	}
}

func review(it approval.Item) []approval.Step {
	if it.Review == nil {
		return nil
	}
	return []approval.Step{*it.Review}
}

// votes checks who voted in a step, by what right, and that no one voted twice.
func (m *model) votes(t *approval.Ticket, it approval.Item, s approval.Step) {
	seen := map[string]bool{}
	others := it.Steps
	if it.ManySteps || s.Name == approval.StepReview {
		others = []approval.Step{s}
	}
	for _, o := range others {
		for _, v := range o.Votes {
			for _, p := range []string{v.Person, v.OnBehalfOf} {
				if p != "" && seen[p] {
					m.fail("%s filled two steps of %s, or one twice", p, it.SID)
				}
				seen[p] = p != ""
			}
		}
	}
	for _, v := range s.Votes {
		if v.Person == t.Requester || v.OnBehalfOf == t.Requester {
			m.fail("%s decided their own request %s", t.Requester, it.SID)
		}
		who := v.Person
		if v.OnBehalfOf != "" {
			who = v.OnBehalfOf
			all, err := m.store.Delegations(m.t.Context(), approval.DelegationFilter{From: v.OnBehalfOf, To: v.Person})
			if err != nil || !slices.ContainsFunc(all, func(d approval.Delegation) bool {
				return !v.At.Before(d.Start) && v.At.Before(d.End) && (d.EndedAt.IsZero() || !v.At.After(d.EndedAt))
			}) {
				m.fail("%s decided %s for %s without a delegation", v.Person, it.SID, who)
			}
		}
		if !slices.Contains(s.Approvers, who) {
			m.fail("%s is no approver of %s of %s", who, s.Name, it.SID)
		}
	}
}

// fullChain says what an item lacks that is written, or may be.
func fullChain(t *approval.Ticket, i int) string {
	it := t.Items[i]
	if t.BreakGlass {
		if it.Review == nil {
			return "nobody reviews it"
		}
		return ""
	}
	if len(it.Steps) == 0 {
		return "nobody was asked"
	}
	for _, s := range it.Steps {
		yes := 0
		for _, v := range s.Votes {
			if v.Approve {
				yes++
			}
		}
		if s.State != approval.StepApproved || !s.Auto && yes < s.Quorum {
			return fmt.Sprintf("the step %s is %s with %d of %d approvals", s.Name, s.State, yes, s.Quorum)
		}
	}
	return ""
}

// mayBeWritten looks at an item whose statement is about to be written.
func (m *model) mayBeWritten(sid string) {
	for _, t := range m.tickets() {
		for i, it := range t.Items {
			if it.SID != sid {
				continue
			}
			lines, err := m.host.Compiled(it)
			excused := len(approval.StatementLines(it))
			if it.Scope != nil { // a deny that is missing opens access, so its lines are compared, too
				lines, excused = append(lines, approval.StatementLines(it)...), 0
			}
			grown := it.Shown.Grown(approval.NewShown(lines))
			if err != nil || len(grown) > excused && !t.BreakGlass && it.WrittenGeneration == 0 {
				m.fail("%s is written with %q, which nobody was shown", sid, grown)
			}
			if why := fullChain(t, i); why != "" || !it.State.MayBeOnHost() {
				m.fail("%s is written, and is %s (%s)", sid, it.State, why)
			}
			return
		}
	}
	m.fail("%s is written, and there is no such item", sid)
}

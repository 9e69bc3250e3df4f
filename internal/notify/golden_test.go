package notify

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/testenv/golden"
)

// kindsAndEvents are the kinds of notifications with the events that cause them. The event other stands for one of a newer version.
var kindsAndEvents = []struct {
	kind   Kind
	events []string
}{
	{KindBreakGlass, []string{"break-glass", "other"}},
	{KindVoided, []string{"voided", "other"}},
	{KindEscalated, []string{"escalated", "other"}},
	{KindNeeded, []string{"submitted", "break-glass", "reminded", "last-reminder", "escalated", "other"}},
	{KindUndecided, []string{"last-reminder", "review-undecided", "schedule-missing", "other"}},
	{KindFailed, []string{"failed", "other"}},
	{
		KindRollout,
		[]string{"submitted", "given", "announced", "temporary-audit", "temporary-audit-ended", "downgrade", "downgrade-ended", "stopped", "flows-unwatched",
			"flows-lost", "waves-halted", "class-waves-halted", "proposal-review-due", "client-notice", "other"},
	},
	{KindAccessReview, []string{"review-opened", "review-reminded", "review-reopened", "review-abandoned", "review-closed", "other"}},
	{KindDecided, []string{"step-approved", "approved", "step-rejected", "reviewed", "timed-out", "other"}},
	{KindEffective, []string{"effective", "other"}},
	{KindRevoked, []string{"revoked", "expired", "revoke-requested", "other"}},
	{KindExpires, []string{"expires-soon", "shortened", "other"}},
	{KindColleague, []string{"step-approved", "step-rejected", "reviewed", "withdrawn", "timed-out", "other"}},
	{KindComment, []string{"comment", "other"}},
	{KindDelegation, []string{"begun", "ended", "other"}},
}

// TestTexts compares the title and the first line of the body of every notification, with and without optional facts, with the golden file
// of each language.
func TestTexts(t *testing.T) {
	variants := []struct {
		name   string
		change func(f *Facts)
	}{
		{"everything", func(*Facts) {}},
		{"nobody acted", func(f *Facts) { f.Actor, f.ActorFor = "", "" }},
		{"for themselves", func(f *Facts) { f.Actor, f.ActorFor, f.For = f.Requester, "", "" }},
		{"one of one", func(f *Facts) { f.Count, f.More = 1, 0 }},
		{"without an end", func(f *Facts) { f.Until = time.Time{} }},
		{"rejected", func(f *Facts) { f.Step = "rejected" }},
	}
	for _, language := range []string{English, Chinese} {
		var b strings.Builder
		for _, k := range kindsAndEvents {
			for _, event := range k.events {
				fmt.Fprintf(&b, "%s/%s\n", k.kind, event)
				seen := map[string]bool{}
				for _, v := range variants {
					if event == "other" && v.name != "everything" {
						continue
					}
					f := facts(event)
					f.Count, f.Cluster, f.More = 3, "m1", 2
					v.change(&f)
					got := writer(t).Render(Message{Kind: k.kind, Ticket: 7, Facts: f}, Preferences{Language: language, TimeZone: "Asia/Shanghai"})
					lead, _, _ := strings.Cut(got.Body, "\n")
					if text := fmt.Sprintf("    %s\n    %s\n", got.Title, lead); !seen[text] {
						seen[text] = true
						fmt.Fprintf(&b, "  %s:\n%s", v.name, text)
					}
				}
			}
		}
		golden.Compare(t, filepath.Join("testdata", "texts."+language+".txt"), b.String())
	}
}

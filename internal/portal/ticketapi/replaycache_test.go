package ticketapi

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit/insight"
	"github.com/acp-io/acp/internal/policy"
)

// TestReplayDigestCoversTheChange checks each field of an item: either it changes the key, or it is listed here because a replay does not
// read it. A new field has to be put into the key or into the list.
func TestReplayDigestCoversTheChange(t *testing.T) {
	unread := map[string]string{
		"State": "", "Application": "id of ApplicationName", "Resource": "id of ResourceName", "Duration": "ExpiresAt is computed from it",
		"WarnAt": "", "GrantedAt": "", "Earlier": "", "Latest": "", "Adopt": "", "Override": "", "Approval": "", "ManySteps": "", "Steps": "",
		"Review": "", "Shown": "", "Message": "", "Policy": "", "PolicyUID": "", "WrittenGeneration": "", "RevokeGeneration": "", "Leaving": "",
		"ShortenTo": "of an access that was granted", "ShortenedAt": "", "Author": "",
		"Package": "the statement is the same",
	}
	digest := func(kind approval.Kind, items ...approval.Item) replayKey {
		t.Helper()
		out, err := replayDigest(kind, items, window{})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	at := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	changed := map[string]approval.Item{
		"ApplicationName": {ApplicationName: "x"}, "ResourceName": {ResourceName: "x"}, "Actions": {Actions: []string{"x"}}, "SID": {SID: "x"},
		"Target": {Target: &approval.Target{Ticket: 1}}, "Change": {Change: &approval.Change{Name: "x"}}, "ExpiresAt": {ExpiresAt: at},
		"Hours": {Hours: &v1alpha1.WeeklyHours{TimeZone: "UTC"}},
		"Scope": {Scope: &approval.StatementScope{Effect: v1alpha1.EffectDeny}},
	}
	seen := map[replayKey]string{digest(approval.KindGrant, approval.Item{}): "nothing", digest(approval.KindRevoke, approval.Item{}): "the kind",
		digest(approval.KindGrant): "no item", digest(approval.KindGrant, approval.Item{}, approval.Item{}): "two items"}
	if len(seen) != 4 {
		t.Errorf("the kind or the number of items is not part of the key: %v", seen)
	}
	for field := range reflect.TypeFor[approval.Item]().Fields() {
		item, decides := changed[field.Name]
		if _, ignored := unread[field.Name]; decides == ignored {
			t.Errorf("Item.%s is neither tested nor listed as not read", field.Name)
			continue
		}
		if !decides {
			continue
		}
		key := digest(approval.KindGrant, item)
		if other, taken := seen[key]; taken {
			t.Errorf("Item.%s: the key is that of %s", field.Name, other)
		}
		seen[key] = field.Name
	}
	raw := json.RawMessage(`{}`)
	change := approval.Change{Kind: "x", Name: "x", Verb: "x", Base: "x", Before: raw, After: raw, FromMode: "x", ToMode: "x", Description: "x"}
	for i, value := 0, reflect.ValueOf(change); i < value.NumField(); i++ {
		less := change
		reflect.ValueOf(&less).Elem().Field(i).SetZero()
		if value.Field(i).IsZero() || digest(approval.KindMode, approval.Item{Change: &change}) == digest(approval.KindMode, approval.Item{Change: &less}) {
			t.Errorf("Change.%s is not part of the key", value.Type().Field(i).Name)
		}
	}
	if digest(approval.KindRevoke, changed["Target"]) == digest(approval.KindRevoke, approval.Item{Target: &approval.Target{Ticket: 1, Item: 1}}) {
		t.Error("the item of the target is not part of the key")
	}
	if digest(approval.KindGrant, changed["ExpiresAt"]) != digest(approval.KindGrant, approval.Item{ExpiresAt: at.Add(time.Second)}) {
		t.Error("two previews within a minute have two keys")
	}
}

// TestReplayCache checks that a result is returned for its key and its snapshot only, not longer than replayLifetime, that errors are not
// kept, and that the number of results is bounded.
func TestReplayCache(t *testing.T) {
	one, two := policy.NewSnapshot(policy.Input{}), policy.NewSnapshot(policy.Input{})
	at := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	var c replayCache
	replays := 0
	for _, step := range []struct {
		reason string
		base   *policy.Snapshot
		key    replayKey
		at     time.Time
		fails  error
		new    bool // it is replayed
	}{
		{"an error", one, replayKey{1}, at, errors.New("too slow"), true},
		{"is not kept", one, replayKey{1}, at, nil, true},
		{"an equal replay", one, replayKey{1}, at.Add(replayLifetime - 1), nil, false},
		{"another change", one, replayKey{2}, at, nil, true},
		{"too old", one, replayKey{1}, at.Add(replayLifetime), nil, true},
		{"the clock was set back", one, replayKey{1}, at, nil, true},
		{"the policies changed", two, replayKey{1}, at, nil, true},
		{"and again", one, replayKey{1}, at, nil, true},
	} {
		before := replays
		got, err := c.get(step.base, step.key, step.at, func() (insight.Impact, error) {
			replays++
			return insight.Impact{Unchanged: int64(step.key[0])}, step.fails
		})
		if !errors.Is(err, step.fails) || got.Unchanged != int64(step.key[0]) || (replays != before) != step.new {
			t.Errorf("%s: %d of key %d, %v, %d replays", step.reason, got.Unchanged, step.key[0], err, replays-before)
		}
	}
	for i := range 2 * maxReplays {
		if _, err := c.get(one, replayKey{byte(i), byte(i >> 8), 1}, at, func() (insight.Impact, error) { return insight.Impact{}, nil }); err != nil {
			t.Fatal(err)
		}
	}
	if n := c.results.Len(); n != maxReplays {
		t.Errorf("%d results are kept, want %d", n, maxReplays)
	}
}

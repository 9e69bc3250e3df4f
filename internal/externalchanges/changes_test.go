package externalchanges_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/externalchanges"
	"github.com/acp-io/acp/internal/externalchanges/event"
	"github.com/acp-io/acp/internal/ledger"
)

var (
	now = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	key = externalchanges.Key{Kind: "ResourceClass", Name: "redis"}
)

func row(uid string, generation int64) externalchanges.Row {
	return externalchanges.Row{Key: key, UID: uid, Generation: generation}
}

func known(uid string, generation int64) *externalchanges.RecordedObject {
	return &externalchanges.RecordedObject{Row: row(uid, generation)}
}

func seen(uid string, generation int64) *externalchanges.LiveObject {
	return &externalchanges.LiveObject{Row: row(uid, generation), Digest: "now", Manager: "kubectl-edit"}
}

func did(user string, operation event.Operation, generation int64, digest string) event.Change {
	return event.Change{
		At:         now.Add(-time.Second),
		User:       user,
		Kind:       key.Kind,
		Name:       key.Name,
		UID:        "u1",
		Operation:  operation,
		Generation: generation,
		Digest:     digest,
	}
}

// entryTexts formats entries as "ACTION ACTOR GENERATION [MANAGER] [ONE OF]".
func entryTexts(lines []ledger.Entry) []string {
	var out []string
	for _, e := range lines {
		out = append(out, strings.TrimSpace(strings.Join([]string{e.Action, e.Actor, e.Details["generation"], e.Details["manager"], e.Details["oneOf"]}, " ")))
	}
	return out
}

func TestLines(t *testing.T) {
	type own = map[externalchanges.OwnChange]bool
	for _, c := range []struct {
		name        string
		observation externalchanges.Observation
		own         own
		want        []string
	}{
		{"nothing changed", externalchanges.Observation{Before: known("u1", 3), Current: seen("u1", 3)}, nil, nil},
		{"nothing is there", externalchanges.Observation{}, nil, nil},
		{"created, and reported", externalchanges.Observation{Current: seen("u1", 1), Changes: []event.Change{did("alice", event.Create, 1, "now")}}, nil,
			[]string{"object.created kubernetes:alice 1 kubectl-edit"}},
		{"created, and not reported", externalchanges.Observation{Current: seen("u1", 1)}, nil, []string{"object.created unknown 1 kubectl-edit"}},
		{"updated, and reported",
			externalchanges.Observation{Before: known("u1", 3), Current: seen("u1", 4), Changes: []event.Change{did("alice", event.Update, 4, "now")}},
			nil,
			[]string{"object.updated kubernetes:alice 4 kubectl-edit"}},
		{"an attempt with another content is not what is there",
			externalchanges.Observation{Before: known("u1", 3), Current: seen("u1", 4), Changes: []event.Change{did("mallory", event.Update, 4, "other")}},
			nil,
			[]string{"object.updated unknown 4 kubectl-edit"}},
		{"the attempt of one, the write of another",
			externalchanges.Observation{
				Before: known("u1", 3), Current: seen("u1", 4),
				Changes: []event.Change{did("mallory", event.Update, 4, "other"), did("alice", event.Update, 4, "now")},
			},
			nil,
			[]string{"object.updated kubernetes:alice 4 kubectl-edit"}},
		{"two may have written a generation in between",
			externalchanges.Observation{
				Before: known("u1", 3), Current: seen("u1", 5),
				Changes: []event.Change{did("a", event.Update, 4, "x"), did("b", event.Update, 4, "y"), did("c", event.Update, 5, "now")},
			},
			nil,
			[]string{"object.updated unknown 4  kubernetes:a, kubernetes:b", "object.updated kubernetes:c 5 kubectl-edit"}},
		{"some reported, some not",
			externalchanges.Observation{Before: known("u1", 3), Current: seen("u1", 6), Changes: []event.Change{did("alice", event.Update, 5, "x")}},
			nil,
			[]string{"object.updated unknown 4", "object.updated kubernetes:alice 5", "object.updated unknown 6 kubectl-edit"}},
		{"what was reported of another object of the name",
			externalchanges.Observation{Before: known("u2", 3), Current: seen("u2", 4), Changes: []event.Change{did("alice", event.Update, 4, "now")}},
			nil,
			[]string{"object.updated unknown 4 kubectl-edit"}},
		{"the portal's own", externalchanges.Observation{Before: known("u1", 3), Current: seen("u1", 4)}, own{{UID: "u1", Generation: 4}: true}, nil},
		{"the portal's own creation", externalchanges.Observation{Current: seen("u1", 1)}, own{{UID: "u1", Generation: 1}: true}, nil},
		{"one by somebody before the portal's own", externalchanges.Observation{Before: known("u1", 3), Current: seen("u1", 5)},
			own{{UID: "u1", Generation: 5}: true},
			[]string{"object.updated unknown 4"}},
		{"several by somebody", externalchanges.Observation{Before: known("u1", 3), Current: seen("u1", 6)}, nil,
			[]string{"object.updated unknown 4-6 kubectl-edit"}},
		{"changed and deleted while nobody reported it", externalchanges.Observation{Before: known("u1", 3), Intermediate: []externalchanges.Row{row("u1", 5)}},
			nil, []string{"object.updated unknown 4-5", "object.deleted unknown 5"}},
		{
			"who claims the portal's own",
			externalchanges.Observation{Before: known("u1", 3), Current: seen("u1", 4), Changes: []event.Change{did("mallory", event.Update, 4, "now")}},
			own{{UID: "u1", Generation: 4}: true}, nil,
		},
		{
			"deleted, and reported",
			externalchanges.Observation{Before: known("u1", 3), Changes: []event.Change{did("alice", event.Delete, 3, "")}},
			nil, []string{"object.deleted kubernetes:alice 3"},
		},
		{"changed by somebody, and deleted by another",
			externalchanges.Observation{Before: known("u1", 3), Changes: []event.Change{did("alice", event.Delete, 4, "")}},
			nil, []string{"object.updated unknown 4", "object.deleted kubernetes:alice 4"}},
		{"deleted, and not reported", externalchanges.Observation{Before: known("u1", 3)}, nil, []string{"object.deleted unknown 3"}},
		{"deleted by the portal", externalchanges.Observation{Before: known("u1", 3)}, own{{UID: "u1", Generation: externalchanges.Deletion}: true}, nil},
		{"changed by one, then deleted by the portal",
			externalchanges.Observation{Before: known("u1", 3), Changes: []event.Change{did("alice", event.Update, 4, "x")}},
			own{{UID: "u1", Generation: externalchanges.Deletion}: true},
			[]string{"object.updated kubernetes:alice 4"}},
		{
			"replaced", externalchanges.Observation{Before: known("u1", 3), Current: seen("u2", 1)},
			nil, []string{"object.deleted unknown 3", "object.created unknown 1 kubectl-edit"},
		},
		{"there only for a moment",
			externalchanges.Observation{
				Intermediate: []externalchanges.Row{row("u1", 1)},
				Changes:      []event.Change{did("alice", event.Create, 1, "x"), did("bob", event.Delete, 1, "")},
			},
			nil,
			[]string{"object.created kubernetes:alice 1", "object.deleted kubernetes:bob 1"}},
		{
			"there only for a moment, and recorded by another portal",
			externalchanges.Observation{Intermediate: []externalchanges.Row{row("u1", 1)}},
			own{{UID: "u1", Generation: externalchanges.Recorded}: true}, nil,
		},
		{
			"the host cluster was restored", externalchanges.Observation{Before: known("u1", 9), Current: seen("u1", 7)},
			nil, []string{"object.updated unknown 7 kubectl-edit"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.observation.At = now
			if d := cmp.Diff(c.want, entryTexts(c.observation.Lines(c.own))); d != "" {
				t.Error(d)
			}
		})
	}
}

package externalchanges_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/externalchanges"
	"github.com/acp-io/acp/internal/externalchanges/event"
	"github.com/acp-io/acp/internal/ledger"
)

var (
	created = time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)
	earlier = now.Add(-time.Hour)
)

// spec is the spec of a class at a generation.
func spec(generation int64) externalchanges.Content {
	return externalchanges.Content{Spec: json.RawMessage(fmt.Sprintf(`{"n":%d}`, generation)), Created: created}
}

// with returns an observation of an object that the ledger has recorded at generation 3, and whose contents are known there, at its present
// generation, and at the given ones.
func with(generation int64, between ...int64) externalchanges.Observation {
	o := externalchanges.Observation{Before: known("u1", 3), Current: seen("u1", generation), Since: earlier, At: now,
		Contents: map[string]map[int64]externalchanges.Content{"u1": {}}}
	o.Before.Content, o.Current.Content, o.Current.Version = spec(3), spec(generation), "700"
	for _, g := range between {
		o.Contents["u1"][g] = spec(g)
	}
	return o
}

// contents formats entries as "GENERATION FORM COVERED BEFORE AFTER", with "interval" for those without an exact time.
func contents(lines []ledger.Entry) []string {
	var out []string
	for _, e := range lines {
		r, ok := externalchanges.ReadEntry(e)
		if !ok {
			return []string{"an entry that is not about an object"}
		}
		covered := fmt.Sprintf("%d-%d", r.First, r.Last)
		if r.Last == externalchanges.Deletion {
			covered = fmt.Sprintf("%d-deletion", r.First)
			if r.First == r.Last {
				covered = "deletion"
			}
		}
		text := fmt.Sprintf("%s %s %s %s %s", e.Details["generation"], r.Form, covered, r.Before, r.After)
		if !r.Since.Equal(r.At) {
			text += " interval"
		}
		out = append(out, text)
	}
	return out
}

func TestContents(t *testing.T) {
	type own = map[externalchanges.OwnChange]bool
	gone := func(o externalchanges.Observation) externalchanges.Observation {
		o.Current = nil
		return o
	}
	unknown := func(o externalchanges.Observation) externalchanges.Observation {
		o.Before.Content = externalchanges.Content{}
		return o
	}
	reported := func(o externalchanges.Observation, changes ...event.Change) externalchanges.Observation {
		o.Changes = changes
		return o
	}
	for _, c := range []struct {
		name        string
		observation externalchanges.Observation
		own         own
		want        []string
	}{
		{"updated", with(4), nil, []string{`4 spec 4-4 {"n":3} {"n":4} interval`}},
		{"updated, and reported", reported(with(4), did("alice", event.Update, 4, "now")), nil, []string{`4 spec 4-4 {"n":3} {"n":4}`}},
		{"two that the watch reported", with(5, 4), nil, []string{`4 spec 4-4 {"n":3} {"n":4} interval`, `5 spec 5-5 {"n":4} {"n":5} interval`}},
		{"two that the watch did not report", with(5), nil, []string{`4-5 spec 4-5 {"n":3} {"n":5} interval`}},
		{"one of two is reported by the webhook", reported(with(5), did("alice", event.Update, 4, "x")), nil,
			[]string{"4 later 4-4  ", `5 spec 4-5 {"n":3} {"n":5} interval`}},
		{"the content before is not known", unknown(with(4)), nil, []string{"4 unknown 4-4   interval"}},
		{"it is known from the watch", unknown(with(5, 4)), nil, []string{"4 unknown 4-4   interval", `5 spec 5-5 {"n":4} {"n":5} interval`}},
		{"before the portal's own", with(5, 4), own{{UID: "u1", Generation: 5}: true}, []string{`4 spec 4-4 {"n":3} {"n":4} interval`}},
		{"before the portal's own, which cannot be told apart", reported(with(5), did("alice", event.Update, 4, "x")), own{{UID: "u1", Generation: 5}: true},
			[]string{`4 spec 4-5 {"n":3} {"n":5} interval`}},
		{"after the portal's own", with(5, 4), own{{UID: "u1", Generation: 4}: true}, []string{`5 spec 5-5 {"n":4} {"n":5} interval`}},
		{"around the portal's own", with(6), own{{UID: "u1", Generation: 5}: true}, []string{"4 later 4-4   interval", `6 spec 4-6 {"n":3} {"n":6} interval`}},
		{"deleted", gone(with(4)), nil, []string{`3 spec deletion {"n":3}  interval`}},
		{"changed and deleted", func() externalchanges.Observation {
			o := gone(with(4))
			o.Intermediate = []externalchanges.Row{row("u1", 4)}
			return o
		}(), nil, []string{"4 later 4-4   interval", `4 spec 4-deletion {"n":3}  interval`}},
		{"created", func() externalchanges.Observation {
			o := with(1)
			o.Before = nil
			return o
		}(), nil, []string{`1 spec 1-1  {"n":1} interval`}},
		{"created and changed", func() externalchanges.Observation {
			o := with(3)
			o.Before = nil
			return o
		}(), nil, []string{"1 later 1-1   interval", `2-3 spec 1-3  {"n":3} interval`}},
		{"the host cluster was restored", with(2), nil, []string{`2 spec 2-2 {"n":3} {"n":2} interval`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			lines := c.observation.Lines(c.own)
			if d := cmp.Diff(c.want, contents(lines)); d != "" {
				t.Error(d)
			}
			for _, e := range lines {
				if r, _ := externalchanges.ReadEntry(e); !r.ObjectCreated.Equal(created) || r.UID != "u1" || r.Kind != key.Kind || r.Name != key.Name {
					t.Errorf("the entry is about %+v", r)
				}
			}
		})
	}
	last := with(4).Lines(nil)[0]
	if last.Details["resourceVersion"] != "700" || last.Details["manager"] != "kubectl-edit" || last.Details["since"] != "2026-11-22T09:00:00Z" {
		t.Errorf("the details are %v", last.Details)
	}
}

// TestCreationHasItsTime checks that the time of a creation that nobody reported is that of the object.
func TestCreationHasItsTime(t *testing.T) {
	o := with(1)
	o.Before = nil
	r, _ := externalchanges.ReadEntry(o.Lines(nil)[0])
	if !r.Since.Equal(created) || !r.At.Equal(created.Add(time.Second)) {
		t.Errorf("it was created between %s and %s", r.Since, r.At)
	}
}

// TestOnlyChangedStatementsAreRecorded checks that the entry about a policy has the statements that differ.
func TestOnlyChangedStatementsAreRecorded(t *testing.T) {
	o := with(4)
	o.Before.Kind, o.Current.Kind = "AccessControlPolicy", "AccessControlPolicy"
	o.Before.Spec = json.RawMessage(`{"statements":[{"sid":"a"},{"effect":"Allow","sid":"b"},{"sid":"c"}]}`)
	o.Current.Spec = json.RawMessage(`{"statements":[{"sid":"d"},{"sid":"c"},{"effect":"Deny","sid":"b"}]}`)
	want := []string{`4 statements 4-4 [{"sid":"a"},{"effect":"Allow","sid":"b"}] [{"effect":"Deny","sid":"b"},{"sid":"d"}] interval`}
	if d := cmp.Diff(want, contents(o.Lines(nil))); d != "" {
		t.Error(d)
	}
	o.Current.Spec = json.RawMessage(`{"statements":7}`)
	if d := cmp.Diff([]string{"4 unknown 4-4   interval"}, contents(o.Lines(nil))); d != "" {
		t.Error(d)
	}
}

// TestContentIsBounded checks that content beyond the bound is left out, and that the longest line can be exported and verified.
func TestContentIsBounded(t *testing.T) {
	o := with(4)
	o.Before.Spec = json.RawMessage(`"` + strings.Repeat(`\"`, externalchanges.MaxContent/2-20) + `"`)
	lines := o.Lines(nil)
	r, _ := externalchanges.ReadEntry(lines[0])
	if r.Form != externalchanges.ContentSpec {
		t.Fatalf("the form is %s", r.Form)
	}
	old := ledger.Entry{At: now, Actor: externalchanges.Unknown, Action: externalchanges.ActionUpdated, Object: "ResourceClass/redis",
		Details: map[string]string{"generation": "2", "uid": "u1"}}
	seq, hash := int64(0), ledger.Genesis
	var chain []ledger.Line
	for _, e := range []ledger.Entry{old, lines[0], old} {
		l, err := ledger.Append(seq, hash, e)
		if err != nil {
			t.Fatal(err)
		}
		seq, hash, chain = l.Seq, l.Hash, append(chain, l)
	}
	var file bytes.Buffer
	n, err := ledger.Export(&file, func(yield func(ledger.Line, error) bool) {
		for _, l := range chain {
			if !yield(l, nil) {
				return
			}
		}
	})
	if err != nil || n != 3 {
		t.Fatal(n, err)
	}
	if n, head, err := ledger.Verify(ledger.ReadExport(&file)); n != 3 || head != hash || err != nil {
		t.Errorf("the export has %d lines: %v", n, err)
	}
	o.Before.Spec = json.RawMessage(`"` + strings.Repeat("x", externalchanges.MaxContent) + `"`)
	if d := cmp.Diff([]string{"4 too-large 4-4   interval"}, contents(o.Lines(nil))); d != "" {
		t.Error(d)
	}
}

// TestEarlierEntries checks how entries of earlier versions are read, which have no content.
func TestEarlierEntries(t *testing.T) {
	e := ledger.Entry{At: now, Actor: "kubernetes:alice", Action: externalchanges.ActionUpdated, Object: "ResourceClass/redis",
		Details: map[string]string{"generation": "4-6", "uid": "u1", "manager": "kubectl"}}
	want := externalchanges.Recording{Kind: "ResourceClass", Name: "redis", UID: "u1", User: "kubernetes:alice", Since: now, At: now, First: 4, Last: 6}
	if got, ok := externalchanges.ReadEntry(e); !ok || cmp.Diff(want, got) != "" {
		t.Error(cmp.Diff(want, got))
	}
	e.Actor = externalchanges.Unknown
	if got, ok := externalchanges.ReadEntry(e); !ok || got.User != "" || !got.Since.IsZero() {
		t.Errorf("the time is not exact: %+v", got)
	}
	e.Action = "ticket.written"
	if _, ok := externalchanges.ReadEntry(e); ok {
		t.Error("a ticket is no object")
	}
}

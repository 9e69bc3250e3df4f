package externalchanges

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/ledger"
)

// Details of the entries that say what was changed; see docs/ledger.md.
const (
	detailContent = "content"
	detailCovers  = "covers"
	// detailSpecBefore and detailSpecAfter are specs, detailStatementsBefore and detailStatementsAfter lists of statements, in canonical
	// JSON.
	detailSpecBefore       = "specBefore"
	detailSpecAfter        = "specAfter"
	detailStatementsBefore = "statementsBefore"
	detailStatementsAfter  = "statementsAfter"
	detailSince            = "since"
	detailCreatedAt        = "createdAt"
)

// ContentForm says in which form an entry has the content of a change.
type ContentForm string

const (
	// ContentSpec means that the entry has the specs before and after the change.
	ContentSpec ContentForm = "spec"
	// ContentStatements means that the entry has the statements of a policy that differ before and after the change.
	ContentStatements ContentForm = "statements"
	// ContentLater means that an entry about later generations of the object covers this change, too.
	ContentLater ContentForm = "later"
	// ContentUnknown means that the content before or after the change was not known.
	ContentUnknown ContentForm = "unknown"
	// ContentTooLarge means that the content has more than MaxContent bytes.
	ContentTooLarge ContentForm = "too-large"
)

// MaxContent bounds the content of an entry in bytes, so that a line of an export stays far below ledger.MaxLine: a line is a JSON text in a
// JSON text, in which a quotation mark of the content has four bytes.
const MaxContent = 64 << 10

// kindPolicy is the kind whose entries have statements in the place of specs.
const kindPolicy = "AccessControlPolicy"

// Content is the spec of one generation of an object, and when the object was created.
type Content struct {
	// Spec is the spec in canonical JSON: keys are sorted, and there is no white space. It is nil if it is not known.
	Spec json.RawMessage
	// Created is when the object was created.
	Created time.Time
}

// Canonical returns a value as canonical JSON.
func Canonical(v any) (json.RawMessage, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode a spec: %w", err)
	}
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	var values any
	if err := in.Decode(&values); err != nil {
		return nil, fmt.Errorf("read a spec: %w", err)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(values); err != nil {
		return nil, fmt.Errorf("encode a spec: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// point is what is known about an object at one generation. The spec is nil if the object did not exist.
type point struct{ spec json.RawMessage }

// addContent adds the content before and after a change to the details of its entry.
func addContent(details map[string]string, kind string, before, after point) {
	form, beforeKey, afterKey := ContentSpec, detailSpecBefore, detailSpecAfter
	was, is := string(before.spec), string(after.spec)
	if kind == kindPolicy {
		form, beforeKey, afterKey = ContentStatements, detailStatementsBefore, detailStatementsAfter
		var ok bool
		if was, is, ok = changedStatements(before.spec, after.spec); !ok {
			details[detailContent] = string(ContentUnknown)
			return
		}
	}
	if len(was)+len(is) > MaxContent {
		details[detailContent] = string(ContentTooLarge)
		return
	}
	details[detailContent] = string(form)
	for key, text := range map[string]string{beforeKey: was, afterKey: is} {
		if text != "" {
			details[key] = text
		}
	}
}

// changedStatements returns the statements of two specs of a policy that the other one does not have, as JSON lists. A list without
// statements is empty text. ok is false if a spec is not that of a policy.
func changedStatements(before, after json.RawMessage) (was, is string, ok bool) {
	old, err := statementsOf(before)
	if err != nil {
		return "", "", false
	}
	now, err := statementsOf(after)
	if err != nil {
		return "", "", false
	}
	list := func(these, others map[string]json.RawMessage) string {
		var out []string
		for _, sid := range slices.Sorted(maps.Keys(these)) {
			if !bytes.Equal(these[sid], others[sid]) {
				out = append(out, string(these[sid]))
			}
		}
		if len(out) == 0 {
			return ""
		}
		return "[" + strings.Join(out, ",") + "]"
	}
	return list(old, now), list(now, old), true
}

// statementsOf returns the statements of a policy's spec by sid, as they are written there.
func statementsOf(spec json.RawMessage) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	if spec == nil {
		return out, nil
	}
	var policy struct {
		Statements []json.RawMessage `json:"statements"`
	}
	if err := json.Unmarshal(spec, &policy); err != nil {
		return nil, fmt.Errorf("read the spec of a policy: %w", err)
	}
	for _, text := range policy.Statements {
		var statement struct {
			SID string `json:"sid"`
		}
		if err := json.Unmarshal(text, &statement); err != nil {
			return nil, fmt.Errorf("read a statement: %w", err)
		}
		out[statement.SID] = text
	}
	return out, nil
}

// Recording is what a ledger entry says about a change of an object outside of the portal.
type Recording struct {
	Kind, Name, UID  string
	Created, Deleted bool
	// Restored reports whether the object has an earlier generation than before, because the host cluster was restored from a backup.
	Restored bool
	// User is the user who made the change; empty if it is unknown.
	User string
	// At is when the change was made, and Since an instant before which it was not. Both are equal if the time is exact. If Since is zero,
	// nothing is known about how long before At the change may have been made.
	Since, At time.Time
	// First and Last are the generations whose changes the entry contains; they are zero in entries that do not say it. Last is Deletion if
	// the deletion is one of them.
	First, Last int64
	// Form is the form of the content. It is empty in entries of earlier versions, which have none.
	Form ContentForm
	// Before and After are the specs, or the lists of changed statements; nil if there is none.
	Before, After json.RawMessage
	// ObjectCreated is when the object was created; zero if it is not known.
	ObjectCreated time.Time
}

// CreationPrecision is the precision of the times of creation that Kubernetes stores.
const CreationPrecision = time.Second

// ReadEntry returns what an entry says; false if it is not about a change of an object.
func ReadEntry(e ledger.Entry) (Recording, bool) {
	kind, name, ok := strings.Cut(e.Object, "/")
	out := Recording{Kind: kind, Name: name, UID: e.Details["uid"], At: e.At, Form: ContentForm(e.Details[detailContent])}
	switch e.Action {
	case ActionCreated:
		out.Created = true
	case ActionDeleted:
		out.Deleted = true
	case ActionUpdated:
		out.Restored = e.Details["before"] != ""
	default:
		return out, false
	}
	if e.Actor != Unknown {
		out.User, out.Since = e.Actor, e.At
	}
	if since, err := time.Parse(time.RFC3339, e.Details[detailSince]); err == nil {
		out.Since = since
	}
	if created, err := time.Parse(time.RFC3339, e.Details[detailCreatedAt]); err == nil {
		out.ObjectCreated = created
		if out.Created && out.User == "" {
			out.Since = created
			if end := created.Add(CreationPrecision); end.Before(out.At) {
				out.At = end
			}
		}
	}
	out.First, out.Last = readRange(e.Details["generation"])
	if out.Deleted {
		out.First, out.Last = Deletion, Deletion
	}
	if covers := e.Details[detailCovers]; covers != "" {
		first, last := readRange(covers)
		out.First, out.Last = first, max(last, out.Last)
	}
	switch out.Form {
	case ContentSpec:
		out.Before, out.After = textOf(e.Details[detailSpecBefore]), textOf(e.Details[detailSpecAfter])
	case ContentStatements:
		out.Before, out.After = textOf(e.Details[detailStatementsBefore]), textOf(e.Details[detailStatementsAfter])
	}
	return out, ok
}

func textOf(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return json.RawMessage(s)
}

// rangeOf returns the text of a range of generations.
func rangeOf(first, last int64) string {
	if first == last {
		return number(first)
	}
	return number(first) + "-" + number(last)
}

// readRange reads the text of rangeOf; it returns zeros for another text.
func readRange(text string) (first, last int64) {
	from, to, is := strings.Cut(text, "-")
	if !is {
		to = from
	}
	first, err := strconv.ParseInt(from, 10, 64)
	if err != nil {
		return 0, 0
	}
	if last, err = strconv.ParseInt(to, 10, 64); err != nil {
		return 0, 0
	}
	return first, last
}

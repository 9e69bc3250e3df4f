package ledger

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/message"
)

// composed are actions that constants of a file name, some of them after a prefix.
var composed = map[string]struct{ file, constants string }{
	"ticket.": {"../approval/event.go", "Event"},
	"device.": {"../credential/device.go", "Device"},
	"":        {"../externalchanges/changes.go", "Action"},
}

// notRecorded are the values of these constants that are never part of an action.
var notRecorded = []string{"ticket.compiled", "ticket.propagated", "ticket.realized", "device.waiting", "device.used"}

// written returns the actions that programs write to the ledger, as the sources have them: the string literals of the form of an action
// in packages that import package ledger, and the composed ones.
func written(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	action := regexp.MustCompile(`^(review|resource|class|downgrade|catalog|workloads|delegation|token|sessions|portal|package)\.[a-z-]+$`)
	for _, root := range []string{"..", "../../cmd"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			name := d.Name()
			if d.IsDir() && (name == "portal" && root == ".." || name == "ledger" || strings.HasSuffix(name, "test")) {
				return filepath.SkipDir
			}
			if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return nil
			}
			for _, text := range literals(t, path) {
				// Approver expressions and fields of CEL have the same form.
				if action.MatchString(text) && text != "resource.owner" && importsLedger(t, filepath.Dir(path)) {
					out[text] = true
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for prefix, c := range composed {
		for name, value := range constants(t, c.file) {
			if strings.HasPrefix(name, c.constants) && !slices.Contains(notRecorded, prefix+value) {
				out[prefix+value] = true
			}
		}
	}
	for _, state := range memberStates(t, "../../controllers/protectedresource/events.go") {
		out["member."+state] = true
	}
	return out
}

func parse(t *testing.T, path string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// memberStates returns the states of members for which a file has cases, as they are written in actions.
func memberStates(t *testing.T, path string) (out []string) {
	t.Helper()
	ast.Inspect(parse(t, path), func(n ast.Node) bool {
		clause, ok := n.(*ast.CaseClause)
		if !ok {
			return true
		}
		for _, e := range clause.List {
			if constant, ok := e.(*ast.SelectorExpr); ok && strings.HasPrefix(constant.Sel.Name, "Member") {
				out = append(out, strings.ToLower(strings.TrimPrefix(constant.Sel.Name, "Member")))
			}
		}
		return true
	})
	if len(out) == 0 {
		t.Fatalf("%s has no states of members", path)
	}
	return out
}

func literals(t *testing.T, path string) (out []string) {
	t.Helper()
	ast.Inspect(parse(t, path), func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			if text, err := strconv.Unquote(l.Value); err == nil {
				out = append(out, text)
			}
		}
		return true
	})
	return out
}

func importsLedger(t *testing.T, dir string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(path string) bool {
		return !strings.HasSuffix(path, "_test.go") && slices.ContainsFunc(parse(t, path).Imports, func(i *ast.ImportSpec) bool {
			return strings.HasSuffix(strings.Trim(i.Path.Value, `"`), "/internal/ledger")
		})
	})
}

// constants returns the string constants of a file by their names.
func constants(t *testing.T, path string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, d := range parse(t, path).Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			for i, name := range v.Names {
				if i < len(v.Values) {
					if l, ok := v.Values[i].(*ast.BasicLit); ok && l.Kind == token.STRING {
						out[name.Name], _ = strconv.Unquote(l.Value)
					}
				}
			}
		}
	}
	return out
}

// TestEveryActionHasAMessage fails if a program writes an action that has no text, or if a text has no action.
func TestEveryActionHasAMessage(t *testing.T) {
	writes := written(t)
	for _, action := range slices.Sorted(maps.Keys(writes)) {
		if (Entry{Action: action}).Message().IsZero() {
			t.Errorf("the action %s has no message: add ledger.action.%s to catalogue.json, and the action to texts.go", action, action)
		}
	}
	for _, action := range slices.Sorted(maps.Keys(actions)) {
		if !writes[action] {
			t.Errorf("no program writes the action %s: remove its message", action)
		}
	}
	for action, of := range actions {
		if code := of().Code; code != "ledger.action."+action {
			t.Errorf("the action %s has the code %s", action, code)
		}
	}
	if !(Entry{Action: "ticket.of-a-newer-version"}).Message().IsZero() {
		t.Error("an unknown action has a message")
	}
}

// TestStatesHaveWords checks that every state and kind of a ticket has a text.
func TestStatesHaveWords(t *testing.T) {
	for _, c := range []struct{ file, constants, key string }{
		{"../approval/item.go", "State", "state"},
		{"../approval/kind.go", "Kind", "kind"},
		{"../accessreview/line.go", "Outcome", "outcome"},
		{"../accessreview/campaign.go", "Silence", "silence"},
		{"../backup/restore.go", "Mode", "known"},
		{"../rollout/gaps.go", "Gap", "why"},
		{"../externalchanges/content.go", "Content", "content"},
	} {
		n := 0
		for name, value := range constants(t, c.file) {
			if !strings.HasPrefix(name, c.constants) {
				continue
			}
			n++
			if valueTexts[c.key][value] == nil {
				t.Errorf("the %s %q has no text in texts.go", c.key, value)
			}
		}
		if n == 0 {
			t.Errorf("%s has no constants %s", c.file, c.constants)
		}
	}
}

// TestTextsOfDetails checks that details are shown in other languages as far as they are ACP's own words.
func TestTextsOfDetails(t *testing.T) {
	reason := message.TicketRolloutStopped(message.GuardNewDenials(3, "east", "1h0m0s", 0))
	coded := map[string]string{"cluster": "east"}
	SetMessage(coded, "reason", reason)
	nothing := map[string]string{}
	SetMessage(nothing, "reason", message.Message{})
	verbatim := map[string]string{}
	SetMessage(verbatim, "reason", message.Verbatim("from elsewhere"))
	until := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		reason string
		entry  Entry
		want   map[string]message.Message
	}{
		{"a reason of the portal", Entry{Action: "ticket.withdrawn", Details: coded}, map[string]message.Message{"reason": reason}},
		{"no reason", Entry{Action: "ticket.withdrawn", Details: nothing}, map[string]message.Message{}},
		{"a text of another program", Entry{Action: "ticket.failed", Details: verbatim}, map[string]message.Message{}},
		{"the text of an earlier version, and the words of a person", Entry{Action: "ticket.failed", Details: map[string]string{"comment": "pending"}},
			map[string]message.Message{}},
		{"values from a list, and a time", Entry{Action: "ticket.approved", Details: map[string]string{"state": "pending", "kind": "grant",
			"until": "2026-03-02T10:00:00Z", "step": "database owners", "adopt": "true"}},
			map[string]message.Message{"state": message.LedgerValueStatePending(), "kind": message.LedgerValueKindGrant(),
				"until": message.LedgerValueTime(until), "adopt": message.LedgerValueYes()}},
		{"the owners of one of several resources", Entry{Action: "ticket.step-approved", Details: map[string]string{"step": "owner:bobs"}},
			map[string]message.Message{"step": message.StepNameOwnerOf("bobs")}},
		{"identifiers that look like details", Entry{Action: "workloads.registered",
			Details: map[string]string{"state": "pending", "vm": "a", "vmCode": "call.login-first"}},
			map[string]message.Message{}},
		{"a code of a newer version", Entry{Action: "ticket.failed", Details: map[string]string{"comment": "It failed.", "commentCode": "ticket.not-known"}},
			map[string]message.Message{"comment": {Code: "ticket.not-known", Text: "It failed."}}},
	} {
		if diff := cmp.Diff(tc.want, tc.entry.Texts()); diff != "" {
			t.Errorf("%s: %s", tc.reason, diff)
		}
	}
	if len(nothing) != 0 {
		t.Errorf("no message was stored as %v", nothing)
	}
	if got := verbatim; len(got) != 1 || got["reason"] != "from elsewhere" {
		t.Errorf("a text of another program was stored as %v", got)
	}
}

// TestLabels checks that keys have labels, unless they are identifiers or belong to another detail.
func TestLabels(t *testing.T) {
	got := Entry{Action: "ticket.failed", Details: map[string]string{"comment": "x", "commentCode": "c", "onBehalfOf": "bob", "strange": "y"}}.Labels()
	want := map[string]message.Message{"comment": message.LedgerDetailComment(), "onBehalfOf": message.LedgerDetailOnBehalfOf()}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := (Entry{Action: "workloads.registered", Details: map[string]string{"state": "x"}}).Labels(); len(got) != 0 {
		t.Errorf("identifiers have the labels %v", got)
	}
}

// firstBroken returns the number of the first line that is not valid; 0 if all are.
func firstBroken(t *testing.T, lines ...Line) int64 {
	t.Helper()
	_, _, err := Verify(func(yield func(Line, error) bool) {
		for _, l := range lines {
			if !yield(l, nil) {
				return
			}
		}
	})
	var b *BrokenError
	if errors.As(err, &b) {
		return b.Seq
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0
}

// TestCodesAreHashed checks that a line whose stored code was changed is not valid any more, and that a line of an earlier version, which
// has no codes, still is.
func TestCodesAreHashed(t *testing.T) {
	details := map[string]string{}
	SetMessage(details, "reason", message.ReviewNothing())
	line, err := Append(0, Genesis, Entry{At: time.Unix(1, 0), Action: "review.ended", Object: "R-1", Details: details})
	if err != nil {
		t.Fatal(err)
	}
	old, err := Append(line.Seq, line.Hash, Entry{At: time.Unix(2, 0), Action: "review.ended", Object: "R-1",
		Details: map[string]string{"reason": "There is nothing to review."}})
	if err != nil {
		t.Fatal(err)
	}
	if r := firstBroken(t, line, old); r != 0 {
		t.Errorf("line %d is not valid", r)
	}
	line.Text = strings.Replace(line.Text, "review.nothing", "review.closed", 1)
	if r := firstBroken(t, line, old); r != 1 {
		t.Errorf("the first line that is not valid is %d, want 1", r)
	}
}

package audittest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/testenv/golden"
)

// Statement is the text of a query, and its arguments as text.
type Statement struct {
	Text string
	Args []string
}

// Golden compares the statements with the golden file.
func Golden(t *testing.T, file string, statements map[string]Statement) {
	t.Helper()
	var b strings.Builder
	names := make([]string, 0, len(statements))
	for name := range statements {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "# %s\n%s\n", name, statements[name].Text)
		for _, a := range statements[name].Args {
			fmt.Fprintf(&b, "  %s\n", a)
		}
		b.WriteString("\n")
	}
	golden.Compare(t, file, b.String())
}

// EveryFilter returns a filter with every field set, to values that must appear in arguments and not in the text of a statement.
func EveryFilter() audit.Filter {
	return audit.Filter{
		Since:     T0.Add(59 * time.Second),
		Until:     T0.Add(2*time.Hour + time.Second),
		Subjects:  []string{"value-s"},
		Resources: []string{"value-r1", "value-r2"},
		Clusters: []string{
			"value-c",
		},
		Actions:      []string{"value-a"},
		Decisions:    []policy.Verdict{"value-d"},
		Verdicts:     []audit.Verdict{"value-v"},
		Ports:        []uint16{6379},
		Policy:       "value-p",
		SID:          "value-sid",
		Unattributed: true,
		Disagree:     true,
		Text:         "value-t",
		Within:       &audit.Scope{Subjects: []string{"value-w"}},
	}
}

// BindsValues fails the test if a value of EveryFilter is part of a statement's text.
func BindsValues(t *testing.T, statements map[string]Statement) {
	t.Helper()
	for name, s := range statements {
		if strings.Contains(s.Text, "value-") || strings.Contains(s.Text, "6379") {
			t.Errorf("%s contains a value in its text: %s", name, s.Text)
		}
	}
}

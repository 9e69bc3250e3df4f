package cli

import (
	"strings"
	"testing"
)

// TestLintSpeaksTheLanguageOfTheLocale checks that the notes of the lint are rendered from their codes.
func TestLintSpeaksTheLanguageOfTheLocale(t *testing.T) {
	t.Chdir("testdata/lint")
	for locale, want := range map[string]string{
		"C":           "it expired at 2026-01-01T00:00:00Z and does nothing: remove it",
		"zh_CN.UTF-8": "已于 2026-01-01T00:00:00Z 到期，不再起作用：请删除",
	} {
		t.Setenv("LC_ALL", locale)
		if _, out, errs := run(t, "", "lint", "-f", "policies.yaml"); !strings.Contains(out, want) {
			t.Errorf("%s: lint does not report %q:\n%s%s", locale, want, out, errs)
		}
	}
}

package artifacts

import (
	"fmt"
	"regexp"
	"strings"
)

var heading = regexp.MustCompile(`^## \[?([^\]\s]+)\]?`)

// Notes returns the section of a version (without its "v") of a changelog in the format of Keep a Changelog, without the heading.
func Notes(changelog, version string) (string, error) {
	var b strings.Builder
	found := false
	for line := range strings.Lines(changelog) {
		if m := heading.FindStringSubmatch(line); m != nil {
			if found {
				break
			}
			found = m[1] == version
			continue
		}
		if found {
			b.WriteString(line)
		}
	}
	notes := strings.TrimSpace(b.String())
	if !found || notes == "" {
		return "", fmt.Errorf("CHANGELOG.md has no section %q with text; rename the section Unreleased to it, with the date, and commit", "## "+version)
	}
	return notes + "\n", nil
}

package build

import (
	"fmt"
	"strings"

	"golang.org/x/mod/semver"
)

// Canonical returns a semantic version with the leading "v" that Git tags have; other versions, such as a commit's hash, stay as they are.
func Canonical(version string) string {
	if strings.Count(version, ".") >= 2 && semver.IsValid("v"+version) {
		return "v" + version
	}
	return version
}

// CheckRelease reports whether a version may be released: a semantic version with its three numbers, with or without a pre-release, and without build metadata,
// which neither a chart's nor an image's version keeps.
func CheckRelease(version string) error {
	v := Canonical(version)
	if !semver.IsValid(v) || semver.Canonical(v) != v {
		return fmt.Errorf("%q is not a version that can be released; give three numbers, for example VERSION=0.1.0 or VERSION=0.2.0-rc.1", version)
	}
	return nil
}

// Tag returns the tag for a version. Semantic versions lose their "v", so that a chart's version and its images' tag are the same; and a tag has no "+".
func Tag(version string) string {
	if semver.IsValid(version) {
		version = strings.TrimPrefix(version, "v")
	}
	return strings.ReplaceAll(version, "+", "_")
}

// Package release carries the versions of the modules that acp-release is built from. The programs of this module make what is published of ACP.
package release

import (
	_ "embed"
	"fmt"

	"golang.org/x/mod/modfile"
)

//go:embed go.mod
var module []byte

// RequiredVersion returns the version of a module that this module requires. Unlike the linker's record it is there in tests, too.
func RequiredVersion(path string) (string, error) {
	f, err := modfile.Parse("go.mod", module, nil)
	if err != nil {
		return "", fmt.Errorf("read go.mod of the release tool: %w", err)
	}
	for _, r := range f.Require {
		if r.Mod.Path == path {
			return r.Mod.Version, nil
		}
	}
	return "", fmt.Errorf("the release tool does not require %s", path)
}

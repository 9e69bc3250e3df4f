package configuration

import (
	"path/filepath"
	"strings"
)

// InFolder resolves the path after the prefix of an address, such as sqlite:portal.db, in the folder unless the path is absolute.
// Addresses without the prefix are returned as they are.
func InFolder(folder, prefix, address string) string {
	path, ok := strings.CutPrefix(address, prefix)
	if !ok || path == "" || filepath.IsAbs(path) || folder == "." {
		return address
	}
	return prefix + filepath.Join(folder, path)
}

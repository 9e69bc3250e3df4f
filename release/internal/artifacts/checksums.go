package artifacts

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Checksums returns a file for `sha256sum --check` about files in one folder.
func Checksums(paths []string) ([]byte, error) {
	var b strings.Builder
	for _, path := range slices.SortedFunc(slices.Values(paths), func(a, b string) int { return cmp.Compare(filepath.Base(a), filepath.Base(b)) }) {
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("hash a file: %w", err)
		}
		h := sha256.New()
		_, err = io.Copy(h, f)
		_ = f.Close() // it was only read
		if err != nil {
			return nil, fmt.Errorf("hash %s: %w", path, err)
		}
		fmt.Fprintf(&b, "%x  %s\n", h.Sum(nil), filepath.Base(path))
	}
	return []byte(b.String()), nil
}

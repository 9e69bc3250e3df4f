package sbom

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Bundled says what the build of the web UI put into its files.
type Bundled struct {
	// Node is the version of Node that built it.
	Node string `json:"node"`
	// Packages are the npm packages of which there is code, styles or fonts in the files, as keys of the lock file.
	Packages []string `json:"packages"`
}

// ReadBundled reads what web/vite.config.ts wrote about the last build of the web UI.
func ReadBundled(root string) (Bundled, error) {
	var b Bundled
	path := filepath.Join(root, "web", "bundled-packages.json")
	content, err := os.ReadFile(path)
	if err != nil {
		return b, fmt.Errorf("read which npm packages are in the web UI: %w; run `make web`", err)
	}
	if err := json.Unmarshal(content, &b); err != nil {
		return b, fmt.Errorf("read %s: %w", path, err)
	}
	if b.Node == "" || len(b.Packages) == 0 {
		return b, fmt.Errorf("%s names no packages; remove web/dist/index.html and run `make web`", path)
	}
	return b, nil
}

// lockedPackage is an entry of package-lock.json.
type lockedPackage struct {
	Version   string `json:"version"`
	Integrity string `json:"integrity"`
	License   string `json:"license"`
}

// npmPackages returns the bundled packages with the versions, licenses and hashes of the lock file.
func npmPackages(root string, b Bundled) ([]component, error) {
	path := filepath.Join(root, "web", "package-lock.json")
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the lock file of the web UI: %w", err)
	}
	var lock struct {
		Packages map[string]lockedPackage `json:"packages"`
	}
	if err := json.Unmarshal(content, &lock); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	var all []component
	for _, key := range b.Packages {
		locked, ok := lock.Packages[key]
		if !ok || locked.Version == "" {
			return nil, fmt.Errorf("%s is in the web UI and not in %s; run `npm ci` and `make web`", key, path)
		}
		name := key[strings.LastIndex(key, "node_modules/")+len("node_modules/"):]
		c := component{
			name: name, version: locked.Version, license: locked.License,
			// A scope's @ is encoded in package URLs.
			purl: "pkg:npm/" + strings.Replace(name, "@", "%40", 1) + "@" + locked.Version,
		}
		if sum, ok := strings.CutPrefix(locked.Integrity, "sha512-"); ok {
			raw, err := base64.StdEncoding.DecodeString(sum)
			if err != nil {
				return nil, fmt.Errorf("the hash of %s in %s: %w", key, path, err)
			}
			c.sha512 = hex.EncodeToString(raw)
		}
		all = append(all, c)
	}
	return all, nil
}

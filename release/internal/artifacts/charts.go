package artifacts

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/yaml"
)

// Chart is a packaged Helm chart.
type Chart struct {
	// Name is the file's name in the release.
	Name    string
	Content []byte
}

// Charts packages every chart in a folder with a version (without its "v"), as `helm package --dependency-update` does, but so that the same files give the
// same bytes. A chart whose appVersion is its version is about ACP's programs and gets the new version for both; another appVersion is that of something else
// and stays. Without the folder there are no charts.
func Charts(dir, version string, modified time.Time) ([]Chart, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for charts: %w", err)
	}
	var all []Chart
	for _, e := range entries {
		folder := filepath.Join(dir, e.Name())
		if _, err := os.Stat(filepath.Join(folder, "Chart.yaml")); !e.IsDir() || errors.Is(err, fs.ErrNotExist) {
			continue // tests of the charts, and their data
		}
		files, name, err := chartFiles(folder, version)
		if err != nil {
			return nil, err
		}
		content, err := TarGz(files, modified)
		if err != nil {
			return nil, err
		}
		packaged, err := loader.LoadArchive(bytes.NewReader(content))
		if err != nil {
			return nil, fmt.Errorf("the package of the chart %s cannot be read: %w", name, err)
		}
		if err := packaged.Validate(); err != nil {
			return nil, fmt.Errorf("the package of the chart %s is not valid: %w", name, err)
		}
		all = append(all, Chart{name + "-" + version + ".tgz", content})
	}
	return all, nil
}

// chartFiles returns the files of a chart's package, below a folder of the chart's name, and that name.
func chartFiles(folder, version string) ([]File, string, error) {
	c, err := loader.LoadDir(folder)
	if err != nil {
		return nil, "", fmt.Errorf("read the chart %s: %w", folder, err)
	}
	m := c.Metadata
	if m.AppVersion == m.Version {
		m.AppVersion = version
	}
	m.Version = version
	var files []File
	for _, d := range m.Dependencies {
		path, local := strings.CutPrefix(d.Repository, "file://")
		if !local {
			return nil, "", fmt.Errorf(
				"the chart %s depends on %s from %s; only charts of this repository (file://) can be packaged",
				m.Name,
				d.Name,
				d.Repository,
			)
		}
		below, name, err := chartFiles(filepath.Join(folder, path), version)
		if err != nil {
			return nil, "", err
		}
		if name != d.Name {
			return nil, "", fmt.Errorf("the chart %s depends on %s, and %s is %s", m.Name, d.Name, path, name)
		}
		// In the package the dependency is in its folder, so no repository is needed.
		d.Version, d.Repository = version, ""
		for _, f := range below {
			files = append(files, File{m.Name + "/charts/" + f.Name, f.Mode, f.Content})
		}
	}
	encoded, err := yaml.Marshal(m)
	if err != nil {
		return nil, "", fmt.Errorf("encode the metadata of the chart %s: %w", m.Name, err)
	}
	files = append(files, File{m.Name + "/" + "Chart.yaml", 0o644, encoded})
	for _, f := range c.Raw {
		// Dependencies that somebody downloaded and their lock are replaced by those above.
		if slices.Contains([]string{"Chart.yaml", "Chart.lock"}, f.Name) || strings.HasPrefix(f.Name, "charts/") {
			continue
		}
		files = append(files, File{m.Name + "/" + f.Name, 0o644, f.Data})
	}
	if err := checkNames(files); err != nil {
		return nil, "", fmt.Errorf("the chart %s: %w", m.Name, err)
	}
	return files, m.Name, nil
}

// checkNames refuses files of one name, of which an archive would have both.
func checkNames(files []File) error {
	names := map[string]bool{}
	for _, f := range files {
		if names[f.Name] {
			return fmt.Errorf("two files are called %s", f.Name)
		}
		names[f.Name] = true
	}
	return nil
}

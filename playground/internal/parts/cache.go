package parts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Cache builds parts and caches the results.
type Cache struct {
	// Repo is the root of the repository.
	Repo string
	// Dir is the cache folder; see DefaultDir.
	Dir string
	// Assets is a folder with prebuilt programs (KUBEBUILDER_ASSETS). Empty means none.
	Assets string
	// Progress receives the progress for the user.
	Progress Progress
	// build is replaced in tests.
	build func(ctx context.Context, p Part, moduleDir, out, log string) error
}

// Progress reports the building of parts. All calls come from one goroutine.
type Progress interface {
	// Begin is called when the build of part n of total starts.
	Begin(n, total int, p Part, log string)
	// Elapsed is called about once per second during the build. waiting reports whether another process builds the part.
	Elapsed(p Part, d time.Duration, waiting bool)
	// End is called when the build completed in d or failed.
	End(p Part, d time.Duration, err error)
}

// DefaultDir is $ACP_CACHE, or acp in the user's cache folder.
func DefaultDir() (string, error) {
	if dir := os.Getenv("ACP_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a cache folder (set ACP_CACHE to one): %w", err)
	}
	return filepath.Join(dir, "acp"), nil
}

// Built locates the files of the parts.
type Built map[string]string

// Path returns the path of a program or file of a part.
func (b Built) Path(part, file string) string { return filepath.Join(b[part], file) }

// Ensure returns the folders of the parts, building those that are not in the cache.
func (c *Cache) Ensure(ctx context.Context, parts []Part) (Built, error) {
	goVersion, err := goOutput(ctx, c.Repo, "env", "GOVERSION")
	if err != nil {
		return nil, fmt.Errorf("ask for the version of Go (is go installed?): %w", err)
	}
	built := Built{}
	for i, p := range parts {
		if c.Assets != "" && len(p.Assets) > 0 && holds(c.Assets, p.Assets) {
			built[p.Name] = c.Assets
			continue
		}
		dir, err := c.ensure(ctx, p, goVersion, i+1, len(parts))
		if err != nil {
			return nil, err
		}
		built[p.Name] = dir
	}
	return built, nil
}

func (c *Cache) ensure(ctx context.Context, p Part, goVersion string, n, total int) (string, error) {
	moduleDir := filepath.Join(c.Repo, p.Dir)
	k, err := key(p, moduleDir, goVersion)
	if err != nil {
		return "", err
	}
	root := filepath.Join(c.Dir, "parts")
	final := filepath.Join(root, p.Name+"-"+k)
	if exists(final) {
		return final, nil
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", fmt.Errorf("make the cache folder: %w", err)
	}
	logPath := final + ".log"
	began := time.Now()
	c.Progress.Begin(n, total, p, logPath)
	err = c.whileTicking(p, began, func(waiting func(bool)) error {
		waiting(true)
		unlock, err := lock(ctx, final+".lock")
		if err != nil {
			return err
		}
		defer unlock()
		waiting(false)
		if exists(final) { // another process built it in the meantime
			return nil
		}
		return c.buildInto(ctx, p, moduleDir, final, logPath)
	})
	c.Progress.End(p, time.Since(began), err)
	return final, err
}

// buildInto builds in a temporary folder next to the final one and renames it, so that an existing folder is always complete.
func (c *Cache) buildInto(ctx context.Context, p Part, moduleDir, final, logPath string) error {
	temp, err := os.MkdirTemp(filepath.Dir(final), ".building-"+p.Name+"-")
	if err != nil {
		return fmt.Errorf("make a folder to build in: %w", err)
	}
	defer os.RemoveAll(temp)
	build := c.build
	switch {
	case build != nil:
	case len(p.Packages) > 0:
		build = unpackPackages
	default:
		build = goBuild
	}
	if err := build(ctx, p, moduleDir, temp, logPath); err != nil {
		return err
	}
	if p.After != nil {
		if err := p.After(ctx, moduleDir, temp); err != nil {
			return fmt.Errorf("build %s: %w", p.Name, err)
		}
	}
	if err := os.Chmod(temp, 0o755); err != nil {
		return err
	}
	if err := os.Rename(temp, final); err != nil {
		return fmt.Errorf("put %s into the cache: %w", p.Name, err)
	}
	return nil
}

// whileTicking runs f and reports the elapsed time every second.
func (c *Cache) whileTicking(p Part, began time.Time, f func(waiting func(bool)) error) error {
	state := make(chan bool, 2)
	done := make(chan error, 1)
	go func() { done <- f(func(w bool) { state <- w }) }()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	waiting := false
	for {
		select {
		case waiting = <-state:
		case <-tick.C:
			c.Progress.Elapsed(p, time.Since(began), waiting)
		case err := <-done:
			return err
		}
	}
}

// lock acquires a file lock and waits while another process holds it.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open a lock in the cache: %w", err)
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			_ = f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, context.Cause(ctx)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func holds(dir string, files []string) bool {
	for _, f := range files {
		if st, err := os.Stat(filepath.Join(dir, f)); err != nil || st.IsDir() {
			return false
		}
	}
	return true
}

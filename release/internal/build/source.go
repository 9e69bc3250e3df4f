// Package build compiles ACP's programs in a way that depends on their source and the Go toolchain alone. It must not depend on images.
package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Repository is the address at which the source is published. Labels, provenance and documents refer to it.
const Repository = "https://github.com/acp-io/acp"

// Module is the path of ACP's main Go module.
const Module = "github.com/acp-io/acp"

// Source identifies what is built.
type Source struct {
	// Root is the folder with the main module's go.mod.
	Root string
	// Version is what the programs report, for example "v0.1.0".
	Version string
	// Commit is the full hash of the Git commit.
	Commit string
	// Time is the commit's time, or that of SOURCE_DATE_EPOCH. It is the only time in anything that is built.
	Time time.Time
	// Modified says that the work tree differs from the commit, so that nobody can build the same from the commit.
	Modified bool
}

// ReadSource reads the source's identity from Git in root. SOURCE_DATE_EPOCH (seconds since 1970, UTC) in the environment replaces the commit's time.
func ReadSource(ctx context.Context, root, version string) (Source, error) {
	s := Source{Root: root, Version: Canonical(version)}
	if version == "" {
		return s, errors.New("a version is required, for example VERSION=0.1.0")
	}
	var err error
	if s.Commit, err = git(ctx, root, "rev-parse", "HEAD"); err != nil {
		return s, err
	}
	status, err := git(ctx, root, "status", "--porcelain")
	if err != nil {
		return s, err
	}
	s.Modified = status != ""
	seconds := os.Getenv("SOURCE_DATE_EPOCH")
	if seconds == "" {
		if seconds, err = git(ctx, root, "show", "-s", "--format=%ct", "HEAD"); err != nil {
			return s, err
		}
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || n < 0 {
		return s, fmt.Errorf("SOURCE_DATE_EPOCH is %q; it must be the number of seconds since 1970", seconds)
	}
	s.Time = time.Unix(n, 0).UTC()
	return s, nil
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			err = errors.New(strings.TrimSpace(string(failed.Stderr)))
		}
		return "", fmt.Errorf("git %s in %s: %w; images and releases are built from a Git clone", strings.Join(args, " "), dir, err)
	}
	return strings.TrimSpace(string(out)), nil
}

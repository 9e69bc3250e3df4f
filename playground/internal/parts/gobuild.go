package parts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-io/acp/playground/internal/supervisor"
)

// linkFlags omit debug information, which halves the size of the programs.
const linkFlags = "-s -w"

func buildArgs(linkFlags string) []string {
	return []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=" + linkFlags}
}

// goBuild builds the programs of a part into out.
func goBuild(ctx context.Context, p Part, moduleDir, out, logPath string) error {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return fmt.Errorf("open the build log: %w", err)
	}
	defer log.Close()
	names := make([]string, 0, len(p.Programs))
	for name := range p.Programs {
		names = append(names, name)
	}
	slices.Sort(names)
	link := linkFlags
	if p.Stamp != nil {
		stamp, err := p.Stamp(ctx, moduleDir)
		if err != nil {
			return err
		}
		link += " " + stamp
	}
	for _, name := range names {
		args := append(buildArgs(link), "-o", filepath.Join(out, name), p.Programs[name])
		cmd := goCommand(ctx, moduleDir, args...)
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Run(); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("build %s of %s: %w; the end of %s:\n%s", name, p.Name, err, logPath, supervisor.Tail(logPath, 20))
		}
	}
	return nil
}

func goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	// Without cgo the programs run on any machine of the same architecture and need no C compiler. A workspace or flags of the
	// user's environment must not affect what is cached for all users.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	return cmd
}

func goOutput(ctx context.Context, dir string, args ...string) (string, error) {
	out, err := goCommand(ctx, dir, args...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return "", fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(exit.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
}

// BuildPrograms builds commands of the repository's own root module into binDir.
func BuildPrograms(ctx context.Context, repo, binDir string, names ...string) error {
	if err := os.MkdirAll(binDir, 0o755); err != nil {
		return fmt.Errorf("make %s: %w", binDir, err)
	}
	args := append(buildArgs(linkFlags), "-tags=grpcnotrace", "-o", binDir+string(filepath.Separator)) // see the Makefile
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(repo, "cmd", name)); err != nil {
			return fmt.Errorf("the repository has no cmd/%s (use --without acp to start the fleet alone): %w", name, err)
		}
		args = append(args, "./cmd/"+name)
	}
	cmd := goCommand(ctx, repo, args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", strings.Join(names, ", "), err, out)
	}
	return nil
}

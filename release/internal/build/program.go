package build

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Program is one of ACP's commands.
type Program struct {
	// Name is the folder below cmd, and the name of the executable and of the image.
	Name string
	// Title and Description are for people who look at the image in a registry.
	Title, Description string
	// UI says that the program embeds the web UI, which has to be built before.
	UI bool
}

// ImagePrograms are the programs that run in clusters, each in an image of its own.
var ImagePrograms = []Program{
	{Name: "portal", Title: "ACP portal", Description: "Web UI and API of ACP: request, approve, revoke and view access", UI: true},
	{
		Name:        "acp-adapter",
		Title:       "ACP adapter",
		Description: "Compiles access control policies, federates them and reads members back; serves the admission webhook",
	},
	{Name: "flow-collector", Title: "ACP flow collector", Description: "Takes in the flows of the members, decides them by the policies and counts them"},
	{Name: "acp-node", Title: "ACP node reporter", Description: "Reports which revision of ACP's policies the Cilium agent of a node enforces"},
}

// Plugin is the kubectl plugin, which runs on people's machines.
var Plugin = Program{
	Name:        "kubectl-acp",
	Title:       "kubectl acp",
	Description: "Render, decide, lint and compare access control policies, and join member clusters",
}

// Platform is an operating system and an architecture, in Go's names.
type Platform struct{ OS, Arch string }

func (p Platform) String() string { return p.OS + "/" + p.Arch }

// ParsePlatform reads a platform such as "linux/arm64".
func ParsePlatform(s string) (Platform, error) {
	os, arch, ok := strings.Cut(s, "/")
	if !ok || os == "" || arch == "" || strings.Contains(arch, "/") {
		return Platform{}, fmt.Errorf("platform %q: it must be an operating system and an architecture, for example linux/amd64", s)
	}
	return Platform{os, arch}, nil
}

// Flags are the flags of every build, beside the version for the linker. Without grpcnotrace, gRPC imports html/template, and the linker
// keeps every exported method.
var Flags = []string{"-trimpath", "-buildvcs=false", "-tags=grpcnotrace"}

// LinkerFlags returns the linker's flags: no symbol table, no debug information, and the version.
func LinkerFlags(version string) string {
	return "-s -w -X " + Module + "/internal/version.version=" + version
}

// Environment returns the settings of the Go toolchain that change what is built. Each is set to one value, so that a contributor's own settings change
// nothing.
func Environment(p Platform) []string {
	return []string{
		"CGO_ENABLED=0",
		"GOOS=" + p.OS,
		"GOARCH=" + p.Arch,
		"GOAMD64=v1",
		"GOARM64=v8.0",
		"GOFLAGS=",
		"GOEXPERIMENT=",
		"GOFIPS140=off",
		"GODEBUG=",
		"GOWORK=off",
	}
}

// Compile builds a program for a platform and writes the executable to the file out.
func Compile(ctx context.Context, s Source, program Program, p Platform, out string) error {
	if program.UI {
		if _, err := os.Stat(filepath.Join(s.Root, "web", "dist", "index.html")); err != nil {
			return fmt.Errorf("%s embeds the web UI, which is not built: run `make web`", program.Name)
		}
	}
	args := append([]string{"build"}, Flags...)
	args = append(args, "-ldflags", LinkerFlags(s.Version), "-o", out, "./cmd/"+program.Name)
	if output, err := runGo(ctx, s.Root, Environment(p), args...); err != nil {
		return fmt.Errorf("compile %s for %s: %w\n%s", program.Name, p, err, output)
	}
	return nil
}

// GoVersion returns the version of the Go toolchain that builds the main module, for example "go1.26.8".
func GoVersion(ctx context.Context, root string) (string, error) {
	out, err := runGo(ctx, root, []string{"GOWORK=off", "GOFLAGS="}, "env", "GOVERSION")
	if err != nil {
		return "", fmt.Errorf("ask for Go's version: %w\n%s", err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// Info returns what the Go linker recorded in an executable about its modules and settings.
func Info(executable string) (*buildinfo.BuildInfo, error) {
	info, err := buildinfo.ReadFile(executable)
	if err != nil {
		return nil, fmt.Errorf("read the build information of %s: %w", executable, err)
	}
	return info, nil
}

// runGo runs the Go command with settings in place of those of the environment, and returns what it printed to both outputs.
func runGo(ctx context.Context, dir string, settings []string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = slices.DeleteFunc(os.Environ(), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return strings.HasPrefix(name, "CGO_") || slices.ContainsFunc(settings, func(s string) bool { return strings.HasPrefix(s, name+"=") })
	})
	cmd.Env = append(cmd.Env, settings...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	return output.Bytes(), err
}

package parts

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strings"
)

// Checksums is the file of a part of packages that lists the SHA-256 of every package that it was unpacked from, in the form that
// sha256sum reads.
const Checksums = "SHA256SUMS"

// osRelease is the file that identifies the distribution of the machine.
const osRelease = "/etc/os-release"

// packagesKey names the content of a part of packages: their names, and the release that they are taken from. Their versions are
// not in it: a distribution removes old ones, so that a version that is written down could soon not be fetched any more.
func packagesKey(p Part) (string, error) {
	release, err := os.ReadFile(osRelease)
	if err != nil {
		return "", fmt.Errorf("find out which distribution this is: %w", err)
	}
	h := sha256.New()
	fmt.Fprintf(h, "%d %s %q\n", recipe, runtime.GOARCH, p.Packages)
	for _, link := range sortedKeys(p.Links) {
		fmt.Fprintf(h, "%s %s\n", link, p.Links[link])
	}
	for line := range strings.Lines(string(release)) {
		if strings.HasPrefix(line, "ID=") || strings.HasPrefix(line, "VERSION_ID=") {
			fmt.Fprint(h, line)
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// unpackPackages fetches the packages of a part, with those that they depend on and that the machine lacks, and unpacks them into
// one tree below out. apt checks each package against the signed index of the distribution.
func unpackPackages(ctx context.Context, p Part, _, out, logPath string) error {
	for _, program := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("unpack %s: this machine has no %s; real nodes need Debian 12 or newer, or a distribution made from it", p.Name, program)
		}
	}
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	defer log.Close()
	names, err := missingPackages(ctx, p.Packages, log)
	if err != nil && os.Geteuid() == 0 { // the package lists may be absent
		if _, updateErr := command(ctx, log, "", "apt-get", "update", "-qq"); updateErr != nil {
			return errors.Join(err, updateErr)
		}
		names, err = missingPackages(ctx, p.Packages, log)
	}
	if err != nil {
		return fmt.Errorf("unpack %s: %w (run apt-get update; the log is %s)", p.Name, err, logPath)
	}
	debs, err := os.MkdirTemp(filepath.Dir(out), ".packages-")
	if err != nil {
		return fmt.Errorf("make a folder for packages: %w", err)
	}
	defer os.RemoveAll(debs)
	// apt drops its privileges to a user that may not have access to the cache folder. It then continues as root with a warning.
	if _, err := command(ctx, log, debs, "apt-get", append([]string{"download", "-q", "-o", "APT::Sandbox::User=root"}, names...)...); err != nil {
		return fmt.Errorf("fetch the packages of %s: %w; the log is %s", p.Name, err, logPath)
	}
	files, err := filepath.Glob(filepath.Join(debs, "*.deb"))
	if err != nil {
		return err
	}
	if len(files) != len(names) {
		return fmt.Errorf("fetch the packages of %s: %d of %d arrived; the log is %s", p.Name, len(files), len(names), logPath)
	}
	var sums bytes.Buffer
	for _, file := range files {
		sum, err := fileSum(file)
		if err != nil {
			return fmt.Errorf("read a package: %w", err)
		}
		fmt.Fprintf(&sums, "%s  %s\n", sum, filepath.Base(file))
		if _, err := command(ctx, log, "", "dpkg-deb", "-x", file, out); err != nil {
			return fmt.Errorf("unpack %s: %w", filepath.Base(file), err)
		}
	}
	if err := mergeUsr(ctx, out, log); err != nil {
		return fmt.Errorf("merge the folders of %s: %w", p.Name, err)
	}
	for _, link := range sortedKeys(p.Links) {
		path := filepath.Join(out, link)
		if _, err := os.Stat(filepath.Join(out, p.Links[link])); err != nil {
			// The machine has it already, where the package was not needed.
			if _, err := os.Stat(p.Links[link]); err != nil {
				return fmt.Errorf("the packages of %s have no %s", p.Name, p.Links[link])
			}
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.Symlink(p.Links[link], path); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(out, Checksums), sums.Bytes(), 0o644)
}

// missingPackages returns these packages, and those that they depend on and that the machine lacks.
func missingPackages(ctx context.Context, packages []string, log io.Writer) ([]string, error) {
	out, err := command(ctx, log, "", "apt-get", append([]string{"-s", "install", "--no-install-recommends"}, packages...)...)
	if err != nil {
		return nil, fmt.Errorf("apt does not offer %s: %w", strings.Join(packages, ", "), err)
	}
	names := slices.Clone(packages)
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "Inst" {
			names = append(names, fields[1])
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// mergeUsr moves what a package has in /bin, /sbin or /lib below /usr, where the machine has it too.
func mergeUsr(ctx context.Context, root string, log io.Writer) error {
	for _, dir := range []string{"bin", "sbin", "lib", "lib64"} {
		from := filepath.Join(root, dir)
		if !exists(from) {
			continue
		}
		to := filepath.Join(root, "usr", dir)
		if err := os.MkdirAll(to, 0o755); err != nil {
			return err
		}
		if _, err := command(ctx, log, "", "cp", "-a", from+"/.", to); err != nil {
			return err
		}
		if err := os.RemoveAll(from); err != nil {
			return err
		}
	}
	return nil
}

func command(ctx context.Context, log io.Writer, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&out, log), log
	fmt.Fprintf(log, "$ %s %s\n", name, strings.Join(args, " "))
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return out.String(), nil
}

func fileSum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

package testenv

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// confine makes the whole file system read-only but for one folder, gives up all capabilities for good, and runs a program, as a
// container of deploy/workloads does. As root it becomes another user, too.
const confine = `set -eu
folder=$1; shift
mount --make-rprivate /
mount --bind "$folder" "$folder"
mount -o remount,bind,ro /
drop="--no-new-privs --bounding-set=-all --inh-caps=-all"
[ "$ACP_CONFINE_AS" = "" ] || drop="$drop --reuid=$ACP_CONFINE_AS --regid=$ACP_CONFINE_AS --clear-groups"
unset ACP_CONFINE_AS
exec setpriv $drop -- "$@"
`

// containerUser is the user of the containers in deploy/workloads.
const containerUser = 65532

// Confined returns the command for this test's own program that cannot write anywhere but into the folder, is not root and has no
// capability. Everything in the folder becomes the program's own. Without unshare and setpriv (util-linux) a test fails.
func Confined(t testing.TB, folder string, args ...string) *exec.Cmd {
	t.Helper()
	program := filepath.Join(folder, "program")
	if err := os.Link(os.Args[0], program); err != nil {
		data, err := os.ReadFile(os.Args[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(program, data, 0o755); err != nil { //nolint:gosec // it is a program
			t.Fatal(err)
		}
	}
	user, unshare := "", []string{"--mount"}
	if os.Getuid() == 0 {
		user = fmt.Sprint(containerUser)
		if err := own(folder); err != nil {
			t.Fatal(err)
		}
	} else {
		unshare = append(unshare, "--user", "--map-root-user")
	}
	temporary := filepath.Join(folder, "tmp")
	//nolint:gosec,noctx // it is this test's own program
	cmd := exec.Command("unshare", append(append(unshare, "--", "sh", "-c", confine, "sh", folder, program), args...)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+temporary, "ACP_CONFINE_AS="+user)
	cmd.Dir = "/"
	return cmd
}

// own gives a folder to the user of the containers, and lets them reach it.
func own(folder string) error {
	if err := os.MkdirAll(filepath.Join(folder, "tmp"), 0o700); err != nil {
		return err
	}
	if err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Base(path) == "program" {
			return err
		}
		return os.Lchown(path, containerUser, containerUser) //nolint:gosec // nobody else writes into a test's folder
	}); err != nil {
		return err
	}
	for dir := filepath.Dir(folder); dir != filepath.Dir(dir) && dir != os.TempDir(); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // a test's own folder
			return err
		}
	}
	return nil
}

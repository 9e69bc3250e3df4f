package testenv

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/acp-io/acp/internal/freeport"
)

const howToClickHouseServer = "run `make clickhouse-server`, or put clickhouse or clickhouse-server into PATH"

var clickHouseServerForTests = sync.OnceValues(startClickHouseServer)

// ClickHouseServer creates an empty database on a ClickHouse server process with the native protocol, and
// returns its DSN. It uses the server in PATH, or else Debian's, which is years too old for the flow store. All tests
// of a program share the server, which ends with the program, even if it is killed.
func ClickHouseServer(t testing.TB) (dsn string) {
	t.Helper()
	server, err := clickHouseServerForTests()
	if err != nil {
		t.Fatal(err)
	}
	name := "test_" + strings.ToLower(rand.Text())
	if err := clickHouseServerExec(t.Context(), server, "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := clickHouseServerExec(context.WithoutCancel(t.Context()), server, "DROP DATABASE "+name); err != nil {
			t.Error(err)
		}
	})
	return server + name
}

func clickHouseServerExec(ctx context.Context, server, sql string) error {
	o, err := driver.ParseDSN(server + "default")
	if err != nil {
		return err
	}
	conn, err := driver.Open(o)
	if err != nil {
		return err
	}
	if err := conn.Exec(ctx, sql); err != nil {
		return errors.Join(fmt.Errorf("ask the tests' ClickHouse server: %w", err), conn.Close())
	}
	return conn.Close()
}

// clickHouseServerScript runs a server until standard input is closed, and prints "ended" if the server ends earlier.
const clickHouseServerScript = `dir=$1
shift
("$@" >"$dir/log" 2>&1 </dev/null & echo $! >"$dir/pid"; wait $!; echo ended) 2>/dev/null &
cat >/dev/null
kill -9 "$(cat "$dir/pid")" 2>/dev/null
wait
rm -rf "$dir"
`

const clickHouseServerConfig = `<yandex>
  <logger><level>warning</level><console>1</console></logger>
  <listen_host>127.0.0.1</listen_host>
  <tcp_port>%[1]d</tcp_port>
  <path>%[2]s/data/</path>
  <tmp_path>%[2]s/tmp/</tmp_path>
  <mark_cache_size>67108864</mark_cache_size>
  <users_config>%[2]s/users.xml</users_config>
  <default_profile>default</default_profile>
  <default_database>default</default_database>
</yandex>
`

const clickHouseServerUsers = `<yandex>
  <profiles><default/></profiles>
  <quotas><default/></quotas>
  <users><%[1]s>
    <password>%[2]s</password>
    <networks><ip>127.0.0.1</ip></networks>
    <profile>default</profile>
    <quota>default</quota>
  </%[1]s></users>
</yandex>
`

// startClickHouseServer returns the server's URL up to the name of the database.
func startClickHouseServer() (string, error) {
	command, libraries, err := clickHouseServerProgram()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "acp-clickhouse-")
	if err != nil {
		return "", fmt.Errorf("make a folder for ClickHouse: %w", err)
	}
	server, err := startClickHouseServerIn(dir, command, libraries)
	if err != nil {
		return "", errors.Join(fmt.Errorf("start %s: %w", command[0], err), os.RemoveAll(dir))
	}
	return server, nil
}

func startClickHouseServerIn(dir string, command []string, libraries string) (string, error) {
	port, err := freeport.Find()
	if err != nil {
		return "", err
	}
	password := rand.Text()
	config := filepath.Join(dir, "config.xml")
	for file, content := range map[string]string{
		config:                          fmt.Sprintf(clickHouseServerConfig, port, dir),
		filepath.Join(dir, "users.xml"): fmt.Sprintf(clickHouseServerUsers, clickHouseUser, password),
	} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			return "", err
		}
	}
	args := append([]string{"-c", clickHouseServerScript, "clickhouse", dir}, command...)
	//nolint:noctx,gosec // it runs until the program ends; what is run comes from this file
	cmd := exec.Command("/bin/sh", append(args, "--config-file="+config)...)
	cmd.Dir = dir
	if cmd.Env = os.Environ(); libraries != "" {
		cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+libraries)
	}
	cmd.Stderr = os.Stderr
	// With a process group of its own, the server does not get the Ctrl-C of the test, whose end stops it in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	ended := make(chan struct{})
	go func() {
		_, _ = out.Read(make([]byte, 1)) // The script prints only that the server has ended.
		close(ended)
	}()
	server := (&url.URL{
		Scheme: "clickhouse", User: url.UserPassword(clickHouseUser, password),
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Path: "/",
	}).String()
	if err := awaitClickHouse(server, ended); err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "log")) // The folder is deleted with the server.
		return "", errors.Join(fmt.Errorf("%w: %s", err, bytes.TrimSpace(log)), in.Close(), cmd.Wait())
	}
	go func() { <-ended; _ = cmd.Wait() }()
	return server, nil
}

// awaitClickHouse waits until the server responds, and fails if it ends.
func awaitClickHouse(server string, ended <-chan struct{}) error {
	const timeout = 30 * time.Second
	deadline, err := time.After(timeout), error(nil)
	for {
		if err = clickHouseServerExec(context.Background(), server, "SELECT 1"); err == nil {
			return nil
		}
		select {
		case <-ended:
			return errors.New("it has ended")
		case <-deadline:
			return fmt.Errorf("it does not answer within %s: %w", timeout, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// clickHouseServerProgram returns the command that starts the server, and the folders of its libraries if it is
// unpacked rather than installed.
func clickHouseServerProgram() (command []string, libraries string, err error) {
	if path, err := exec.LookPath("clickhouse"); err == nil {
		return []string{path, "server"}, "", nil
	}
	if path, err := exec.LookPath("clickhouse-server"); err == nil {
		return []string{path}, "", nil
	}
	cache := os.Getenv("ACP_CACHE")
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return nil, "", fmt.Errorf("find the user's cache folder: %w", err)
		}
		cache = filepath.Join(user, "acp")
	}
	root := filepath.Join(cache, "clickhouse-server")
	path, err := exec.LookPath(filepath.Join(root, "usr", "sbin", "clickhouse-server"))
	if err != nil {
		return nil, "", errors.New("no ClickHouse server is installed: " + howToClickHouseServer)
	}
	var folders []string
	for _, pattern := range []string{"usr/lib/*-linux-gnu", "lib/*-linux-gnu"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, "", err
		}
		folders = append(folders, found...)
	}
	return []string{path}, strings.Join(folders, string(os.PathListSeparator)), nil
}

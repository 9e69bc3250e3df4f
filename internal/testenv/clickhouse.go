package testenv

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const (
	howToClickHouse = "run `make clickhouse`"
	clickHouseUser  = "acp"
)

var clickHouseForTests = sync.OnceValues(startClickHouse)

// ClickHouse creates an empty database in ClickHouse's own engine, served by its HTTP interface, and returns its DSN.
// All tests of a program share the engine, which ends with the program, even if it is killed.
func ClickHouse(t testing.TB) (dsn string) {
	t.Helper()
	server, err := clickHouseForTests()
	if err != nil {
		t.Fatal(err)
	}
	name := "test_" + strings.ToLower(rand.Text())
	if err := clickHouseExec(t.Context(), server, "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := clickHouseExec(context.WithoutCancel(t.Context()), server, "DROP DATABASE "+name); err != nil {
			t.Error(err)
		}
	})
	return server + name
}

func clickHouseExec(ctx context.Context, server, sql string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, server, strings.NewReader(sql))
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("ask the tests' ClickHouse: %w", err)
	}
	defer func() { _ = res.Body.Close() }() // Everything that is needed was read.
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the tests' ClickHouse answers %s to %q", res.Status, sql)
	}
	return nil
}

// startClickHouse returns the server's URL up to the name of the database.
func startClickHouse() (string, error) {
	program := filepath.Join(Root(), "bin", "acp-clickhouse")
	libraries, err := filepath.Glob(filepath.Join(Root(), "hack", "clickhouse", "node_modules", "@chdb", "*", "libchdb.*"))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(program); err != nil || len(libraries) == 0 {
		return "", errors.New("ClickHouse's engine is not installed: " + howToClickHouse)
	}
	password := rand.Text()
	//nolint:noctx,gosec // it runs until the program ends; what is run was built here
	cmd := exec.Command(program, "--library", libraries[0], "--user", clickHouseUser)
	cmd.Env = append(os.Environ(), "ACP_CLICKHOUSE_PASSWORD="+password)
	cmd.Stderr = os.Stderr
	// The server ends when its standard input is closed, which happens when this program ends.
	if _, err := cmd.StdinPipe(); err != nil {
		return "", err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("start %s: %w", program, err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return "", errors.Join(fmt.Errorf("%s did not start", program), cmd.Wait())
	}
	go func() { _ = cmd.Wait() }()
	u, err := url.Parse(strings.TrimSpace(line))
	if err != nil {
		return "", fmt.Errorf("read the address of %s: %w", program, err)
	}
	u.User, u.Path = url.UserPassword(clickHouseUser, password), "/"
	return u.String(), nil
}

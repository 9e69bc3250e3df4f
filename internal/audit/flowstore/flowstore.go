// Package flowstore parses the address of a flow store and opens the store, for programs that work with every backend. It is the
// only package that imports all backends.
package flowstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/clickhouse"
	"github.com/acp-io/acp/internal/audit/sqlite"
)

// Reader is a flow store that is opened for reading.
type Reader interface {
	audit.Reader
	io.Closer
}

// Writer is a flow store that is opened for a collector.
type Writer interface {
	audit.Writer
	io.Closer
}

// Forms lists the forms of an address, for the help of a flag.
const Forms = "sqlite:FILE, clickhouse://USER@HOST:PORT/DATABASE or @FILE with one of these in it"

// ErrAddress means that a text is not the address of a flow store.
var ErrAddress = errors.New("not the address of a flow store")

// Address identifies a flow store.
type Address struct {
	sqlite     string // the file; empty for ClickHouse
	clickhouse clickhouse.Options
}

// Parse parses an address. If it begins with @, the rest is the name of a file that contains the address, because passwords do
// not belong on a command line. Files are read with readFile; a password in the file is read again for each connection. All
// errors wrap ErrAddress, and none contains a password.
func Parse(address string, readFile func(name string) ([]byte, error)) (Address, error) {
	file, ok := strings.CutPrefix(address, "@")
	if !ok {
		return parse(address, readFile)
	}
	read := func() (Address, error) {
		b, err := readFile(file)
		if err != nil {
			return Address{}, fmt.Errorf("%w: read it from the file: %w", ErrAddress, err)
		}
		return parse(strings.TrimSpace(string(b)), readFile)
	}
	a, err := read()
	if err == nil && !a.Embedded() && a.clickhouse.Password() != "" {
		a.clickhouse.FollowPassword(func() (string, error) {
			now, err := read()
			// A password of a different server or user must not be used here.
			if err != nil || now.Embedded() || !now.clickhouse.SameAccount(a.clickhouse) {
				return "", err
			}
			return now.clickhouse.Password(), nil
		})
	}
	return a, err
}

func parse(address string, readFile func(name string) ([]byte, error)) (Address, error) {
	kind, rest, _ := strings.Cut(address, ":")
	switch {
	case kind == "sqlite" && rest != "":
		return Address{sqlite: rest}, nil
	case kind == "clickhouse", kind == "http", kind == "https":
		o, err := clickhouse.ParseDSN(address, readFile)
		if err != nil {
			return Address{}, fmt.Errorf("%w: %w", ErrAddress, err)
		}
		return Address{clickhouse: o}, nil
	}
	return Address{}, fmt.Errorf("%w: give it as %s", ErrAddress, Forms)
}

// Embedded reports whether the store is a file on this machine, which is not suited to store every single flow of a fleet.
func (a Address) Embedded() bool { return a.sqlite != "" }

// OpenReader opens the store for reading. A missing SQLite file is not an error: queries return audit.ErrUnavailable until it
// exists. For an unreachable server OpenReader returns audit.ErrUnavailable.
func (a Address) OpenReader(ctx context.Context) (Reader, error) {
	var r Reader
	var err error
	if a.Embedded() {
		r, err = sqlite.OpenReader(ctx, a.sqlite)
	} else {
		r, err = clickhouse.OpenReader(ctx, a.clickhouse)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Open opens the store for writing and migrates its schema. It returns audit.ErrUnavailable if a server is unreachable.
func (a Address) Open(ctx context.Context) (Writer, error) {
	var w Writer
	var err error
	if a.Embedded() {
		w, err = sqlite.Open(ctx, a.sqlite)
	} else {
		w, err = clickhouse.Open(ctx, a.clickhouse)
	}
	if err != nil {
		return nil, err
	}
	return w, nil
}

// Package flowstore owns the address of a flow store: it reads it and opens the store that it names, for programs that do not
// care which one it is. It knows every backend, and nothing else does by way of it.
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

// Reader is a store that is read and never written.
type Reader interface {
	audit.Reader
	io.Closer
}

// Writer is the collector's side of a store.
type Writer interface {
	audit.Writer
	io.Closer
}

// Forms of an address, for the help of a flag.
const Forms = "sqlite:FILE, clickhouse://USER@HOST:PORT/DATABASE or @FILE with one of these in it"

// ErrAddress means that the address is of no store.
var ErrAddress = errors.New("not the address of a flow store")

// Address names a store.
type Address struct {
	sqlite     string // the file; empty: the other one
	clickhouse clickhouse.Options
}

// Parse reads an address, or the file that it names after an @: passwords do not belong on a command line. Files are read with
// the function given, and a password in them again for each connection. Its errors are ErrAddress, and none repeats a password.
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
		a.clickhouse.Follow(func() (string, error) {
			now, err := read()
			// The password of another server or user is none of this one's business.
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

// Embedded tells a file of this machine, which is no place for every single flow of a fleet, from a server.
func (a Address) Embedded() bool { return a.sqlite != "" }

// OpenReader opens the store for reading. A file that is not there yet is no error here: its queries return
// audit.ErrUnavailable until it is. A server that is not there is audit.ErrUnavailable at once.
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

// Open opens the store for writing, and brings its schema up to date. A server that is not there is audit.ErrUnavailable.
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

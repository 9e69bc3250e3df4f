package main

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// api contains the functions of chDB's C interface (chdb.h) that are used.
type api struct {
	connect   func(argc int, argv **byte) *uintptr
	closeConn func(conn *uintptr)
	query     func(conn uintptr, query *byte, queryLen uintptr, format *byte, formatLen uintptr,
		names **byte, nameLens *uintptr, values **byte, valueLens *uintptr, count uintptr) uintptr
	destroy func(result uintptr)
	buffer  func(result uintptr) unsafe.Pointer
	length  func(result uintptr) uintptr
	message func(result uintptr) string
}

// load opens the library.
func load(path string) (*api, error) {
	lib, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", path, err)
	}
	a := &api{}
	for name, f := range map[string]any{
		"chdb_connect": &a.connect, "chdb_close_conn": &a.closeConn, "chdb_query_with_params_n": &a.query, "chdb_destroy_query_result": &a.destroy,
		"chdb_result_buffer": &a.buffer, "chdb_result_length": &a.length, "chdb_result_error": &a.message,
	} {
		symbol, err := purego.Dlsym(lib, name)
		if err != nil {
			return nil, fmt.Errorf("%s is a version that this program does not support: %w", path, err)
		}
		purego.RegisterFunc(f, symbol)
	}
	return a, nil
}

// conn is one session of the engine. Only one query runs in it at a time.
type conn struct {
	api    *api
	handle *uintptr
	// settings that the queries before have set.
	settings map[string]string
}

func (a *api) open(path string) (*conn, error) {
	args := []string{"clickhouse", "--path=" + path}
	argv := make([]*byte, len(args))
	for i, s := range args {
		argv[i] = cString(s)
	}
	h := a.connect(len(argv), &argv[0])
	runtime.KeepAlive(argv)
	if h == nil || *h == 0 {
		return nil, errors.New("the engine did not start")
	}
	return &conn{api: a, handle: h, settings: map[string]string{}}, nil
}

func (c *conn) close() { c.api.closeConn(c.handle) }

func cString(s string) *byte { return &append([]byte(s), 0)[0] }

// run returns the whole response in the format. The engine binds the parameters.
func (c *conn) run(query []byte, format string, params map[string]string) ([]byte, error) {
	var names, values []*byte
	var nameLens, valueLens []uintptr
	for k, v := range params {
		names, nameLens = append(names, cString(k)), append(nameLens, uintptr(len(k)))
		values, valueLens = append(values, cString(v)), append(valueLens, uintptr(len(v)))
	}
	query = append(query, 0)
	r := c.api.query(*c.handle, &query[0], uintptr(len(query)-1), cString(format), uintptr(len(format)),
		unsafe.SliceData(names), unsafe.SliceData(nameLens), unsafe.SliceData(values), unsafe.SliceData(valueLens), uintptr(len(names)))
	runtime.KeepAlive(query)
	runtime.KeepAlive(names)
	runtime.KeepAlive(values)
	if r == 0 {
		return nil, nil
	}
	defer c.api.destroy(r)
	if m := c.api.message(r); m != "" {
		return nil, errors.New(m)
	}
	n := c.api.length(r)
	if n == 0 {
		return nil, nil
	}
	return append([]byte(nil), unsafe.Slice((*byte)(c.api.buffer(r)), n)...), nil
}

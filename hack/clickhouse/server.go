package main

import (
	"bytes"
	"compress/gzip"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"

	"github.com/ClickHouse/ch-go/compress"
)

// server implements the part of ClickHouse's HTTP interface that its drivers use.
type server struct {
	user, password string
	// idle sessions of the engine; taking one is waiting for one.
	idle chan *conn
}

// control contains the parameters of the interface itself; all others are settings of the query.
var control = map[string]bool{"query": true, "database": true, "default_format": true, "compress": true, "decompress": true, "client_protocol_version": true,
	"query_id": true, "quota_key": true, "network_compression_method": true, "network_zstd_compression_level": true, "wait_end_of_query": true}

// wrongPassword is ClickHouse's own text.
const wrongPassword = "Code: 516. DB::Exception: Authentication failed: password is incorrect, or there is no user with such name. (AUTHENTICATION_FAILED)"

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	in := r.URL.Query()
	if !s.authenticated(r) {
		fail(w, in, errors.New(wrongPassword)) //nolint:staticcheck // the text is ClickHouse's
		return
	}
	query, data, err := queryOf(r, in)
	if err != nil {
		fail(w, in, err)
		return
	}
	if len(data) > 0 {
		text, done, err := spooled(query, data)
		if err != nil {
			fail(w, in, err)
			return
		}
		defer done()
		query = text
	}
	c := <-s.idle
	defer func() { s.idle <- c }()
	answer, err := c.answer(query, in)
	if err != nil {
		fail(w, in, err)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	if err := write(w, in, answer); err != nil {
		log.Printf("answer: %v", err)
	}
}

// authenticated reports whether the request has the user and the password of the server.
func (s *server) authenticated(r *http.Request) bool {
	user, password, ok := r.BasicAuth()
	if !ok {
		user, password = r.Header.Get("X-ClickHouse-User"), r.Header.Get("X-ClickHouse-Key")
	}
	return subtle.ConstantTimeCompare([]byte(user+"\x00"+password), []byte(s.user+"\x00"+s.password)) == 1
}

// queryOf returns the query and its data. When the query is not a parameter, the body is the query, and there are no data.
func queryOf(r *http.Request, in url.Values) (query, data []byte, err error) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(body)
		if err != nil {
			return nil, nil, fmt.Errorf("read the request: %w", err)
		}
		body = z
	}
	if in.Get("decompress") == "1" {
		body = compress.NewReader(body)
	}
	var b bytes.Buffer
	// The reader of compressed blocks wraps the error at the end of the data.
	if _, err := b.ReadFrom(body); err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, fmt.Errorf("read the request: %w", err)
	}
	if q := in.Get("query"); q != "" {
		return []byte(q), b.Bytes(), nil
	}
	return b.Bytes(), nil, nil
}

// spooled writes data to a file that the engine reads, because within a query binary data end at the first semicolon.
func spooled(query, data []byte) (text []byte, done func(), err error) {
	m := insertFormat.FindSubmatch(query)
	if m == nil {
		return nil, nil, errors.New("data can come only with INSERT ... FORMAT")
	}
	f, err := os.CreateTemp("", "acp-clickhouse-insert-")
	if err != nil {
		return nil, nil, fmt.Errorf("keep the data of an insert: %w", err)
	}
	done = func() { _ = os.Remove(f.Name()) } // the system clears what is left
	if _, err := f.Write(data); err != nil {
		done()
		return nil, nil, errors.Join(fmt.Errorf("keep the data of an insert: %w", err), f.Close())
	}
	return fmt.Appendf(nil, "%s FROM INFILE %s COMPRESSION 'none' FORMAT %s", m[1], literal(f.Name()), m[2]), done, f.Close()
}

var insertFormat = regexp.MustCompile(`(?is)^(.*)\sFORMAT\s+(\w+)\s*$`)

// answer runs the query with the parameters of the request.
func (c *conn) answer(query []byte, in url.Values) ([]byte, error) {
	settings, params := map[string]string{}, map[string]string{}
	for k, v := range in {
		if name, ok := strings.CutPrefix(k, "param_"); ok {
			params[name] = v[0]
		} else if !control[k] {
			settings[k] = v[0]
		}
	}
	if err := c.set(settings); err != nil {
		return nil, err
	}
	if db := in.Get("database"); db != "" {
		if _, err := c.run([]byte("USE "+identifier(db)), "Native", nil); err != nil {
			return nil, err
		}
	}
	if string(query) == hello && in.Get("client_protocol_version") != "" {
		version, err := c.run([]byte("SELECT version()"), "TSVRaw", nil)
		if err != nil {
			return nil, err
		}
		return helloBlock(strings.TrimSpace(string(version))), nil
	}
	return c.run(query, "Native", params)
}

// set applies these settings to the session and resets all others.
func (c *conn) set(settings map[string]string) error {
	change := func(k, v string) error {
		if !settingName.MatchString(k) {
			return fmt.Errorf("Code: 115. DB::Exception: Unknown setting %q. (UNKNOWN_SETTING)", k) //nolint:staticcheck // as the server says it
		}
		_, err := c.run([]byte("SET "+k+" = "+v), "Native", nil)
		return err
	}
	for k := range c.settings {
		if _, again := settings[k]; !again {
			if err := change(k, "DEFAULT"); err != nil {
				return err
			}
			delete(c.settings, k)
		}
	}
	for k, v := range settings {
		if was, ok := c.settings[k]; ok && was == v {
			continue
		}
		if err := change(k, literal(v)); err != nil {
			return err
		}
		c.settings[k] = v
	}
	return nil
}

var settingName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

func literal(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}

func identifier(s string) string {
	return "`" + strings.NewReplacer(`\`, `\\`, "`", "\\`").Replace(s) + "`"
}

// maxBlock is the maximum size of one compressed block.
const maxBlock = 1 << 20

func write(w io.Writer, in url.Values, answer []byte) error {
	if in.Get("compress") != "1" {
		_, err := w.Write(answer)
		return err
	}
	z := compress.NewWriter(compress.LevelZero, compress.LZ4)
	for len(answer) > 0 {
		n := min(len(answer), maxBlock)
		if err := z.Compress(answer[:n]); err != nil {
			return err
		}
		if _, err := w.Write(z.Data); err != nil {
			return err
		}
		answer = answer[n:]
	}
	return nil
}

var exceptionCode = regexp.MustCompile(`Code: (\d+)\.`)

func fail(w http.ResponseWriter, in url.Values, err error) {
	status := http.StatusBadRequest
	if m := exceptionCode.FindStringSubmatch(err.Error()); m != nil {
		w.Header().Set("X-ClickHouse-Exception-Code", m[1])
		status = http.StatusInternalServerError
		if m[1] == "516" {
			status = http.StatusForbidden
		}
	}
	w.WriteHeader(status)
	if err := write(w, in, []byte(err.Error())); err != nil {
		log.Printf("answer: %v", err)
	}
}

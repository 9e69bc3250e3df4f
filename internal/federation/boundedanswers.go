package federation

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
)

const (
	// maxAnswer is the largest number of bytes, after decompression, of one answer of a member's API server. The largest honest answers are lists without
	// pages, of the metadata of the pods with a label: 64 MiB are about 30,000 pods.
	maxAnswer = 64 << 20
	// maxPage is the same for the clients that watch a kind in a member. A member with many kinds can make the adapter hold a page and a probe of each at the
	// same time, and decoded they take a multiple. A page is read again with fewer objects if it is larger, so that the limit has to be sufficient for one
	// object, of which etcd stores at most 1.5 MiB.
	maxPage = 8 << 20
)

var (
	// errAnswerTooLarge means that an answer of a member, or an event of a watch, has more bytes than are read of it.
	errAnswerTooLarge = errors.New("the answer of the API server is too large")
	// errRedirected means that a member answered that the request has to be sent to another address.
	errRedirected = errors.New("the API server redirects the request to another address, which is not followed")
)

// boundedAnswers limits the answers of a member's API server, which may be compromised: without a limit, one endless answer would take all memory, and so
// delay the revocations of every other member. The answer to a watch may have any length, but not one event of it.
//
// An answer that redirects becomes an error, because http.Client would repeat the request, with its method and body, at any address of the host's network.
// API servers redirect nothing that ACP requests.
type boundedAnswers struct {
	next  http.RoundTripper
	limit int64 // bytes
}

// RoundTrip implements http.RoundTripper.
func (b boundedAnswers) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := b.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode >= 300 && res.StatusCode < 400 && res.Header.Get("Location") != "" {
		_ = res.Body.Close() // nothing depends on the answer
		return nil, fmt.Errorf("%w (status %d)", errRedirected, res.StatusCode)
	}
	if isWatch(req) && isEvents(res) {
		res.Body = &boundedEvents{ReadCloser: res.Body, limit: b.limit}
	} else {
		res.Body = &boundedBody{ReadCloser: res.Body, limit: b.limit, left: b.limit}
	}
	return res, nil
}

// WrappedRoundTripper returns what the requests are sent with, of which client-go reads the settings.
func (b boundedAnswers) WrappedRoundTripper() http.RoundTripper { return b.next }

// isWatch reports whether a request asks for a watch, as client-go does. Only the request is considered, because the member writes the answer.
func isWatch(req *http.Request) bool {
	watch := req.URL.Query().Get("watch")
	return req.Method == http.MethodGet && (watch == "true" || watch == "1")
}

// isEvents reports whether client-go reads the answer to a watch event by event. It reads all others as a whole. It reads events in other formats than
// JSON, too, but ACP requests none, and the end of an event is not found in them: a watch in another format ends when all events together are too large.
func isEvents(res *http.Response) bool {
	format, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	return err == nil && format == "application/json" && res.StatusCode == http.StatusOK
}

// boundedBody is a body of which an error is read in place of what exceeds the limit.
type boundedBody struct {
	io.ReadCloser
	limit, left int64
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, tooLarge(b.limit)
	}
	if int64(len(p)) > b.left+1 { // one byte more shows whether there is more
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n - 1, tooLarge(b.limit)
	}
	return n, err
}

// boundedEvents is a sequence of JSON values of which an error is read when a value exceeds the limit. client-go compares the size of an event with a limit
// only when it has read the event.
type boundedEvents struct {
	io.ReadCloser
	limit int64
	// size is the number of bytes since the last value ended.
	size int64
	// depth is the number of objects and arrays that have begun and not ended.
	depth           int
	inText, escaped bool
}

// Read implements io.Reader.
func (b *boundedEvents) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	for i, c := range p[:n] {
		b.add(c)
		if b.size > b.limit {
			return i, tooLarge(b.limit)
		}
	}
	return n, err
}

// add counts a byte. In what is not JSON, the end of a value may be found wrongly, but the reader fails there.
func (b *boundedEvents) add(c byte) {
	b.size++
	switch {
	case b.escaped:
		b.escaped = false
	case b.inText:
		b.escaped, b.inText = c == '\\', c != '"'
	case c == '"':
		b.inText = true
	case c == '{' || c == '[':
		b.depth++
	case c == '}' || c == ']':
		if b.depth--; b.depth == 0 {
			b.size = 0
		}
	}
}

func tooLarge(limit int64) error {
	return fmt.Errorf("%w: it has more than %d bytes", errAnswerTooLarge, limit)
}

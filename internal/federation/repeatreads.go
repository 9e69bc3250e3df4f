package federation

import (
	"io"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"github.com/acp-io/acp/internal/backoff"
)

const (
	// readAttempts is the number of requests of one read that an API server may answer with an error of its own.
	readAttempts = 5
	// readRetryDelay is the time between two of them.
	readRetryDelay = 100 * time.Millisecond
	// readRetryTime is the time after the first of them in which another one may begin: the read of an API server that takes long to fail must fail, too.
	readRetryTime = time.Second
	// maxDrained is the number of bytes of an answer that are read so that its connection can be used again.
	maxDrained = 64 << 10
)

// repeatReads repeats reads that the API server of a member answers with an error of its own. A failed read changes the status of every resource of the
// member, and the next successful read changes it back: an API server that fails sometimes would take the time of the host's API server that the
// other members need, and its member would be lost or quarantined every few seconds.
//
// Watches are not repeated, because their callers do so.
type repeatReads struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (r repeatReads) RoundTrip(req *http.Request) (*http.Response, error) {
	machine := clock.RealClock{}
	began := machine.Now()
	for attempt := 1; ; attempt++ {
		res, err := r.next.RoundTrip(req)
		if err != nil || attempt == readAttempts || !isRepeated(req, res) || machine.Since(began)+readRetryDelay > readRetryTime ||
			!backoff.Pause(req.Context(), machine, readRetryDelay) {
			return res, err
		}
		// Only whether the connection can be used again depends on these.
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxDrained))
		_ = res.Body.Close()
	}
}

// WrappedRoundTripper returns what the requests are sent with, of which client-go reads the settings.
func (r repeatReads) WrappedRoundTripper() http.RoundTripper { return r.next }

// isRepeated reports whether a request only reads and got an error that the next one may not get. Requests that the API server asks to repeat later are
// repeated by client-go.
func isRepeated(req *http.Request, res *http.Response) bool {
	switch {
	case req.Method != http.MethodGet || isWatch(req):
		return false
	case res.StatusCode < http.StatusInternalServerError || res.StatusCode == http.StatusNotImplemented || res.StatusCode == http.StatusGatewayTimeout:
		return false
	default:
		return res.Header.Get("Retry-After") == ""
	}
}

package core

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/gin-gonic/gin/binding"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/credential"
	"github.com/acp-io/acp/internal/message"
)

const (
	// MaxBody is the maximum size of a body in bytes. Routes for catalogs and workloads have a larger one in their row.
	MaxBody = 64 << 10
	// maxDepth is the maximum nesting of a JSON body, which is more than any document of the API needs.
	maxDepth = 32
	// bodyTimeout is the time limit for reading a body of up to MaxBody bytes. slowestBody is the minimum rate of larger ones in
	// bytes per second, because slower callers would only occupy connections.
	bodyTimeout = 10 * time.Second
	slowestBody = 256 << 10
)

func init() {
	// A field with a typing error would otherwise be ignored, and "durationSecond" would ask for access forever. Gin
	// has no other place for this.
	binding.EnableDecoderDisallowUnknownFields = true
}

// body reads a request's body, bounded in size and time, and refuses ambiguous JSON before it is decoded. It runs after guard, so
// that only bodies of callers who may use the route are read.
func (s *Server) body(c *gin.Context) {
	if c.Request.Body == nil || c.Request.Body == http.NoBody {
		return
	}
	limit := int64(MaxBody)
	if r, ok := s.routeOf(c); ok && r.Body != 0 {
		limit = r.Body
	}
	size := c.Request.ContentLength
	if size > limit {
		s.fail(c, &http.MaxBytesError{Limit: limit})
		return
	}
	if size < 0 { // chunked: as large as the route allows
		size = limit
	}
	if size <= MaxBody {
		s.readBody(c, limit)
		return
	}
	who := ""
	if a := caller(c); a != nil {
		who = "person " + a.ID
	} else {
		who = s.ClientAddress(c)
	}
	if !s.chargeOrFail(c, budgetLargeBodies, who) {
		return
	}
	done, ok := s.largeBodies.reserve(c.Request.Context(), who, size)
	if !ok {
		s.fail(c, s.limited(c, budgetLargeBodies))
		return
	}
	done = sync.OnceFunc(done)
	defer done()
	c.Set(keyBodyPlace, done)
	if s.readBody(c, limit); !c.IsAborted() {
		c.Next()
	}
}

// acceptsMedia reports whether the body of a request has a media type of its route.
func (s *Server) acceptsMedia(c *gin.Context) bool {
	kind, _, err := mime.ParseMediaType(c.ContentType())
	r, _ := s.routeOf(c)
	return err == nil && (kind == "application/json" || r.Media != "" && kind == r.Media)
}

func (s *Server) readBody(c *gin.Context, limit int64) {
	allowed := bodyTimeout + time.Duration(limit/slowestBody)*time.Second
	// A writer without deadlines is a test's.
	if err := http.NewResponseController(c.Writer).SetReadDeadline(time.Now().Add(allowed)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		s.fail(c, err)
		return
	}
	data, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, limit))
	if err != nil {
		var tooLarge *http.MaxBytesError
		if !errors.As(err, &tooLarge) {
			err = NewProblem(http.StatusBadRequest, "invalid", message.CallBodyMissing())
		}
		s.fail(c, err)
		return
	}
	if len(data) > 0 {
		if !s.acceptsMedia(c) {
			s.fail(c, NewProblem(http.StatusUnsupportedMediaType, "invalid", message.CallBodyNotDeclaredJSON()))
			return
		}
		if r, _ := s.routeOf(c); !r.Raw {
			if err := CheckJSON(data); err != nil {
				s.fail(c, err)
				return
			}
		}
	}
	c.Request.Body = io.NopCloser(bytes.NewReader(data))
}

// CheckJSON accepts a single JSON value of limited depth without duplicate keys, which decoders interpret differently. Keys that
// differ only in case are duplicates, because Go's decoder accepts either.
func CheckJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := checkValue(d, 0); err != nil {
		var p *Problem
		if errors.As(err, &p) {
			return err
		}
		return NewProblem(http.StatusBadRequest, "invalid", message.CallBodyNotJSON())
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return NewProblem(http.StatusBadRequest, "invalid", message.CallBodyTrailing())
	}
	return nil
}

func checkValue(d *json.Decoder, depth int) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	open, ok := t.(json.Delim)
	if !ok {
		return nil
	}
	if depth == maxDepth {
		return NewProblem(http.StatusBadRequest, "invalid", message.CallBodyTooDeep())
	}
	keys := map[string]bool{}
	for d.More() {
		if open == '{' {
			k, err := d.Token()
			if err != nil {
				return err
			}
			key := fmt.Sprint(k)
			folded := strings.ToLower(strings.ToUpper(key))
			if keys[folded] {
				return &Problem{Status: http.StatusBadRequest, Code: "invalid", Message: message.CallBodyFieldTwice(),
					Fields: []approval.Field{{Path: credential.Printable(key, 100), Code: "duplicate", Message: message.FieldTwice()}}}
			}
			keys[folded] = true
		}
		if err := checkValue(d, depth+1); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

package core

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/acp-io/acp/internal/idempotency"
	"github.com/acp-io/acp/internal/message"
)

// finishTimeout is the time limit for storing a response after the caller has disconnected.
const finishTimeout = 5 * time.Second

// executeOnce executes a call with an Idempotency-Key at most once, on routes that require it in their row. Other routes store the key in
// the objects that they create.
func (s *Server) executeOnce(c *gin.Context) {
	key := c.GetHeader("Idempotency-Key")
	if r, _ := s.routeOf(c); key == "" || caller(c) == nil || !r.Once {
		return
	}
	if _, err := IdempotencyKey(&key); err != nil {
		s.fail(c, err)
		return
	}
	body, err := io.ReadAll(c.Request.Body) // in memory already; see body
	if err != nil {
		s.fail(c, err)
		return
	}
	c.Request.Body = io.NopCloser(bytes.NewReader(body))
	sum := sha256.Sum256([]byte(c.Request.Method + " " + c.Request.URL.RequestURI() + "\n" + string(body)))
	call := idempotency.Call{Person: caller(c).ID, Key: key, Digest: hex.EncodeToString(sum[:]), At: s.Now().Truncate(time.Microsecond)}
	answer, err := s.Once.Begin(c.Request.Context(), call)
	switch {
	case errors.Is(err, idempotency.ErrKeyReused):
		s.fail(c, NewProblem(http.StatusConflict, "conflict", message.CallIdempotencyKeyOfAnother()))
		return
	case errors.Is(err, idempotency.ErrInProgress):
		c.Header("Retry-After", "1")
		s.fail(c, NewProblem(http.StatusConflict, "conflict", message.CallIdempotencyKeyUnderWay()))
		return
	case err != nil:
		s.fail(c, err)
		return
	case answer != nil:
		c.Data(answer.Status, answer.MediaType, answer.Body)
		c.Abort()
		return
	}
	w := &copyWriter{ResponseWriter: c.Writer}
	c.Writer = w
	finished := false
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request.Context()), finishTimeout)
		defer cancel()
		if finished && w.Status() < http.StatusMultipleChoices && w.copied.Len() <= idempotency.MaxAnswer {
			err = s.Once.Finish(ctx, call, idempotency.Answer{Status: w.Status(), MediaType: w.Header().Get("Content-Type"), Body: w.copied.Bytes()})
		} else {
			err = s.Once.Release(ctx, call)
		}
		if err != nil {
			s.Log.Warn("the outcome of a call could not be stored; its idempotency key is free after a minute", "error", err)
		}
	}()
	c.Next()
	finished = true
}

// copyWriter is a response writer that copies the response.
type copyWriter struct {
	gin.ResponseWriter
	copied bytes.Buffer
}

func (w *copyWriter) Write(data []byte) (int, error) {
	w.copied.Write(data)
	return w.ResponseWriter.Write(data)
}

func (w *copyWriter) WriteString(text string) (int, error) { return w.Write([]byte(text)) }

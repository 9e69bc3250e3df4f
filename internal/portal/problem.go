package portal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/credential"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/notify"
	"github.com/acp-io/acp/internal/portal/openapi"
)

// problem is an error that has its answer already.
type problem struct {
	status       int
	code, detail string
	fields       []approval.Field
}

func (p *problem) Error() string { return p.code + ": " + p.detail }

func problemf(status int, code, format string, args ...any) error {
	return &problem{status: status, code: code, detail: fmt.Sprintf(format, args...)}
}

var statusOf = map[approval.Code]int{
	approval.CodeForbidden: http.StatusForbidden, approval.CodeNotFound: http.StatusNotFound, approval.CodeInvalid: http.StatusUnprocessableEntity,
	approval.CodeConflict: http.StatusConflict, approval.CodeStale: http.StatusConflict, approval.CodeDuplicate: http.StatusConflict,
	approval.CodeNoApprover: http.StatusUnprocessableEntity, approval.CodeUnavailable: http.StatusServiceUnavailable,
	approval.CodeStoreUnavailable: http.StatusServiceUnavailable, approval.CodeOutcomeUnknown: http.StatusInternalServerError, approval.CodeEvidence: http.StatusConflict, approval.CodeGuard: http.StatusConflict,
}

// toProblem is the one mapper from errors to answers. What it does not know is internal and says nothing of itself.
func toProblem(err error) openapi.Problem {
	var p *problem
	var ours *approval.Error
	var tooLarge *http.MaxBytesError
	var wrong *credential.InvalidError
	var choice *notify.InvalidError
	out := openapi.Problem{Type: "about:blank", Status: http.StatusInternalServerError, Code: "internal"}
	var fields []approval.Field
	switch {
	case errors.As(err, &tooLarge):
		out.Status, out.Code = http.StatusRequestEntityTooLarge, "too-large"
		out.Detail = new(fmt.Sprintf("The request is larger than %d KiB.", tooLarge.Limit>>10))
	case errors.As(err, &p):
		out.Status, out.Code, out.Detail, fields = p.status, p.code, &p.detail, p.fields
	case errors.As(err, &ours):
		out.Status, out.Code, out.Detail, fields = statusOf[ours.Code], string(ours.Code), &ours.Detail, ours.Fields
		if ours.Ticket != 0 {
			out.Ticket = new(approval.FormatID(ours.Ticket))
		}
	case errors.As(err, &wrong):
		out.Status, out.Code, out.Detail = http.StatusUnprocessableEntity, "invalid", &wrong.Message
		fields = []approval.Field{{Path: wrong.Field, Code: "invalid", Message: wrong.Message}}
	case errors.As(err, &choice):
		out.Status, out.Code, out.Detail = http.StatusUnprocessableEntity, "invalid", &choice.Reason
		fields = []approval.Field{{Path: choice.Field, Code: "invalid", Message: choice.Reason}}
	case errors.Is(err, credential.ErrUnknown):
		out.Status, out.Code, out.Detail = http.StatusNotFound, "not-found", new("There is no such token of yours.")
	case errors.Is(err, credential.ErrTooMany):
		out.Status, out.Code, out.Detail = http.StatusConflict, "conflict", new("You have as many tokens as one can have: revoke some first.")
	case errors.Is(err, credential.ErrRepeated):
		out.Status, out.Code, out.Detail = http.StatusConflict, "conflict", new("A token was made with this Idempotency-Key, and its secret was shown then: look among your tokens.")
	case errors.Is(err, audit.ErrUnavailable):
		out.Status, out.Code, out.Detail = http.StatusServiceUnavailable, "unavailable", new("The flow store cannot be read now; try again in a moment.")
	case errors.Is(err, database.ErrOutcomeUnknown):
		out.Code, out.Detail = string(approval.CodeOutcomeUnknown), new(database.Detail(err))
	case errors.Is(err, database.ErrUnavailable):
		out.Status, out.Code, out.Detail = http.StatusServiceUnavailable, "store-unavailable", new(database.Detail(err))
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		out.Status, out.Code, out.Detail = http.StatusServiceUnavailable, "unavailable", new("It took too long; try again in a moment.")
	default:
		out.Detail = new("Something went wrong here. Look what is there before you try again, and report it with the request id.")
	}
	out.Title = http.StatusText(out.Status)
	if len(fields) > 0 {
		list := make([]struct {
			Code    *string `json:"code,omitempty"`
			Field   string  `json:"field"`
			Message string  `json:"message"`
		}, len(fields))
		for i, f := range fields {
			list[i].Field, list[i].Message, list[i].Code = f.Path, f.Message, optional(f.Code)
		}
		out.Fields = &list
	}
	return out
}

// problemOf an error of this request.
func (s *Server) problemOf(c *gin.Context, err error) openapi.Problem {
	p := toProblem(err)
	p.RequestId = optional(c.GetString(keyRequestID))
	return p
}

// fail answers with a problem and ends the request. Only what is our fault is logged as an error.
func (s *Server) fail(c *gin.Context, err error) {
	p := s.problemOf(c, err)
	switch {
	case p.Status < http.StatusInternalServerError:
	case errors.Is(err, context.Canceled) && c.Request.Context().Err() != nil:
		// The browser went to another page before the answer was there; nothing is wrong.
		s.Log.Debug("the caller has gone", "requestId", c.GetString(keyRequestID), "path", c.FullPath())
	default:
		s.Log.Error("request failed", "requestId", c.GetString(keyRequestID), "path", c.FullPath(), "error", err)
	}
	c.Abort()
	body, err := json.Marshal(p)
	if err != nil {
		s.Log.Error("a problem could not be encoded", "error", err)
		c.Status(http.StatusInternalServerError)
		return
	}
	c.Header("Cache-Control", "no-store")
	c.Data(p.Status, "application/problem+json", body)
}

// badRequest is for input that could not be decoded.
func badRequest(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return err
	}
	if name, ok := unknownField(err); ok {
		return &problem{status: http.StatusBadRequest, code: "invalid", detail: "The body has a field that the API does not know.",
			fields: []approval.Field{{Path: name, Code: "unknown", Message: "is not known"}}}
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return &problem{status: http.StatusBadRequest, code: "invalid", detail: "A field has the wrong type.",
			fields: []approval.Field{{Path: wrong.Field, Code: "type", Message: "must be a " + wrong.Type.String()}}}
	}
	return problemf(http.StatusBadRequest, "invalid", "The request is malformed: check its parameters, and that its body is JSON of the documented form.")
}

// unknownField reads the decoder's error, which has no type of its own (golang.org/issue/30715).
func unknownField(err error) (string, bool) {
	for ; err != nil; err = errors.Unwrap(err) {
		if quoted, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			name, err := strconv.Unquote(quoted)
			return credential.Printable(name, 100), err == nil
		}
	}
	return "", false
}

// responseFailed is called when the answer could not be written; usually because the caller has gone.
func (s *Server) responseFailed(c *gin.Context, err error) {
	s.Log.Debug("response not written", "requestId", c.GetString(keyRequestID), "error", err)
	c.Abort()
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

package core

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"github.com/acp-io/acp/internal/accesspackage"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/credential"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/notify"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/savedview"
)

// Problem is an error with its HTTP response.
type Problem struct {
	Status  int
	Code    string
	Message message.Message
	Fields  []approval.Field
}

func (p *Problem) Error() string { return p.Code + ": " + p.Message.Text }

// NewProblem returns an error with its HTTP status, its code and its message.
func NewProblem(status int, code string, m message.Message) error {
	return &Problem{Status: status, Code: code, Message: m}
}

var statusOf = map[approval.Code]int{
	approval.CodeForbidden:        http.StatusForbidden,
	approval.CodeLoginTooOld:      http.StatusForbidden,
	approval.CodeNotFound:         http.StatusNotFound,
	approval.CodeInvalid:          http.StatusUnprocessableEntity,
	approval.CodeConflict:         http.StatusConflict,
	approval.CodeStale:            http.StatusConflict,
	approval.CodeDuplicate:        http.StatusConflict,
	approval.CodeNoApprover:       http.StatusUnprocessableEntity,
	approval.CodeUnavailable:      http.StatusServiceUnavailable,
	approval.CodeStoreUnavailable: http.StatusServiceUnavailable,
	approval.CodeOutcomeUnknown:   http.StatusInternalServerError,
	approval.CodeEvidence:         http.StatusConflict,
	approval.CodeGuard:            http.StatusConflict,
}

// ToProblem maps errors to problems. It is the only place that does. Unknown errors are internal, and their texts are not shown.
func ToProblem(err error) openapi.Problem {
	var p *Problem
	var ours *approval.Error
	var tooLarge *http.MaxBytesError
	var wrong *credential.InvalidError
	var choice *notify.InvalidError
	var view *savedview.InvalidError
	out := openapi.Problem{Type: "about:blank", Status: http.StatusInternalServerError, Code: "internal"}
	var detail message.Message
	var fields []approval.Field
	switch {
	case errors.As(err, &tooLarge):
		out.Status, out.Code, detail = http.StatusRequestEntityTooLarge, "too-large", message.CallTooLarge(int(tooLarge.Limit>>10))
	case errors.As(err, &p):
		out.Status, out.Code, detail, fields = p.Status, p.Code, p.Message, p.Fields
	case errors.As(err, &ours):
		out.Status, out.Code, detail, fields = statusOf[ours.Code], string(ours.Code), ours.Message, ours.Fields
		if ours.Ticket != 0 {
			out.Ticket = new(approval.FormatID(ours.Ticket))
		}
	case errors.As(err, &wrong):
		out.Status, out.Code, detail = http.StatusUnprocessableEntity, "invalid", wrong.Message
		fields = []approval.Field{{Path: wrong.Field, Code: "invalid", Message: wrong.Message}}
	case errors.As(err, &choice):
		out.Status, out.Code, detail = http.StatusUnprocessableEntity, "invalid", choice.Reason
		fields = []approval.Field{{Path: choice.Field, Code: "invalid", Message: choice.Reason}}
	case errors.As(err, &view):
		out.Status, out.Code, detail = http.StatusUnprocessableEntity, "invalid", view.Reason
		fields = []approval.Field{{Path: view.Field, Code: "invalid", Message: view.Reason}}
	case errors.Is(err, accesspackage.ErrUnknown):
		out.Status, out.Code, detail = http.StatusNotFound, "not-found", message.AccessPackageNotFound()
	case errors.Is(err, savedview.ErrUnknown):
		out.Status, out.Code, detail = http.StatusNotFound, "not-found", message.SavedViewNotFound()
	case errors.Is(err, savedview.ErrNotShared):
		out.Status, out.Code, detail = http.StatusNotFound, "not-found", message.SavedViewNotShared()
	case errors.Is(err, savedview.ErrTooMany):
		out.Status, out.Code, detail = http.StatusConflict, "conflict", message.SavedViewTooMany(savedview.MaxViews)
	case errors.Is(err, credential.ErrUnknown):
		out.Status, out.Code, detail = http.StatusNotFound, "not-found", message.TokenNotFound()
	case errors.Is(err, credential.ErrTooMany):
		out.Status, out.Code, detail = http.StatusConflict, "conflict", message.TokenTooMany()
	case errors.Is(err, credential.ErrRepeated):
		out.Status, out.Code, detail = http.StatusConflict, "conflict", message.TokenMadeAlready()
	case errors.Is(err, audit.ErrUnavailable):
		out.Status, out.Code, detail = http.StatusServiceUnavailable, "unavailable", message.FlowsUnavailable()
	case errors.Is(err, database.ErrOutcomeUnknown):
		out.Code, detail = string(approval.CodeOutcomeUnknown), database.Detail(err)
	case errors.Is(err, database.ErrUnavailable):
		out.Status, out.Code, detail = http.StatusServiceUnavailable, "store-unavailable", database.Detail(err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		out.Status, out.Code, detail = http.StatusServiceUnavailable, "unavailable", message.CallTimeout()
	default:
		detail = message.CallInternal()
	}
	out.Title, out.Detail, out.Message = http.StatusText(out.Status), &detail.Text, detail
	if len(fields) > 0 {
		list := make([]openapi.FieldProblem, len(fields))
		for i, f := range fields {
			list[i] = openapi.FieldProblem{Field: f.Path, Message: f.Message, Code: Optional(f.Code)}
		}
		out.Fields = &list
	}
	return out
}

// ProblemOf returns the problem of an error of this request.
func (s *Server) ProblemOf(c *gin.Context, err error) openapi.Problem {
	p := ToProblem(err)
	p.RequestId = Optional(c.GetString(keyRequestID))
	return p
}

// fail writes a problem and ends the request. Only internal failures are logged as errors.
func (s *Server) fail(c *gin.Context, err error) {
	p := s.ProblemOf(c, err)
	switch {
	case p.Status < http.StatusInternalServerError:
	case errors.Is(err, context.Canceled) && c.Request.Context().Err() != nil:
		// The caller disconnected before the response was ready, which is not an error.
		s.Log.Debug("the caller closed the connection", "requestId", c.GetString(keyRequestID), "path", c.FullPath())
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

// badRequest returns the problem of input that cannot be decoded.
func badRequest(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return err
	}
	if name, ok := unknownField(err); ok {
		return &Problem{Status: http.StatusBadRequest, Code: "invalid", Message: message.CallBodyFieldUnknown(),
			Fields: []approval.Field{{Path: name, Code: "unknown", Message: message.FieldUnknown()}}}
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return &Problem{Status: http.StatusBadRequest, Code: "invalid", Message: message.CallFieldType(),
			Fields: []approval.Field{{Path: wrong.Field, Code: "type", Message: message.FieldType(wrong.Type.String())}}}
	}
	return NewProblem(http.StatusBadRequest, "invalid", message.CallMalformed())
}

// unknownField returns the field in the decoder's error about an unknown field, which has no type (golang.org/issue/30715).
func unknownField(err error) (string, bool) {
	for ; err != nil; err = errors.Unwrap(err) {
		if quoted, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			name, err := strconv.Unquote(quoted)
			return credential.Printable(name, 100), err == nil
		}
	}
	return "", false
}

// responseFailed is called if a response could not be written, usually because the caller has disconnected.
func (s *Server) responseFailed(c *gin.Context, err error) {
	s.Log.Debug("response not written", "requestId", c.GetString(keyRequestID), "error", err)
	c.Abort()
}

// InvalidParameter returns the problem of a query parameter with an invalid value.
func InvalidParameter(name string, m message.Message) error {
	return &Problem{Status: http.StatusBadRequest, Code: "invalid", Message: message.CallParameterInvalid(),
		Fields: []approval.Field{{Path: name, Code: "invalid", Message: m}}}
}

// Forbidden returns the error of a caller who may not do what they requested.
func Forbidden(m message.Message) error {
	return &approval.Error{Code: approval.CodeForbidden, Message: m}
}

// InvalidField returns the problem of a field with an invalid form.
func InvalidField(path string, m message.Message) error {
	return &Problem{Status: http.StatusUnprocessableEntity, Code: "invalid", Message: message.CallFieldsInvalid(),
		Fields: []approval.Field{{Path: path, Code: "invalid", Message: m}}}
}

// CheckTextLength returns a problem if a text has more than approval.MaxText characters.
func CheckTextLength(field, text string) error {
	if utf8.RuneCountInString(text) <= approval.MaxText {
		return nil
	}
	return &Problem{Status: http.StatusUnprocessableEntity, Code: "invalid", Message: message.CallFieldTooLong(field),
		Fields: []approval.Field{{Path: field, Code: "length", Message: message.FieldMaxCharacters(approval.MaxText)}}}
}

package core

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
)

func TestErrorsContainNothingInternal(t *testing.T) {
	p := ToProblem(errors.New("sql: secret table"))
	if p.Status != 500 || p.Code != "internal" || strings.Contains(*p.Detail, "secret") {
		t.Errorf("%+v", p)
	}
}

func TestACallerWhoHasGoneIsNoError(t *testing.T) {
	for _, tc := range []struct {
		reason string
		gone   bool
		err    error
		want   bool
	}{
		{"the browser went to another page", true, fmt.Errorf("read: %w", context.Canceled), false},
		{"something of ours was cancelled", false, fmt.Errorf("read: %w", context.Canceled), true},
		{"the store broke, whoever waits for it", true, errors.New("disk I/O error"), true},
	} {
		var logs bytes.Buffer
		s := &Server{Config: Config{Log: slog.New(slog.NewTextHandler(&logs, nil))}}
		ctx, cancel := context.WithCancel(t.Context())
		if tc.gone {
			cancel()
		}
		c := gin.CreateTestContextOnly(httptest.NewRecorder(), gin.New())
		c.Request = httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/me", nil)
		s.fail(c, tc.err)
		if got := strings.Contains(logs.String(), "level=ERROR"); got != tc.want {
			t.Errorf("%s: logged as an error: %t, want %t", tc.reason, got, tc.want)
		}
		cancel()
	}
}

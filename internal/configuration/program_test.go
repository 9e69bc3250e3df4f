package configuration_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/acp-io/acp/internal/configuration"
)

func TestRun(t *testing.T) {
	for name, tc := range map[string]struct {
		parse, serve   error
		code           int
		stdout, stderr string
	}{
		"served":       {nil, nil, configuration.ExitOK, "parsed x, served x", ""},
		"answered":     {fmt.Errorf("help: %w", configuration.ErrAnswered), nil, configuration.ExitOK, "parsed x", ""},
		"wrong flag":   {errors.New("unknown flag --x"), nil, configuration.ExitUsage, "parsed x", "acp-test: unknown flag --x; see --help\n"},
		"cannot serve": {nil, errors.New("port in use"), configuration.ExitError, "parsed x, served x", "acp-test: port in use\n"},
	} {
		t.Run(name, func(t *testing.T) {
			p := configuration.Program[string]{
				Name: "acp-test",
				Parse: func(args []string, stdout io.Writer) (string, error) {
					_, _ = fmt.Fprintf(stdout, "parsed %s", args[0])
					return args[0], tc.parse
				},
				Serve: func(_ context.Context, o string, stdout, _ io.Writer) error {
					_, _ = fmt.Fprintf(stdout, ", served %s", o)
					return tc.serve
				},
			}
			var stdout, stderr bytes.Buffer
			code := p.Run(t.Context(), []string{"x"}, &stdout, &stderr)
			if code != tc.code || stdout.String() != tc.stdout || stderr.String() != tc.stderr {
				t.Errorf("code %d, %q, %q", code, &stdout, &stderr)
			}
		})
	}
}

// SIGTERM, which the kubelet sends, ends the context.
func TestMainEndsAtSIGTERM(t *testing.T) {
	p := configuration.Program[int]{
		Name:  "acp-test",
		Parse: func(args []string, _ io.Writer) (int, error) { return len(args), nil },
		Serve: func(ctx context.Context, o int, _, _ io.Writer) error {
			if o != 2 {
				t.Errorf("%d arguments, want 2", o)
			}
			if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
				return err
			}
			<-ctx.Done()
			return nil
		},
	}
	if code := p.Main([]string{"a", "b"}); code != configuration.ExitOK {
		t.Errorf("exit code %d", code)
	}
}

func TestNewLogger(t *testing.T) {
	for format, want := range map[string]string{"text": "level=WARN msg=now a=1\n", "json": `"level":"WARN","msg":"now","a":1}` + "\n"} {
		var out bytes.Buffer
		log := configuration.NewLogger(&out, format, slog.LevelWarn)
		log.Info("not logged")
		log.Warn("now", "a", 1)
		if !strings.HasSuffix(out.String(), want) || strings.Contains(out.String(), "not logged") {
			t.Errorf("%s: %s", format, &out)
		}
	}
}

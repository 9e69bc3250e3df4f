package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/acp-io/acp/internal/audit/auditlog"
)

type tapOptions struct {
	to, tokenFile, fileSize string
	bytes                   int64
}

const tapFilePrefix = "file:"

// rotatedTapFiles is the number of rotated audit log files that are kept.
const rotatedTapFiles = 5

func (o *tapOptions) validate() error {
	_, isFile := strings.CutPrefix(o.to, tapFilePrefix)
	switch {
	case o.to == "" || o.to == "stdout":
	case isFile && len(o.to) > len(tapFilePrefix):
	case strings.HasPrefix(o.to, "http"):
		if _, err := auditlog.NewWebhook(o.to, nil, &http.Client{}); err != nil {
			return fmt.Errorf("--tap: %w", err)
		}
		return nil
	default:
		return fmt.Errorf("--tap %q: use stdout, file:PATH or the https address of a webhook", o.to)
	}
	if o.tokenFile != "" {
		return errors.New("--tap-token-file is for a webhook: give --tap its https address")
	}
	return nil
}

// open returns the writer of the audit log; nil if --tap is not given.
func (o *tapOptions) open(stdout io.Writer, log *slog.Logger, reg prometheus.Registerer) (*auditlog.Writer, error) {
	if o.to == "" {
		return nil, nil
	}
	out, err := o.output(stdout)
	if err != nil {
		return nil, fmt.Errorf("--tap: %w", err)
	}
	return auditlog.New(auditlog.Config{Output: out, Log: log, Registerer: reg})
}

func (o *tapOptions) output(stdout io.Writer) (auditlog.Output, error) {
	if o.to == "stdout" {
		return auditlog.Stream{W: stdout}, nil
	}
	if path, ok := strings.CutPrefix(o.to, tapFilePrefix); ok {
		return auditlog.NewFile(path, o.bytes, rotatedTapFiles)
	}
	if o.tokenFile == "" {
		return auditlog.NewWebhook(o.to, nil, &http.Client{})
	}
	if _, err := o.token(); err != nil { // report the error now instead of at the first line
		return nil, err
	}
	return auditlog.NewWebhook(o.to, o.token, &http.Client{})
}

func (o *tapOptions) token() (string, error) {
	b, err := os.ReadFile(o.tokenFile)
	if err != nil {
		return "", fmt.Errorf("read --tap-token-file: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

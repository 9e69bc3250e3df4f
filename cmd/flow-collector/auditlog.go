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

type auditLogOptions struct {
	to, tokenFile, fileSize string
	bytes                   int64
}

const auditLogFilePrefix = "file:"

// rotatedFiles is the number of rotated audit log files that are kept.
const rotatedFiles = 5

func (o *auditLogOptions) validate() error {
	_, isFile := strings.CutPrefix(o.to, auditLogFilePrefix)
	switch {
	case o.to == "" || o.to == "stdout":
	case isFile && len(o.to) > len(auditLogFilePrefix):
	case strings.HasPrefix(o.to, "http"):
		if _, err := auditlog.NewWebhook(o.to, nil, &http.Client{}); err != nil {
			return fmt.Errorf("--audit-log: %w", err)
		}
		return nil
	default:
		return fmt.Errorf("--audit-log %q: use stdout, file:PATH or the https address of a webhook", o.to)
	}
	if o.tokenFile != "" {
		return errors.New("--audit-log-token-file is for a webhook: give --audit-log its https address")
	}
	return nil
}

// open returns the writer of the audit log; nil if --audit-log is not given.
func (o *auditLogOptions) open(stdout io.Writer, log *slog.Logger, reg prometheus.Registerer) (*auditlog.Writer, error) {
	if o.to == "" {
		return nil, nil
	}
	out, err := o.output(stdout)
	if err != nil {
		return nil, fmt.Errorf("--audit-log: %w", err)
	}
	return auditlog.New(auditlog.Config{Output: out, Log: log, Registerer: reg})
}

func (o *auditLogOptions) output(stdout io.Writer) (auditlog.Output, error) {
	if o.to == "stdout" {
		return auditlog.Stream{W: stdout}, nil
	}
	if path, ok := strings.CutPrefix(o.to, auditLogFilePrefix); ok {
		return auditlog.NewFile(path, o.bytes, rotatedFiles)
	}
	if o.tokenFile == "" {
		return auditlog.NewWebhook(o.to, nil, &http.Client{})
	}
	if _, err := o.token(); err != nil { // report the error now instead of at the first line
		return nil, err
	}
	return auditlog.NewWebhook(o.to, o.token, &http.Client{})
}

func (o *auditLogOptions) token() (string, error) {
	b, err := os.ReadFile(o.tokenFile)
	if err != nil {
		return "", fmt.Errorf("read --audit-log-token-file: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

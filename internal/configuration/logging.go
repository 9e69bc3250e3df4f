package configuration

import (
	"errors"
	"io"
	"log/slog"
	"strings"
)

const levelFlag = "log-level"

var levels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

// Logging defines the settings of the log, which are the same for every program.
func (s *Settings) Logging(format *string, level *slog.Level, defaultFormat string) {
	f := s.Group("Logging")
	f.StringVar(format, "log-format", defaultFormat, "`format` of the log: text or json")
	s.Allow("log-format", "text", "json")
	f.Var((*levelValue)(level), levelFlag, "lowest `level` that is logged: debug, info, warn or error")
	s.Allow(levelFlag, "debug", "info", "warn", "error")
}

// NewLogger returns a logger for these settings.
func NewLogger(w io.Writer, format string, level slog.Level) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// levelValue is a level of the log as a flag.
type levelValue slog.Level

// String implements pflag.Value.
func (l *levelValue) String() string { return strings.ToLower(slog.Level(*l).String()) }

// Set implements pflag.Value.
func (l *levelValue) Set(s string) error {
	level, ok := levels[s]
	if !ok {
		return errors.New("use debug, info, warn or error")
	}
	*l = levelValue(level)
	return nil
}

// Type implements pflag.Value.
func (l *levelValue) Type() string { return "level" }

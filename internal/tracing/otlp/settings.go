// Package otlp sends the spans of a program to an OpenTelemetry collector by OTLP over HTTP. It owns the settings of tracing.
// A collector that does not answer neither delays nor fails the program: spans wait in a bounded queue, what does not fit is
// dropped and counted, and failures are logged at a bounded rate. The package must not depend on any package of ACP except
// tracing and configuration.
package otlp

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/acp-io/acp/internal/configuration"
	"github.com/acp-io/acp/internal/loopback"
)

// Settings are the settings of tracing. The zero value is off, unless the standard environment variables turn tracing on.
type Settings struct {
	Endpoint    string
	Insecure    bool
	CAFile      string
	HeadersFile string
	SampleRatio float64
	// Environ looks up an environment variable. Nil means the environment of the process.
	Environ func(string) string
}

// Define defines the settings for a program, and returns their group.
func (s *Settings) Define(c *configuration.Settings) *pflag.FlagSet {
	f := c.Group("Tracing")
	f.StringVar(
		&s.Endpoint,
		"tracing-endpoint",
		"",
		"`URL` of an OpenTelemetry collector that takes OTLP over HTTP, such as https://otel.example.com:4318; the path defaults to /v1/traces. If empty: "+
			"the variables OTEL_EXPORTER_OTLP_TRACES_ENDPOINT and OTEL_EXPORTER_OTLP_ENDPOINT, and without them there are no traces",
	)
	f.BoolVar(
		&s.Insecure,
		"tracing-insecure",
		false,
		"allow an http URL of another machine: names of tickets, resources and members, and the headers, can be read on the way",
	)
	f.StringVar(
		&s.CAFile,
		"tracing-ca-file",
		"",
		"`file` with the authorities of the collector's certificate, read again when it changes; empty: OTEL_EXPORTER_OTLP_CERTIFICATE, else the system's",
	)
	f.StringVar(
		&s.HeadersFile,
		"tracing-headers-file",
		"",
		"`file` with HTTP headers for the collector, such as Authorization: Bearer ..., one a line; read again each time",
	)
	f.Float64Var(
		&s.SampleRatio,
		"tracing-sample-ratio",
		1,
		"share of the traces that are recorded (0 to 1), decided when a request begins; 1: OTEL_TRACES_SAMPLER, else all",
	)
	return f
}

func (s *Settings) env(name string) string {
	if s.Environ != nil {
		return s.Environ(name)
	}
	return os.Getenv(name)
}

// given returns the endpoint and the setting that it comes from, for errors. Both are "" if tracing is off.
func (s *Settings) given() (endpoint, by string) {
	switch {
	case strings.EqualFold(s.env("OTEL_SDK_DISABLED"), "true") || s.env("OTEL_TRACES_EXPORTER") == "none":
		return "", ""
	case s.Endpoint != "":
		return s.Endpoint, "--tracing-endpoint"
	}
	// By the standard, the path is added to the endpoint for all signals only.
	if endpoint = s.env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"); endpoint != "" {
		return endpoint, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	}
	if endpoint = s.env("OTEL_EXPORTER_OTLP_ENDPOINT"); endpoint != "" {
		return strings.TrimSuffix(endpoint, "/") + tracesPath, "OTEL_EXPORTER_OTLP_ENDPOINT"
	}
	return "", ""
}

// On reports whether spans are recorded and sent.
func (s *Settings) On() bool {
	endpoint, _ := s.given()
	return endpoint != ""
}

// tracesPath is the standard path of OTLP over HTTP for spans.
const tracesPath = "/v1/traces"

// url returns the address that spans are sent to; nil if tracing is off.
func (s *Settings) url() (*url.URL, error) {
	endpoint, by := s.given()
	if endpoint == "" {
		return nil, nil
	}
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%s %q: give a URL such as https://otel.example.com:4318", by, endpoint)
	case u.User != nil:
		return nil, fmt.Errorf("%s has a user or password: put the header into a file and name it with --tracing-headers-file", by)
	case u.Scheme == "http" && !s.Insecure && !loopback.Is(u.Hostname()):
		return nil, fmt.Errorf("%s %q would send spans to another machine without TLS: use https, or allow it with --tracing-insecure", by, endpoint)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = tracesPath
	}
	return u, nil
}

// Validate checks the settings.
func (s *Settings) Validate() error {
	if !(s.SampleRatio >= 0 && s.SampleRatio <= 1) {
		return fmt.Errorf("--tracing-sample-ratio %s: use between 0 and 1", strconv.FormatFloat(s.SampleRatio, 'g', -1, 64))
	}
	if protocol := s.protocol(); s.On() && protocol != "" && protocol != "http/protobuf" {
		return fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL %q: ACP sends http/protobuf only; name a collector's address for that, usually with port 4318", protocol)
	}
	if !s.On() && (s.HeadersFile != "" || s.CAFile != "" || s.Insecure) && s.env("OTEL_SDK_DISABLED") == "" && s.env("OTEL_TRACES_EXPORTER") == "" {
		return errors.New("--tracing-endpoint is required with --tracing-headers-file, --tracing-ca-file and --tracing-insecure")
	}
	_, err := s.url()
	return err
}

func (s *Settings) protocol() string {
	if p := s.env("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"); p != "" {
		return p
	}
	return s.env("OTEL_EXPORTER_OTLP_PROTOCOL")
}

// authorities returns the file with the authorities of the collector's certificate; "": the system's.
func (s *Settings) authorities() string {
	for _, file := range []string{s.CAFile, s.env("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE"), s.env("OTEL_EXPORTER_OTLP_CERTIFICATE")} {
		if file != "" {
			return file
		}
	}
	return ""
}

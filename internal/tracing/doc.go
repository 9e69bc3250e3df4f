// Package tracing starts OpenTelemetry spans and carries the position in a trace across the borders of programs: with a
// ticket in the portal's database, and with an annotation of a policy in the host cluster. What is read back is untrusted:
// it is parsed strictly and bounded, and an invalid position is ignored. Tracing is off by default; then every Tracer is nil,
// and no span is made. The package must not depend on an exporter (see package otlp) or on any other package of ACP.
package tracing

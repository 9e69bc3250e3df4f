package otlp

import (
	"context"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// failing is an exporter that answers with an error.
type failing struct{ err error }

func (f *failing) ExportSpans(context.Context, []sdk.ReadOnlySpan) error { return f.err }

func (*failing) Shutdown(context.Context) error { return nil }

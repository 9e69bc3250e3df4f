module github.com/acp-io/acp/hack/acp-clickhouse

go 1.26.0

require (
	github.com/ClickHouse/ch-go v0.74.0
	github.com/ebitengine/purego v0.11.3
)

require (
	github.com/go-faster/city v1.0.1 // indirect
	github.com/go-faster/errors v0.7.1 // indirect
	github.com/klauspost/compress v1.19.1 // indirect
	github.com/pierrec/lz4/v4 v4.1.27 // indirect
)

module github.com/acp-io/acp/playground/parts/node-images

go 1.26.0

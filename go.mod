module github.com/acp-io/acp

go 1.26

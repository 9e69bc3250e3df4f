// Package message defines the texts for users independently of their language: a Message is a code with
// parameters. catalogue.json is the one source of the texts; the constructors, docs/messages.md and the module that the
// web UI renders with are generated from it. The package imports nothing of ACP.
package message

//go:generate go run ./generate

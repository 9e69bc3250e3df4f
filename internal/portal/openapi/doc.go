// Package openapi holds the types and the server interface that are generated from api/openapi.yaml. It is changed by
// changing that document, or hack/openapi/server.yaml, and generating again.
package openapi

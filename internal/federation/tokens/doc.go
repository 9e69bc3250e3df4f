// Package tokens handles the service account tokens with which KubeFed and the adapter access the members: when a token
// expires, when it has to be renewed, and how an account obtains its next token with its present one. It neither reads
// nor writes Secrets; its callers do. It may import client-go.
package tokens

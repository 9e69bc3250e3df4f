// Package tokens knows the service account tokens with which KubeFed and the adapter reach the members: when one ends, when
// it is due to be replaced, and how an account gets its next one with its present one. It reads and writes no Secrets; who
// keeps the tokens does. It may import client-go.
package tokens

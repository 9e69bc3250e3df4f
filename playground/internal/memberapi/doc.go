// Package memberapi is a light API server of member clusters: many of them in one process, each with an address, data and faults of its
// own. It serves the part of the Kubernetes API that ACP uses in a member: discovery, authentication by token, get, list with pages,
// watch, create, update, merge patch, server-side apply and delete. It merges and tracks fields with the code of the real API server.
//
// TestConformance sends the same requests to it and to a real kube-apiserver, and compares the answers. What it lacks: validation by
// schemas, admission, storage on disk, binary encodings, compression, and subresources.
package memberapi

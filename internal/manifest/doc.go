// Package manifest reads ACP's objects from files, folders, a stream or a cluster, and reports where in them something
// is wrong.
//
// Objects are validated by the schema and the CEL rules of their own CRDs, with the libraries that an API server uses,
// so an object is accepted here exactly if an API server admits it. Rules about updates (immutable fields) need the
// earlier object and are not checked. The meaning of statements is defined by internal/policy.
package manifest

// Package manifest owns how ACP's objects are read from files, folders, a stream or a cluster, and where in them
// something is wrong.
//
// Objects are judged by the schema and the CEL rules of their own CRDs, with the libraries that an API server uses, so
// what passes here is what an API server admits. Rules about updates (immutable fields) need the object before and are
// not judged. What statements mean is internal/policy's.
package manifest

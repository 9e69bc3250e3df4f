// Package printer replaces a package that controller-runtime removed. Only KubeFed's own tests import it; without a module of that
// path, `go mod tidy` of a module that uses KubeFed's API types fails.
package printer

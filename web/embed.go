// Package web owns the portal's user interface. Its only export is the built
// application; it does not depend on the server that serves it.
package web

import "embed"

// Dist holds what `npm run build` wrote below dist/. Before the first build it
// holds only the marker file, so the Go code compiles without Node; a server
// must check for dist/index.html. In that file the server replaces the text
// __CSP_NONCE__ by the nonce of each response, and __EMBEDDED__ by whether
// other sites may frame the response.
//
//go:embed all:dist
var Dist embed.FS

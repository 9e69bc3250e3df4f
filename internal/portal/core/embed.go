package core

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxEmbedOrigins bounds the header that contains all of them.
const maxEmbedOrigins = 20

// embeddedPlaceholder is the text in index.html that the server replaces by whether the response may be framed. The application shows what is
// safe in a frame by this alone, so that it never differs from the server about an address.
const embeddedPlaceholder = "__EMBEDDED__"

// originPattern matches an origin as browsers write it: a scheme, a name in lower case or an IPv4 address, and perhaps a port.
var originPattern = regexp.MustCompile(`^(https?)://((?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)(?::([0-9]{1,5}))?$`)

// addressPattern matches a host that browsers read as an IPv4 address.
var addressPattern = regexp.MustCompile(`(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)$`)

// CheckEmbedOrigins returns an error that names the first origin that is not an exact https origin, or an http origin of this machine. An
// address is refused, except for 127.0.0.1, because browsers compare only that one.
func CheckEmbedOrigins(origins []string) error {
	if len(origins) > maxEmbedOrigins {
		return fmt.Errorf("--embed-origins has %d origins: use at most %d", len(origins), maxEmbedOrigins)
	}
	for _, o := range origins {
		m := originPattern.FindStringSubmatch(o)
		if m == nil {
			return fmt.Errorf(
				"--embed-origins %q: use an origin such as https://backstage.example.com, in lower case and without a wildcard, a path or a slash at the end",
				o,
			)
		}
		scheme, host, port := m[1], m[2], m[3]
		here := host == "localhost" || host == "127.0.0.1"
		switch {
		case scheme == "http" && !here:
			return fmt.Errorf("--embed-origins %q: use https, because http is possible only for localhost and 127.0.0.1", o)
		case !here && addressPattern.MatchString(host):
			return fmt.Errorf("--embed-origins %q: use a name, because browsers frame nothing for an address", o)
		}
		if n, err := strconv.Atoi(port); port != "" && (err != nil || n < 1 || n > 65535) {
			return fmt.Errorf("--embed-origins %q: use a port between 1 and 65535", o)
		}
	}
	return nil
}

// embeds reports whether pages of the configured origins may frame the page of a request: that of one application or of one resource, with
// embed=1.
func (s *Server) embeds(r *http.Request) bool {
	if len(s.EmbedOrigins) == 0 {
		return false
	}
	kind, id, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	if kind != "applications" && kind != "resources" || id == "" || strings.Contains(id, "/") {
		return false
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	return err == nil && slices.Equal(query["embed"], []string{"1"})
}

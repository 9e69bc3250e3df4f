package core

import (
	"slices"
	"strings"
	"testing"
)

func TestCheckEmbedOrigins(t *testing.T) {
	for name, tc := range map[string]struct {
		origins []string
		want    string // part of the error; "": accepted
	}{
		"none":            {nil, ""},
		"https":           {[]string{"https://backstage.example.com", "https://a.b-c.example:8443", "https://intranet"}, ""},
		"this machine":    {[]string{"http://localhost:3000", "http://127.0.0.1:7007", "https://localhost"}, ""},
		"many":            {slices.Repeat([]string{"https://a.example"}, maxEmbedOrigins), ""},
		"too many":        {slices.Repeat([]string{"https://a.example"}, maxEmbedOrigins+1), "at most 20"},
		"the second":      {[]string{"https://a.example", "https://b.example/"}, `"https://b.example/"`},
		"empty":           {[]string{""}, "use an origin"},
		"anyone":          {[]string{"*"}, "use an origin"},
		"any subdomain":   {[]string{"https://*.example.com"}, "use an origin"},
		"any port":        {[]string{"https://a.example:*"}, "use an origin"},
		"a scheme":        {[]string{"https:"}, "use an origin"},
		"no scheme":       {[]string{"a.example"}, "use an origin"},
		"another scheme":  {[]string{"ftp://a.example"}, "use an origin"},
		"a path":          {[]string{"https://a.example/backstage"}, "use an origin"},
		"a slash":         {[]string{"https://a.example/"}, "use an origin"},
		"a query":         {[]string{"https://a.example?x"}, "use an origin"},
		"a fragment":      {[]string{"https://a.example#x"}, "use an origin"},
		"a user":          {[]string{"https://u:p@a.example"}, "use an origin"},
		"upper case":      {[]string{"https://A.example"}, "use an origin"},
		"a keyword":       {[]string{"'self'"}, "use an origin"},
		"two in one":      {[]string{"https://a.example https://b.example"}, "use an origin"},
		"a directive":     {[]string{"https://a.example; script-src *"}, "use an origin"},
		"a new line":      {[]string{"https://a.example\nX-Evil: 1"}, "use an origin"},
		"a last new line": {[]string{"https://a.example\n"}, "use an origin"},
		"a comma":         {[]string{"https://a.example,https://b.example"}, "use an origin"},
		"no label":        {[]string{"https://a..example"}, "use an origin"},
		"a last dot":      {[]string{"https://a.example."}, "use an origin"},
		"a hyphen":        {[]string{"https://-a.example"}, "use an origin"},
		"IPv6":            {[]string{"http://[::1]:3000"}, "use an origin"},
		"plain HTTP":      {[]string{"http://a.example"}, "use https"},
		"like localhost":  {[]string{"http://localhost.example.com"}, "use https"},
		"another machine": {[]string{"http://127.0.0.2"}, "use https"},
		"IPv4":            {[]string{"https://10.0.0.5"}, "use a name"},
		"a short address": {[]string{"https://10.5"}, "use a name"},
		"hexadecimal":     {[]string{"https://0x7f000001"}, "use a name"},
		"no port":         {[]string{"https://a.example:"}, "use an origin"},
		"port 0":          {[]string{"https://a.example:0"}, "use a port"},
		"a large port":    {[]string{"https://a.example:65536"}, "use a port"},
		"a long port":     {[]string{"https://a.example:444444"}, "use an origin"},
	} {
		err := CheckEmbedOrigins(tc.origins)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

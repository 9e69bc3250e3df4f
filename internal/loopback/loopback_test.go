package loopback

import "testing"

func TestIs(t *testing.T) {
	for host, want := range map[string]bool{"localhost": true, "LOCALHOST": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true,
		"": false, "localhost.example.com": false, "10.0.0.1": false, "[::1]": false, "127.0.0.1.example.com": false} {
		if Is(host) != want {
			t.Errorf("%q: %t", host, !want)
		}
	}
}

package core

import (
	"testing"
)

func TestLocalPath(t *testing.T) {
	for in, want := range map[string]string{
		"/tickets/T-1?x=1#y": "/tickets/T-1?x=1#y", "": "/", "https://evil.example": "/", "//evil.example": "/", `/\evil.example`: "/",
		"/\t/evil.example": "/", "javascript:alert(1)": "/", "/%2f/evil": "/", "/auth/logout": "/", "relative": "/", "/%zz": "/",
	} {
		if got := localPath(in); got != want {
			t.Errorf("localPath(%q) = %q, want %q", in, got, want)
		}
	}
}

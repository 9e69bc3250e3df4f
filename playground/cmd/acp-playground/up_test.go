package main

import (
	"strings"
	"testing"
)

func TestUpIsRefusedBeforeAnythingStarts(t *testing.T) {
	state := t.TempDir() + "/state"
	for _, tc := range []struct {
		args         []string
		want, reason string
	}{
		{[]string{"--traffic", "/nonexistent/traffic.yaml"}, "--traffic", "a mistyped file would only be seen after the fleet has started"},
		{[]string{"--traffic", t.TempDir()}, "is a folder", "a folder is no description of traffic"},
		{[]string{"--port", "99999"}, "--port must be", "there is no such port"},
		{[]string{"--without", "oidc"}, "accepts only acp", "nothing else can be left out"},
		{[]string{"now"}, "takes no arguments", "a forgotten dash"},
	} {
		err := dispatch(t.Context(), append([]string{"up", "--repo", "../../..", "--state-dir", state}, tc.args...))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: %s; got %v", tc.args, tc.reason, err)
		}
	}
}

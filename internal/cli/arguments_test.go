package cli

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestWrongCallsAreOneLine checks that a wrong call is explained in one line without the wording of libraries, with the documented exit code.
func TestWrongCallsAreOneLine(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "absent"))
	for _, k := range []string{envServer, envToken, envCredentials, envKubeconfig, envContext} {
		t.Setenv(k, "")
	}
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	file := twoContexts(t)
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"bogus", ExitUsage, `unknown command "bogus"`},
		{"--bogus", ExitUsage, "unknown flag: --bogus"},
		{"bogus --flag", ExitUsage, `unknown command "bogus"`},
		{"tikets", ExitUsage, `unknown command "tikets": did you mean tickets?`},
		{"cluster bogus", ExitUsage, `unknown command "bogus"`},
		{"cluster bogus --flag", ExitUsage, `unknown command "bogus"`},
		{"cluster chek m1", ExitUsage, `unknown command "chek": did you mean check?`},
		{"rollout paus x --reason y", ExitUsage, `unknown command "paus": did you mean pause?`},
		{"cluster join", ExitUsage, "the name of the member is missing"},
		{"cluster join m1 m2", ExitUsage, `unexpected argument "m2"`},
		{"cluster check", ExitUsage, "the name of the member is missing"},
		{"cluster leave", ExitUsage, "the name of the member is missing"},
		{"extend", ExitUsage, "the ticket, such as T-42, is missing"},
		{"revoke", ExitUsage, "the ticket, such as T-42, is missing"},
		{"flows extra", ExitUsage, `unexpected argument "extra"`},
		{"diff a", ExitUsage, `unexpected argument "a"`},
		{"whoami now", ExitUsage, `unexpected argument "now"`},
		{"render -f /absent", ExitInvalid, "/absent: no such file or directory"},
		{"render --kubeconfig /absent", ExitInvalid, "/absent: no such file or directory"},
		{"render --kubeconfig " + file, ExitInvalid, "https://127.0.0.1:1 does not answer (connection refused): check the address"},
		{"cluster check m1 --kubeconfig " + file, ExitInvalid, "https://127.0.0.1:1 does not answer (connection refused): check the address"},
		{"render --context three --kubeconfig " + file, ExitInvalid, `context "three" does not exist`},
	} {
		code, out, errs := run(t, "", strings.Fields(c.args)...)
		if code != c.code || out != "" || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: code %d, %q%q; want code %d and one line with %q", c.args, code, out, errs, c.code, c.want)
		}
		for _, wording := range []string{"stat /", "open /", "dial tcp", "Get \"", "arg(s)", "goroutine"} {
			if strings.Contains(errs, wording) {
				t.Errorf("%s: %q has the wording %q of a library", c.args, errs, wording)
			}
		}
	}
}

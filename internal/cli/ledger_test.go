package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// ledgerPortal serves a file as a portal does its ledger; with cut, the connection breaks in the middle. It returns a function
// that returns the token and the URL of the latest request.
func ledgerPortal(t *testing.T, file string, cut bool) func() string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.Header.Get("Authorization") + " " + r.URL.String())
		if cut {
			_, _ = w.Write(text[:len(text)/2])
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(text)
	}))
	t.Cleanup(server.Close)
	t.Setenv(envServer, server.URL)
	t.Setenv(envToken, "acp_test")
	return func() string { s, _ := asked.Load().(string); return s }
}

func TestLedgerOfAPortal(t *testing.T) {
	asked := ledgerPortal(t, "testdata/ledger/ledger.jsonl", false)
	if o := portalRun(
		t, "", "ledger", "verify", "--anchor", "testdata/ledger/heads.jsonl",
	); o.code != ExitFine || !strings.Contains(o.out, "lines 1 to 5 are whole\nanchored up to line 4") {
		t.Errorf("verified here: %+v", o)
	}
	if asked() != "Bearer acp_test /api/v1/ledger/export?afterSeq=0" {
		t.Errorf("asked %s", asked())
	}
	out := filepath.Join(t.TempDir(), "ledger.jsonl")
	if o := portalRun(t, "", "ledger", "export", "--from", "3", "--out", out); o.code != ExitFine || !strings.HasSuffix(asked(), "afterSeq=2") {
		t.Errorf("exported: %+v, asked %s", o, asked())
	}
	if o := portalRun(t, "", "ledger", "verify", "--file", out); o.code != ExitFine {
		t.Errorf("and verified offline: %+v", o)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if o := portalRun(t, "", "ledger", "export"); o.code != ExitFine || o.out != string(text) {
		t.Errorf("to standard output: %+v", o)
	}
}

func TestLedgerOfAPortalThatIsBroken(t *testing.T) {
	ledgerPortal(t, "testdata/ledger/edited.jsonl", false)
	if o := portalRun(t, "", "ledger", "verify"); o.code != ExitFindings || !strings.Contains(o.out, "broken at line 2") {
		t.Errorf("the first broken line: %+v", o)
	}
}

func TestLedgerThatBreaksOff(t *testing.T) {
	ledgerPortal(t, "testdata/ledger/ledger.jsonl", true)
	out := filepath.Join(t.TempDir(), "ledger.jsonl")
	if o := portalRun(t, "", "ledger", "export", "--out", out); o.code != ExitFailed {
		t.Errorf("half an export is a failure: %+v", o)
	}
	if left, err := filepath.Glob(out + "*"); err != nil || len(left) != 0 {
		t.Errorf("and no file: %v %v", left, err)
	}
	if o := portalRun(t, "", "ledger", "verify"); o.code != ExitFailed || strings.Contains(o.out, "whole") {
		t.Errorf("what was not read to its end is not judged: %+v", o)
	}
}

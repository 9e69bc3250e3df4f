package cli

import (
	"bytes"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A command that waits for its input, which nothing can cancel, ends at a signal all the same.
func TestSignalEndsACommandThatWaitsForInput(t *testing.T) {
	for sig, want := range map[os.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		in, hold := io.Pipe()
		var out, errs bytes.Buffer
		signals, ended := make(chan os.Signal, 1), make(chan int, 1)
		go func() {
			ended <- RunUntil(signals, []string{"lint", "-f", "-"}, Streams{In: in, Out: &out, Err: &errs, Now: time.Now})
		}()
		signals <- sig
		select {
		case code := <-ended:
			if code != want || !strings.Contains(errs.String(), "ended by the signal") {
				t.Errorf("%v: code %d, want %d; %q", sig, code, want, errs.String())
			}
		case <-time.After(30 * time.Second):
			t.Errorf("%v does not end the command", sig)
		}
		_ = hold.Close()
	}
	var out, errs bytes.Buffer
	if code := RunUntil(
		nil, []string{"--version"}, Streams{In: strings.NewReader(""), Out: &out, Err: &errs, Now: time.Now},
	); code != ExitFine || out.Len() == 0 {
		t.Errorf("without a signal: code %d, %q", code, out.String())
	}
}

func TestStandardErrorEscapesControlCharacters(t *testing.T) {
	for text, want := range map[string]string{
		"plain\ttext\n":    "plain\ttext\n",
		"订单 缓存":            "订单 缓存",
		"a\x1b[2Jb":        `a\x1b[2Jb`,
		"a\x00b\rc":        `a\x00b\rc`,
		"bad \xff utf-8":   `bad \xff utf-8`,
		"\u202etxt\u009b1": `\u202etxt\u009b1`,
		"kept \ufffd":      "kept \ufffd",
	} {
		var out bytes.Buffer
		if _, err := io.WriteString(plainWriter{&out}, text); err != nil || out.String() != want {
			t.Errorf("%q becomes %q, want %q (%v)", text, out.String(), want, err)
		}
	}
	// A name of an object reaches standard error with the message about it.
	var out, errs bytes.Buffer
	in := strings.NewReader("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"x\\u001b[2J\\0\"}\n")
	Run(t.Context(), []string{"render", "-f", "-"}, Streams{In: in, Out: &out, Err: &errs, Now: time.Now})
	if strings.ContainsAny(errs.String(), "\x1b\x00") || !strings.Contains(errs.String(), `x\x1b[2J\x00`) {
		t.Errorf("%q", errs.String())
	}
}

// Nothing to check is not the same as nothing to find.
func TestLintOfNothingFails(t *testing.T) {
	for reason, text := range map[string]string{
		"an empty file": "", "comments": "# nothing\n---\n", "other kinds only": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n",
	} {
		var out, errs bytes.Buffer
		code := Run(t.Context(), []string{"lint", "-f", "-"}, Streams{In: strings.NewReader(text), Out: &out, Err: &errs, Now: time.Now})
		if code != ExitInvalid || !strings.Contains(errs.String(), "no object of ACP") {
			t.Errorf("%s: code %d, %q", reason, code, errs.String())
		}
	}
	var out, errs bytes.Buffer
	if code := Run(t.Context(), []string{"lint", "-f", t.TempDir()}, Streams{Out: &out, Err: &errs, Now: time.Now}); code != ExitInvalid {
		t.Errorf("an empty folder: code %d, %q", code, errs.String())
	}
}

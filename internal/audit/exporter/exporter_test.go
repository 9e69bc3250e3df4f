package exporter

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// lineRecorder records lines and lets a test wait for them.
type lineRecorder struct {
	mu    sync.Mutex
	grown chan struct{}
	lines []string
	// written is the last argument of reading; zero before its first call.
	written time.Time
	// damaged may be read after Follow has returned.
	damaged []damage
}

type damage struct {
	until time.Time
	why   error
}

func (r *lineRecorder) damage(until time.Time, why error) {
	r.damaged = append(r.damaged, damage{until, why})
}

func (r *lineRecorder) reading(written time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written = written
	close(r.grown)
	r.grown = make(chan struct{})
}

func newLineRecorder() *lineRecorder { return &lineRecorder{grown: make(chan struct{})} }

func (r *lineRecorder) take(line []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, string(line))
	close(r.grown)
	r.grown = make(chan struct{})
}

func (r *lineRecorder) until(t *testing.T, want ...string) {
	t.Helper()
	for {
		r.mu.Lock()
		got, grown := append([]string(nil), r.lines...), r.grown
		r.mu.Unlock()
		if len(got) >= len(want) {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("lines (-want +got):\n%s", diff)
			}
			return
		}
		select {
		case <-grown:
		case <-time.After(time.Minute):
			t.Fatalf("got lines %q, want %q", got, want)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func compress(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func follow(t *testing.T, path string) (*lineRecorder, func() error) {
	t.Helper()
	h := newLineRecorder()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- (&File{Path: path, Poll: time.Millisecond}).Follow(ctx, h.take, h.damage, h.reading) }()
	stop := sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { _ = stop() })
	return h, stop
}

func TestFollowReadsWhatIsAppended(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.log")
	h, stop := follow(t, path) // the file does not exist yet
	write(t, path, "a\nb")
	h.until(t, "a")
	write(t, path, "b\n\n")
	h.until(t, "a", "bb", "")
	if err := stop(); !errors.Is(err, context.Canceled) {
		t.Errorf("Follow: %v", err)
	}
}

// TestReading verifies that a file that does not exist is not reported as read, and one that exists with the time of its newest line.
func TestReading(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.log")
	h, _ := follow(t, path)
	until := func(what string, is func(written time.Time) bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			h.mu.Lock()
			written := h.written
			h.mu.Unlock()
			if is(written) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %s", what, written)
			}
		}
	}
	time.Sleep(20 * time.Millisecond)
	until("the file does not exist", time.Time.IsZero)
	write(t, path, "a\n")
	until("the file was written now", func(at time.Time) bool { return time.Since(at) < time.Minute })
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	until("nothing was written for an hour", old.Equal)
}

func TestRotationByRenaming(t *testing.T) {
	for name, compressed := range map[string]bool{"Plain": false, "Compressed": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "events.log")
			compress(t, filepath.Join(dir, "events-2026-11-01T10-00-00.000.log.gz"), "old 1\n")
			write(t, filepath.Join(dir, "events-2026-11-01T11-00-00.000.log"), "old 2\n")
			write(t, path, "a\n")
			h, _ := follow(t, path)
			h.until(t, "old 1", "old 2", "a")
			if compressed {
				// The file is compressed before the reader polls again.
				staged := filepath.Join(dir, "staged")
				compress(t, staged, "a\n")
				if err := os.Rename(staged, filepath.Join(dir, "events-2026-11-01T12-00-00.000.log.gz")); err != nil {
					t.Fatal(err)
				}
				next := filepath.Join(dir, "next")
				write(t, next, "c\n")
				if err := os.Rename(next, path); err != nil {
					t.Fatal(err)
				}
				h.until(t, "old 1", "old 2", "a", "c")
				return
			}
			if err := os.Rename(path, filepath.Join(dir, "events-2026-11-01T12-00-00.000.log")); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "events-2026-11-01T12-00-00.000.log"), "b\n") // the writer still has the renamed file open
			write(t, path, "c\n")
			h.until(t, "old 1", "old 2", "a", "b", "c")
		})
	}
}

func TestRotationByTruncation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.log")
	write(t, path, "a\nb\nhalf")
	h, _ := follow(t, path)
	h.until(t, "a", "b")
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	write(t, path, "c\n")
	h.until(t, "a", "b", "c")
}

// TestDamagedFile verifies that a damaged file is read up to the damage and reported once, and that the files after it are read.
func TestDamagedFile(t *testing.T) {
	var whole bytes.Buffer
	z := gzip.NewWriter(&whole)
	if _, err := z.Write([]byte("a\nb\n")); err != nil {
		t.Fatal(err)
	}
	if err := z.Flush(); err != nil { // the content before this point stays readable if the rest is damaged
		t.Fatal(err)
	}
	before := whole.Len()
	if _, err := z.Write([]byte("lost\nlost\n")); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	changed := func(at int, to byte) []byte { b := bytes.Clone(whole.Bytes()); b[at] = to; return b }
	const noBlock = 7 // a block type that does not exist, with the bit of the last block
	for name, tc := range map[string]struct {
		reason  string
		content []byte
		want    []string
	}{
		"Text":    {"the content is not compressed", []byte("no gzip at all"), nil},
		"Empty":   {"the disk was full when it was compressed", nil, nil},
		"Cut":     {"the compression was interrupted", whole.Bytes()[:before+3], []string{"a", "b"}},
		"Changed": {"a byte has changed", changed(before, noBlock), []string{"a", "b"}},
		"Checksum": {
			"the content is readable, but the checksum is wrong",
			changed(whole.Len()-6, ^whole.Bytes()[whole.Len()-6]), []string{"a", "b", "lost", "lost"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			bad := filepath.Join(dir, "events-1.log.gz")
			write(t, bad, string(tc.content))
			write(t, filepath.Join(dir, "events-2.log"), "next\n")
			write(t, filepath.Join(dir, "events.log"), "newest\n")
			info, err := os.Stat(bad)
			if err != nil {
				t.Fatal(err)
			}
			h, stop := follow(t, filepath.Join(dir, "events.log"))
			h.until(t, append(tc.want, "next", "newest")...)
			_ = stop()
			if len(h.damaged) != 1 || !h.damaged[0].until.Equal(info.ModTime()) || !strings.Contains(h.damaged[0].why.Error(), "events-1.log.gz") {
				t.Errorf("%s: got damage reports %v, want one with the file's name and time", tc.reason, h.damaged)
			}
		})
	}
}

func TestStream(t *testing.T) {
	var got []string
	var reads []time.Time
	r, w := io.Pipe()
	go func() {
		for _, s := range []string{"a", "b\nc\n", "last"} {
			_, _ = w.Write([]byte(s)) // the reader is still there
		}
		_ = w.Close()
	}()
	s := &Stream{R: r}
	err := s.Follow(t.Context(), func(b []byte) { got = append(got, string(b)) }, nil, func(at time.Time) { reads = append(reads, at) })
	if !errors.Is(err, ErrEnded) || s.Replayable() {
		t.Errorf("got Follow error %v and Replayable %v, want ErrEnded and false", err, s.Replayable())
	}
	if len(reads) < 2 || !reads[0].IsZero() || reads[1].IsZero() {
		t.Errorf("read at %v, want the beginning, and the times of the lines", reads)
	}
	if diff := cmp.Diff([]string{"ab", "c", "last"}, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestLongLinesAreTruncated(t *testing.T) {
	var got []int
	l := lineSplitter{onLine: func(b []byte) { got = append(got, len(b)) }}
	long := strings.Repeat("x", maxLine/2+1)
	for _, s := range []string{"ab\n", long, long, long, "\nabc\n"} {
		l.write([]byte(s))
	}
	if diff := cmp.Diff([]int{2, maxLine, 3}, got); diff != "" {
		t.Errorf("lengths (-want +got):\n%s", diff)
	}
}

// FuzzLines verifies that the lines do not depend on how the content is split into reads.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nbc\n\nd"), uint8(2))
	f.Fuzz(func(t *testing.T, b []byte, step uint8) {
		read := func(n int) string {
			var out []string
			l := lineSplitter{onLine: func(b []byte) { out = append(out, fmt.Sprintf("%q", b)) }}
			for rest := b; len(rest) > 0; {
				n := min(n, len(rest))
				l.write(rest[:n])
				rest = rest[n:]
			}
			l.flush()
			return strings.Join(out, ",")
		}
		if whole, pieces := read(len(b)+1), read(int(step)+1); whole != pieces {
			t.Errorf("got lines %s when read in pieces, want %s as when read at once", pieces, whole)
		}
	})
}

package exporter

import (
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// File follows a file that Hubble's exporter writes, across its rotation by renaming or by truncation. Rotated files are in the
// same directory with the names that the exporter gives them, NAME-TIME.EXT, optionally compressed with the suffix .gz. They are
// read first, oldest first, so that a restart reads what was written in the meantime.
type File struct {
	Path string
	// Poll is the interval between two reads of a file without new content. Default: 0.25 s.
	Poll time.Duration
}

// Replayable implements hubble.LineSource. It returns true, because every Follow begins with the oldest rotated file.
func (*File) Replayable() bool { return true }

// Follow calls take for each line until the context ends or reading fails. Of a damaged rotated file it passes on the lines
// before the damage, calls damaged, and continues with the next file. It calls reading, with the file's modification time, whenever it
// has read the file to its end; as long as the file does not exist, it does not.
func (f *File) Follow(ctx context.Context, take func([]byte), damaged func(until time.Time, why error), reading func(written time.Time)) error {
	r := &reader{File: *f, lines: lineSplitter{onLine: take}, damaged: damaged, reading: reading, buffer: make([]byte, chunk), done: map[string]bool{}}
	if r.Poll <= 0 {
		r.Poll = 250 * time.Millisecond
	}
	defer r.close()
	if err := r.readRotated(ctx); err != nil {
		return err
	}
	for {
		if err := r.step(ctx); err != nil {
			return err
		}
		t := time.NewTimer(r.Poll)
		select {
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		case <-t.C:
		}
	}
}

type reader struct {
	File
	lines   lineSplitter
	damaged func(until time.Time, why error)
	reading func(written time.Time)
	buffer  []byte
	file    *os.File
	offset  int64
	// done are the names, without .gz, of the rotated files that were read.
	done map[string]bool
}

func (r *reader) close() {
	if r.file != nil {
		_ = r.file.Close() // the file was only read
		r.file = nil
	}
}

// step reads what was written since the last step, and detects truncation and renaming.
func (r *reader) step(ctx context.Context) error {
	if r.file == nil {
		file, err := os.Open(r.Path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the exporter has not created it yet
		}
		if err != nil {
			return fmt.Errorf("read the exporter's file: %w", err)
		}
		r.file, r.offset = file, 0
	}
	if err := r.read(ctx, r.file, &r.offset); err != nil {
		return err
	}
	own, err := r.file.Stat()
	if err != nil {
		return fmt.Errorf("stat the exporter's file: %w", err)
	}
	r.reading(own.ModTime())
	if own.Size() < r.offset { // truncated: read it from the beginning
		if _, err := r.file.Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("read the exporter's file from its beginning: %w", err)
		}
		r.offset = 0
		r.lines.reset()
		return r.read(ctx, r.file, &r.offset)
	}
	now, err := os.Stat(r.Path)
	if err == nil && os.SameFile(own, now) || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return r.afterRename(ctx, own)
}

// afterRename reads the rest of the file after it was renamed, and then the rotated files.
func (r *reader) afterRename(ctx context.Context, own fs.FileInfo) error {
	if err := r.read(ctx, r.file, &r.offset); err != nil { // content written between the last read and the renaming
		return err
	}
	r.lines.flush()
	r.close()
	names, err := r.unreadRotated()
	if err != nil {
		return err
	}
	// The followed file is done. If no rotated file is the same file, it was compressed meanwhile, and it is the oldest of the
	// unread ones.
	mine := ""
	for _, name := range names {
		if info, err := os.Stat(filepath.Join(filepath.Dir(r.Path), name)); err == nil && os.SameFile(own, info) {
			mine = name
		}
	}
	if mine == "" && len(names) > 0 {
		mine = names[0]
	}
	r.done[strings.TrimSuffix(mine, ".gz")] = true
	return r.readRotated(ctx)
}

// readRotated reads the rotated files that were not read yet, oldest first.
func (r *reader) readRotated(ctx context.Context) error {
	names, err := r.unreadRotated()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := r.readRotatedFile(ctx, filepath.Join(filepath.Dir(r.Path), name)); err != nil {
			return err
		}
		r.done[strings.TrimSuffix(name, ".gz")] = true
	}
	return nil
}

// unreadRotated returns the names of the rotated files that were not read, oldest first. A file that is being compressed exists
// twice; only the uncompressed one is returned.
func (r *reader) unreadRotated() ([]string, error) {
	dir, base := filepath.Split(r.Path)
	ext := filepath.Ext(base)
	prefix := strings.TrimSuffix(base, ext) + "-"
	entries, err := os.ReadDir(filepath.Clean(dir + "."))
	if err != nil {
		return nil, fmt.Errorf("list the exporter's files: %w", err)
	}
	var plain, out []string
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".gz")
		if !e.Type().IsRegular() || !strings.HasPrefix(name, prefix) || !strings.HasSuffix(name, ext) || r.done[name] {
			continue
		}
		if name == e.Name() {
			plain = append(plain, name)
		}
		out = append(out, e.Name())
	}
	out = slices.DeleteFunc(out, func(name string) bool {
		original, compressed := strings.CutSuffix(name, ".gz")
		return compressed && slices.Contains(plain, original)
	})
	slices.SortFunc(out, func(a, b string) int {
		return strings.Compare(strings.TrimSuffix(a, ".gz"), strings.TrimSuffix(b, ".gz"))
	})
	return out, nil
}

// readRotatedFile reads a file to its end. A file that no longer exists was the oldest one and has been deleted by the exporter.
func (r *reader) readRotatedFile(ctx context.Context, path string) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read a rotated file of the exporter: %w", err)
	}
	defer file.Close()
	var content io.Reader = file
	if strings.HasSuffix(path, ".gz") {
		z, err := gzip.NewReader(file)
		if err != nil {
			return r.reportDamage(file, err)
		}
		defer z.Close()
		content = z
	}
	var offset int64
	if err := r.read(ctx, content, &offset); err != nil {
		return r.reportDamage(file, err)
	}
	r.lines.flush()
	return nil
}

// reportDamage calls damaged if the error means that the content of a rotated file is damaged, with the file's modification time.
// It returns any other error, because the file may be readable at the next attempt.
func (r *reader) reportDamage(file *os.File, err error) error {
	err = fmt.Errorf("read a rotated file of the exporter: %s: %w", file.Name(), err)
	var corrupt flate.CorruptInputError
	if !errors.Is(err, gzip.ErrHeader) && !errors.Is(err, gzip.ErrChecksum) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) &&
		!errors.As(err, &corrupt) {
		return err
	}
	r.lines.reset()
	info, e := file.Stat()
	if e != nil {
		return fmt.Errorf("stat a rotated file of the exporter: %w", e)
	}
	r.damaged(info.ModTime(), err)
	return nil
}

// read passes the content to the line splitter up to its end, and advances the offset.
func (r *reader) read(ctx context.Context, from io.Reader, offset *int64) error {
	for ctx.Err() == nil {
		n, err := from.Read(r.buffer)
		*offset += int64(n)
		r.lines.write(r.buffer[:n])
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the exporter's file: %w", err)
		}
	}
	return ctx.Err()
}

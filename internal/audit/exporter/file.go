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

// File follows a file that Hubble's exporter writes, over its rotation by renaming or by truncation. Rotated files lie beside
// it under the names that the exporter gives them, NAME-TIME.EXT, also compressed with .gz; they are read first, oldest
// first, so that a restart finds what was written meanwhile.
type File struct {
	Path string
	// Poll is the time between two looks at a file that has nothing new; 0.25 s.
	Poll time.Duration
}

// Again implements hubble.Lines: every Follow begins with the oldest rotated file.
func (*File) Again() bool { return true }

// Follow hands over each line until the context ends or reading fails. Of a rotated file that is damaged it hands over what
// comes before the damage, says so, and goes on with the next one.
func (f *File) Follow(ctx context.Context, take func([]byte), damaged func(until time.Time, why error)) error {
	r := &reader{File: *f, lines: lines{take: take}, damaged: damaged, buffer: make([]byte, chunk), done: map[string]bool{}}
	if r.Poll <= 0 {
		r.Poll = 250 * time.Millisecond
	}
	defer r.close()
	if err := r.rotated(ctx); err != nil {
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
	lines   lines
	damaged func(until time.Time, why error)
	buffer  []byte
	file    *os.File
	offset  int64
	// done are the names of rotated files that were read, without .gz.
	done map[string]bool
}

func (r *reader) close() {
	if r.file != nil {
		_ = r.file.Close() // it was only read
		r.file = nil
	}
}

// step reads what is new.
func (r *reader) step(ctx context.Context) error {
	if r.file == nil {
		file, err := os.Open(r.Path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it is about to be written
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
		return fmt.Errorf("look at the exporter's file: %w", err)
	}
	if own.Size() < r.offset { // truncated: it is written from its beginning
		if _, err := r.file.Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("read the exporter's file from its beginning: %w", err)
		}
		r.offset = 0
		r.lines.forget()
		return r.read(ctx, r.file, &r.offset)
	}
	now, err := os.Stat(r.Path)
	if err == nil && os.SameFile(own, now) || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return r.turn(ctx, own)
}

// turn goes on after the file was renamed.
func (r *reader) turn(ctx context.Context, own fs.FileInfo) error {
	if err := r.read(ctx, r.file, &r.offset); err != nil { // what was written between the last read and the renaming
		return err
	}
	r.lines.end()
	r.close()
	names, err := r.siblings()
	if err != nil {
		return err
	}
	// The one that was followed is done. When it is not to be recognised, it was compressed, and it is the oldest new one.
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
	return r.rotated(ctx)
}

// rotated reads the rotated files that are new.
func (r *reader) rotated(ctx context.Context) error {
	names, err := r.siblings()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := r.whole(ctx, filepath.Join(filepath.Dir(r.Path), name)); err != nil {
			return err
		}
		r.done[strings.TrimSuffix(name, ".gz")] = true
	}
	return nil
}

// siblings are the names of rotated files that were not read, oldest first. One that is being compressed is there twice.
func (r *reader) siblings() ([]string, error) {
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

// whole reads a file to its end. One that is gone meanwhile was the oldest, and is what the source no longer holds.
func (r *reader) whole(ctx context.Context, path string) error {
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
			return r.broken(file, err)
		}
		defer z.Close()
		content = z
	}
	var offset int64
	if err := r.read(ctx, content, &offset); err != nil {
		return r.broken(file, err)
	}
	r.lines.end()
	return nil
}

// broken says that a rotated file is damaged, from where it was read to. Another error is returned: the file may be readable
// at the next attempt.
func (r *reader) broken(file *os.File, err error) error {
	err = fmt.Errorf("read a rotated file of the exporter: %s: %w", file.Name(), err)
	var corrupt flate.CorruptInputError
	if !errors.Is(err, gzip.ErrHeader) && !errors.Is(err, gzip.ErrChecksum) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.As(err, &corrupt) {
		return err
	}
	r.lines.forget()
	info, e := file.Stat()
	if e != nil {
		return fmt.Errorf("look at a rotated file of the exporter: %w", e)
	}
	r.damaged(info.ModTime(), err)
	return nil
}

// read hands over what there is to its end.
func (r *reader) read(ctx context.Context, from io.Reader, offset *int64) error {
	for ctx.Err() == nil {
		n, err := from.Read(r.buffer)
		*offset += int64(n)
		r.lines.feed(r.buffer[:n])
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the exporter's file: %w", err)
		}
	}
	return ctx.Err()
}

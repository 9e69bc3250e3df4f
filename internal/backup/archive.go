package backup

import (
	"archive/zip"
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/acp-io/acp/internal/ledger"
)

// format is the version of the archive's layout.
const format = 1

const (
	manifestName = "manifest.json"
	// maxRecord bounds one line of a file in the archive, in bytes. etcd stores no object of more than 1.5 MiB; a row of the
	// database is smaller.
	maxRecord = 8 << 20
)

// Manifest describes an archive. It is the archive's last file, so that an archive that was cut off has none.
type Manifest struct {
	Format int `json:"format"`
	// ID is a random name of this backup, which the ledger names after a restore.
	ID string `json:"id"`
	// At is the time before the first read: what changed after it may be missing.
	At time.Time `json:"at"`
	// Version is the version of the program that wrote the archive.
	Version string `json:"version"`
	// Schema lists the schema changes of the database.
	Schema []int64 `json:"schema"`
	// Head is the newest line of the ledger; its number is 0 if there was none.
	Head ledger.Head `json:"head,omitzero"`
	// Files lists the files of the archive except this one.
	Files []File `json:"files"`
}

// File is one file of an archive: JSON lines.
type File struct {
	Name    string `json:"name"`
	Records int64  `json:"records"`
	SHA256  string `json:"sha256"`
}

// writer writes an archive beside its final name, and gives it that name when it is complete.
type writer struct {
	path     string
	file     *os.File
	zip      *zip.Writer
	manifest Manifest
	current  *File
	sum      hash.Hash
	out      *bufio.Writer
}

func create(path string, m Manifest) (*writer, error) {
	if _, err := os.Stat(path); err == nil {
		return nil, fmt.Errorf("%s exists already: give another name, or remove it", path)
	}
	// Only the owner may read it: it contains who may reach what, and why.
	f, err := os.CreateTemp(filepath.Dir(path), ".acp-backup-*")
	if err != nil {
		return nil, fmt.Errorf("the backup cannot be written: %w", err)
	}
	m.Format = format
	return &writer{path: path, file: f, zip: zip.NewWriter(f), manifest: m}, nil
}

// begin starts a file of the archive; it ends when the next one begins.
func (w *writer) begin(name string) error {
	if err := w.end(); err != nil {
		return err
	}
	part, err := w.zip.Create(name)
	if err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	w.current, w.sum = &File{Name: name}, sha256.New()
	w.out = bufio.NewWriterSize(io.MultiWriter(part, w.sum), 64<<10)
	return nil
}

// add writes one record of the current file.
func (w *writer) add(record any) error {
	text, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("encode a record of %s: %w", w.current.Name, err)
	}
	if len(text) > maxRecord {
		return fmt.Errorf("a record of %s has %d bytes, more than %d", w.current.Name, len(text), maxRecord)
	}
	w.current.Records++
	if _, err := w.out.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	return nil
}

func (w *writer) end() error {
	if w.current == nil {
		return nil
	}
	if err := w.out.Flush(); err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	w.current.SHA256 = hex.EncodeToString(w.sum.Sum(nil))
	w.manifest.Files = append(w.manifest.Files, *w.current)
	w.current = nil
	return nil
}

// finish makes the archive durable under its name.
func (w *writer) finish() error {
	if err := w.end(); err != nil {
		return err
	}
	part, err := w.zip.Create(manifestName)
	if err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	enc := json.NewEncoder(part)
	enc.SetIndent("", "  ")
	if err := enc.Encode(w.manifest); err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	if err := errors.Join(w.zip.Close(), w.file.Sync(), w.file.Close()); err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	if err := os.Rename(w.file.Name(), w.path); err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	dir, err := os.Open(filepath.Dir(w.path))
	if err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// abandon removes what was written so far.
func (w *writer) abandon() {
	_ = w.file.Close() // nothing is kept
	_ = os.Remove(w.file.Name())
}

// Archive is an archive whose manifest and checksums fit.
type Archive struct {
	Manifest
	zip *zip.ReadCloser
}

// Open opens an archive and verifies all of it.
func Open(path string) (*Archive, error) {
	z, err := zip.OpenReader(path)
	if errors.Is(err, zip.ErrFormat) {
		return nil, fmt.Errorf("%s is not a backup, or was cut off", path)
	}
	if err != nil {
		return nil, fmt.Errorf("the backup cannot be read: %w", err)
	}
	a := &Archive{zip: z}
	if err := a.verify(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s cannot be restored: %w", path, err), z.Close())
	}
	return a, nil
}

// Close closes the file.
func (a *Archive) Close() error { return a.zip.Close() }

func (a *Archive) verify() error {
	text, err := a.whole(manifestName)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &a.Manifest); err != nil {
		return errors.New("its manifest is not JSON")
	}
	if a.Format != format {
		return fmt.Errorf("it has format %d, and this program reads %d: use the version that wrote it (%s)", a.Format, format, a.Version)
	}
	for _, f := range a.Files {
		sum, n := sha256.New(), int64(0)
		for record, err := range a.records(f.Name) {
			if err != nil {
				return err
			}
			sum.Write(record)
			sum.Write([]byte{'\n'})
			n++
		}
		if n != f.Records || hex.EncodeToString(sum.Sum(nil)) != f.SHA256 {
			return fmt.Errorf("%s was changed or damaged: its checksum is not that of the manifest", f.Name)
		}
	}
	return nil
}

// whole reads a small file.
func (a *Archive) whole(name string) ([]byte, error) {
	f, err := a.zip.Open(name)
	if err != nil {
		return nil, fmt.Errorf("it has no %s", name)
	}
	defer func() { _ = f.Close() }() // it is only read
	text, err := io.ReadAll(io.LimitReader(f, maxRecord))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return text, nil
}

// records yields the lines of a file, each valid until the next one, without their ends.
func (a *Archive) records(name string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		f, err := a.zip.Open(name)
		if err != nil {
			yield(nil, fmt.Errorf("it has no %s", name))
			return
		}
		defer func() { _ = f.Close() }() // it is only read
		lines := bufio.NewScanner(f)
		lines.Buffer(make([]byte, 64<<10), maxRecord+1)
		for lines.Scan() {
			if !yield(lines.Bytes(), nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(nil, fmt.Errorf("read %s: %w", name, err))
		}
	}
}

// has reports whether the archive has a file.
func (a *Archive) has(name string) bool {
	f, err := a.zip.Open(name)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

// decode yields the records of a file as values of a type; numbers of untyped values stay exact.
func decode[T any](a *Archive, name string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for text, err := range a.records(name) {
			var v T
			if err == nil {
				dec := json.NewDecoder(bytes.NewReader(text))
				dec.UseNumber()
				if e := dec.Decode(&v); e != nil {
					err = fmt.Errorf("%s has a record that is not as this program writes it: %w", name, e)
				}
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

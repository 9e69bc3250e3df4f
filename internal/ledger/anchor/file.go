package anchor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/acp-io/acp/internal/ledger"
)

// File appends heads to a file, one JSON document per line. On append-only storage, or storage of another machine, an attacker
// who controls the database cannot change the file.
type File struct{ Path string }

// Name implements Anchor.
func (f *File) Name() string { return "file " + f.Path }

// Keep implements Anchor.
func (f *File) Keep(_ context.Context, h ledger.Head) (err error) {
	text, err := line(h)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(f.Path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("open the anchor file: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	torn, err := endsTorn(file)
	if err != nil {
		return err
	}
	if torn {
		return fmt.Errorf("the last line of %s is not whole: remove that line, then verify the ledger", f.Path)
	}
	if _, err := file.WriteString(text); err != nil {
		return fmt.Errorf("append to the anchor file: %w", err)
	}
	if err := file.Sync(); err != nil {
		return fmt.Errorf("write the anchor file through: %w", err)
	}
	return nil
}

// endsTorn reports whether the last line is incomplete, because the machine stopped while it was written.
func endsTorn(file *os.File) (bool, error) {
	st, err := file.Stat()
	if err != nil {
		return false, fmt.Errorf("read the anchor file: %w", err)
	}
	if st.Size() == 0 {
		return false, nil
	}
	var last [1]byte
	if _, err := file.ReadAt(last[:], st.Size()-1); err != nil {
		return false, fmt.Errorf("read the anchor file: %w", err)
	}
	return last[0] != '\n', nil
}

// Heads implements Anchor.
func (f *File) Heads(context.Context) ([]ledger.Head, error) {
	file, err := os.Open(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the anchor file: %w", err)
	}
	defer func() { _ = file.Close() }() // the file was only read
	return heads(file)
}

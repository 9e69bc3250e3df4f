package ledger

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
)

// MaxLine bounds a line of an export, in bytes. The longest line that the portal writes is about a change outside of it, with up to
// externalchanges.MaxContent bytes of content, of which each may have four bytes in an export, or rarely eight.
const MaxLine = 1 << 20

// FormatError reports the first line of a file that is not a complete line of an export, or not a head of an anchor file.
type FormatError struct {
	Line   int64 // counted from 1
	Reason string
}

func (e *FormatError) Error() string { return fmt.Sprintf("line %d of the file %s", e.Line, e.Reason) }

// Export writes ledger lines as JSON lines: {"seq":1,"hash":"...","text":"..."}. The text is a JSON string, not an object, so
// that every tool preserves the bytes that the hash covers; jq reads it with `.text | fromjson`. Export does not verify the
// chain. It returns the number of lines that were written.
func Export(w io.Writer, lines iter.Seq2[Line, error]) (count int64, err error) {
	out := bufio.NewWriterSize(w, 64<<10)
	for l, err := range lines {
		if err != nil {
			return count, err
		}
		text, err := encode(l)
		if err != nil {
			return count, fmt.Errorf("encode ledger line %d: %w", l.Seq, err)
		}
		if _, err := out.WriteString(text + "\n"); err != nil {
			return count, fmt.Errorf("write the export: %w", err)
		}
		count++
	}
	if err := out.Flush(); err != nil {
		return count, fmt.Errorf("write the export: %w", err)
	}
	return count, nil
}

// ReadExport yields the lines of an export. Its errors are *FormatError, or errors of the reader.
func ReadExport(r io.Reader) iter.Seq2[Line, error] {
	return readLines[Line](r, "an exported ledger line")
}

// ReadHeads yields the heads of an anchor file, which has one {"seq":1,"hash":"...","at":"..."} per line.
func ReadHeads(r io.Reader) iter.Seq2[Head, error] { return readLines[Head](r, "an anchored head") }

// readLines decodes a JSON document from each line and keeps one in memory at a time. The last line must be terminated, so that a
// truncated file is detected.
func readLines[T Line | Head](r io.Reader, what string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		in := bufio.NewReaderSize(r, 64<<10)
		for n := int64(1); ; n++ {
			var v T
			text, err := readLine(in)
			ended := err == io.EOF //nolint:errorlint // a wrapped io.EOF is an error of the reader, not the end of the file
			switch {
			case ended && len(text) == 0:
				return
			case ended:
				yield(v, &FormatError{n, "is cut off"})
				return
			case errors.Is(err, errTooLong):
				yield(v, &FormatError{n, "is not " + what + ": it is too long"})
				return
			case err != nil:
				yield(v, fmt.Errorf("read line %d: %w", n, err))
				return
			}
			if err := json.Unmarshal(text, &v); err != nil || !complete(v) {
				yield(v, &FormatError{n, "is not " + what})
				return
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}

// complete reports whether all fields of a line or head are set, which distinguishes the two from each other and from other JSON.
func complete(v any) bool {
	switch x := v.(type) {
	case Line:
		return x.Seq > 0 && x.Hash != "" && x.Text != ""
	case Head:
		return x.Seq > 0 && x.Hash != "" && !x.At.IsZero()
	}
	return false
}

var errTooLong = errors.New("line is too long")

func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > MaxLine {
			return nil, errTooLong
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

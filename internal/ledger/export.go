package ledger

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
)

// MaxLine bounds a line of an export; the longest that the portal writes is some ten thousand bytes.
const MaxLine = 1 << 20

// FormatError names the line of a file that is not a whole line of an export, or not a head of an anchor file.
type FormatError struct {
	Line   int64 // counted from 1
	Reason string
}

func (e *FormatError) Error() string { return fmt.Sprintf("line %d of the file %s", e.Line, e.Reason) }

// Export writes lines as JSON lines: {"seq":1,"hash":"...","text":"..."}. The text is a string, not an object, so
// that its bytes, which the hash covers, survive every tool; jq reads it with `.text | fromjson`. A broken chain is
// written as it is.
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

// ReadExport yields the lines of an export. Its errors are *FormatError, or what reading gave.
func ReadExport(r io.Reader) iter.Seq2[Line, error] {
	return readLines[Line](r, "an exported ledger line")
}

// ReadHeads yields the heads of an anchor file: one {"seq":1,"hash":"...","at":"..."} a line.
func ReadHeads(r io.Reader) iter.Seq2[Head, error] { return readLines[Head](r, "an anchored head") }

// readLines reads a JSON document from each line, and holds one at a time. Every line has to be whole: a file that was
// cut in the middle of a line is told from one that ends.
func readLines[T Line | Head](r io.Reader, what string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		in := bufio.NewReaderSize(r, 64<<10)
		for n := int64(1); ; n++ {
			var v T
			text, err := readLine(in)
			ended := err == io.EOF //nolint:errorlint // one that is wrapped is somebody's failure, not the end
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
			if err := json.Unmarshal(text, &v); err != nil || !whole(v) {
				yield(v, &FormatError{n, "is not " + what})
				return
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}

// whole tells a line from a head, and both from other JSON.
func whole(v any) bool {
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

package hubble

import (
	"bytes"
	"errors"
	"time"
)

// errUnexpectedFormat means that the JSON may be valid, but is not formatted as Hubble formats it. The generated types then parse
// it.
var errUnexpectedFormat = errors.New("not as Hubble writes it")

// jsonReader reads a JSON text from front to back. It validates only as much as the needed fields require.
type jsonReader struct {
	b []byte
	i int
}

func (l *jsonReader) skipSpace() {
	for l.i < len(l.b) && (l.b[l.i] == ' ' || l.b[l.i] == '\t' || l.b[l.i] == '\r' || l.b[l.i] == '\n') {
		l.i++
	}
}

// consume skips white space and the byte c if c is next, and reports whether it was.
func (l *jsonReader) consume(c byte) bool {
	l.skipSpace()
	if l.i < len(l.b) && l.b[l.i] == c {
		l.i++
		return true
	}
	return false
}

// quoted reads a string and returns the bytes between its quotes, and whether they contain escapes.
func (l *jsonReader) quoted() (s []byte, escaped, ok bool) {
	if !l.consume('"') {
		return nil, false, false
	}
	start := l.i
	for {
		n := bytes.IndexByte(l.b[l.i:], '"')
		if n < 0 {
			return nil, false, false
		}
		end := l.i + n
		l.i = end + 1
		slashes := end
		for slashes > start && l.b[slashes-1] == '\\' {
			slashes--
		}
		if (end-slashes)%2 == 0 {
			s = l.b[start:end]
			return s, bytes.IndexByte(s, '\\') >= 0, true
		}
	}
}

// plainString reads a string without escapes.
func (l *jsonReader) plainString() ([]byte, error) {
	s, escaped, ok := l.quoted()
	if !ok || escaped {
		return nil, errUnexpectedFormat
	}
	return s, nil
}

// skipValue skips a value.
func (l *jsonReader) skipValue() error {
	l.skipSpace()
	if l.i >= len(l.b) {
		return errUnexpectedFormat
	}
	switch l.b[l.i] {
	case '"':
		return l.skipString()
	case '{', '[':
	default:
		start := l.i
		for l.i < len(l.b) && l.b[l.i] != ',' && l.b[l.i] != '}' && l.b[l.i] != ']' {
			l.i++
		}
		if l.i == start {
			return errUnexpectedFormat
		}
		return nil
	}
	for depth := 0; l.i < len(l.b); {
		switch l.b[l.i] {
		case '"':
			if err := l.skipString(); err != nil {
				return err
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		l.i++
		if depth == 0 {
			return nil
		}
	}
	return errUnexpectedFormat
}

// skipString skips the string that begins here.
func (l *jsonReader) skipString() error {
	start := l.i + 1
	for l.i = start; ; {
		n := bytes.IndexByte(l.b[l.i:], '"')
		if n < 0 {
			return errUnexpectedFormat
		}
		end := l.i + n
		l.i = end + 1
		slashes := end
		for slashes > start && l.b[slashes-1] == '\\' {
			slashes--
		}
		if (end-slashes)%2 == 0 {
			return nil
		}
	}
}

// object calls f for each key of an object. f must read or skip the value.
func (l *jsonReader) object(f func(key []byte) error) error {
	if !l.consume('{') {
		return errUnexpectedFormat
	}
	if l.consume('}') {
		return nil
	}
	for {
		key, err := l.plainString()
		if err != nil {
			return err
		}
		if !l.consume(':') {
			return errUnexpectedFormat
		}
		if err := f(key); err != nil {
			return err
		}
		if l.consume(',') {
			continue
		}
		if l.consume('}') {
			return nil
		}
		return errUnexpectedFormat
	}
}

// rawObject skips an object and returns its text.
func (l *jsonReader) rawObject() ([]byte, error) {
	l.skipSpace()
	start := l.i
	if start >= len(l.b) || l.b[start] != '{' {
		return nil, errUnexpectedFormat
	}
	err := l.skipValue()
	return l.b[start:l.i], err
}

// number reads an unsigned integer.
func (l *jsonReader) number() (uint64, error) {
	l.skipSpace()
	const digits = 18 // more digits may overflow
	start, n := l.i, uint64(0)
	for ; l.i < len(l.b) && l.b[l.i] >= '0' && l.b[l.i] <= '9'; l.i++ {
		n = 10*n + uint64(l.b[l.i]-'0')
	}
	if l.i == start || l.i-start > digits || l.i < len(l.b) && bytes.IndexByte([]byte(",} \t\r\n"), l.b[l.i]) < 0 {
		return 0, errUnexpectedFormat
	}
	return n, nil
}

// uint31 reads an unsigned integer of at most 31 bits.
func (l *jsonReader) uint31() (uint32, error) {
	n, err := l.number()
	if err == nil && n > 1<<31-1 {
		err = errUnexpectedFormat
	}
	return uint32(n), err
}

func (l *jsonReader) boolean() (reply, error) {
	l.skipSpace()
	switch rest := l.b[l.i:]; {
	case bytes.HasPrefix(rest, []byte("true")):
		l.i += len("true")
		return replyYes, nil
	case bytes.HasPrefix(rest, []byte("false")):
		l.i += len("false")
		return replyNo, nil
	}
	return replyUnknown, errUnexpectedFormat
}

// enum reads the name of an enumeration's value and returns its number.
func (l *jsonReader) enum(values map[string]int32) (int32, error) {
	s, err := l.plainString()
	if err != nil {
		return 0, err
	}
	v, ok := values[string(s)]
	if !ok {
		return 0, errUnexpectedFormat
	}
	return v, nil
}

// timestamp reads a timestamp into the event.
func (l *jsonReader) timestamp(e *event) error {
	s, err := l.plainString()
	if err != nil {
		return err
	}
	t, err := time.Parse(time.RFC3339Nano, unsafeString(s))
	if err != nil {
		return errUnexpectedFormat
	}
	e.seconds, e.nanos = t.Unix(), int32(t.Nanosecond())
	e.timed = validTime(e.seconds, e.nanos)
	return nil
}

// strings appends the items of an array of strings.
func (l *jsonReader) strings(into *[]string) error {
	if !l.consume('[') {
		return errUnexpectedFormat
	}
	if l.consume(']') {
		return nil
	}
	for {
		s, err := l.plainString()
		if err != nil {
			return err
		}
		*into = append(*into, string(s))
		if l.consume(',') {
			continue
		}
		if l.consume(']') {
			return nil
		}
		return errUnexpectedFormat
	}
}

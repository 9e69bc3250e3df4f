package hubble

import (
	"bytes"
	"errors"
	"time"
)

// errUnsure: the line may well be right, but it is not written as Hubble writes it. The generated types read it.
var errUnsure = errors.New("not as Hubble writes it")

// line is a JSON text that is read from the front. It is read without being checked more than what is needed of it needs.
type line struct {
	b []byte
	i int
}

func (l *line) space() {
	for l.i < len(l.b) && (l.b[l.i] == ' ' || l.b[l.i] == '\t' || l.b[l.i] == '\r' || l.b[l.i] == '\n') {
		l.i++
	}
}

// is steps over the byte when it is the next one.
func (l *line) is(c byte) bool {
	l.space()
	if l.i < len(l.b) && l.b[l.i] == c {
		l.i++
		return true
	}
	return false
}

// quoted steps over a string and returns what is between its quotes, and whether that has escapes.
func (l *line) quoted() (s []byte, escaped, ok bool) {
	if !l.is('"') {
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

// plain returns a string without escapes.
func (l *line) plain() ([]byte, error) {
	s, escaped, ok := l.quoted()
	if !ok || escaped {
		return nil, errUnsure
	}
	return s, nil
}

// skip steps over a value.
func (l *line) skip() error {
	l.space()
	if l.i >= len(l.b) {
		return errUnsure
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
			return errUnsure
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
	return errUnsure
}

// skipString steps over a string that begins here.
func (l *line) skipString() error {
	start := l.i + 1
	for l.i = start; ; {
		n := bytes.IndexByte(l.b[l.i:], '"')
		if n < 0 {
			return errUnsure
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

// object calls f for every key, which has to step over the value.
func (l *line) object(f func(key []byte) error) error {
	if !l.is('{') {
		return errUnsure
	}
	if l.is('}') {
		return nil
	}
	for {
		key, err := l.plain()
		if err != nil {
			return err
		}
		if !l.is(':') {
			return errUnsure
		}
		if err := f(key); err != nil {
			return err
		}
		if l.is(',') {
			continue
		}
		if l.is('}') {
			return nil
		}
		return errUnsure
	}
}

// raw steps over an object and returns it.
func (l *line) raw() ([]byte, error) {
	l.space()
	start := l.i
	if start >= len(l.b) || l.b[start] != '{' {
		return nil, errUnsure
	}
	err := l.skip()
	return l.b[start:l.i], err
}

// number reads a number without sign, point and exponent.
func (l *line) number() (uint64, error) {
	l.space()
	const digits = 18 // more may not fit
	start, n := l.i, uint64(0)
	for ; l.i < len(l.b) && l.b[l.i] >= '0' && l.b[l.i] <= '9'; l.i++ {
		n = 10*n + uint64(l.b[l.i]-'0')
	}
	if l.i == start || l.i-start > digits || l.i < len(l.b) && bytes.IndexByte([]byte(",} \t\r\n"), l.b[l.i]) < 0 {
		return 0, errUnsure
	}
	return n, nil
}

// small reads a number that fits into 31 bits.
func (l *line) small() (uint32, error) {
	n, err := l.number()
	if err == nil && n > 1<<31-1 {
		err = errUnsure
	}
	return uint32(n), err
}

func (l *line) truth() (reply, error) {
	l.space()
	switch rest := l.b[l.i:]; {
	case bytes.HasPrefix(rest, []byte("true")):
		l.i += len("true")
		return replyYes, nil
	case bytes.HasPrefix(rest, []byte("false")):
		l.i += len("false")
		return replyNo, nil
	}
	return replyUnknown, errUnsure
}

// name reads an enumeration's value by its name.
func (l *line) name(values map[string]int32) (int32, error) {
	s, err := l.plain()
	if err != nil {
		return 0, err
	}
	v, ok := values[string(s)]
	if !ok {
		return 0, errUnsure
	}
	return v, nil
}

// instant reads a timestamp.
func (l *line) instant(e *event) error {
	s, err := l.plain()
	if err != nil {
		return err
	}
	t, err := time.Parse(time.RFC3339Nano, view(s))
	if err != nil {
		return errUnsure
	}
	e.seconds, e.nanos = t.Unix(), int32(t.Nanosecond())
	e.timed = validTime(e.seconds, e.nanos)
	return nil
}

// strings appends the members of an array of strings.
func (l *line) strings(into *[]string) error {
	if !l.is('[') {
		return errUnsure
	}
	if l.is(']') {
		return nil
	}
	for {
		s, err := l.plain()
		if err != nil {
			return err
		}
		*into = append(*into, string(s))
		if l.is(',') {
			continue
		}
		if l.is(']') {
			return nil
		}
		return errUnsure
	}
}

package exporter

import "bytes"

// maxLine bounds the length of a line in bytes; Hubble's lines have about a thousand bytes. A longer line is passed on truncated,
// so that it is counted as unreadable instead of being ignored.
const maxLine = 1 << 20

// lineSplitter splits the content that is read into lines.
type lineSplitter struct {
	onLine func([]byte)
	part   []byte
	// truncated is true while the rest of a line that was too long is skipped.
	truncated bool
}

func (l *lineSplitter) write(b []byte) {
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			l.appendPart(b)
			return
		}
		switch {
		case l.truncated:
			l.truncated = false
		case len(l.part) > 0:
			l.part = append(l.part, b[:end]...)
			l.onLine(l.part)
			l.part = l.part[:0]
		default:
			l.onLine(b[:end])
		}
		b = b[end+1:]
	}
}

func (l *lineSplitter) appendPart(b []byte) {
	if l.truncated {
		return
	}
	l.part = append(l.part, b...)
	if len(l.part) > maxLine {
		l.onLine(l.part[:maxLine])
		l.part, l.truncated = nil, true
	}
}

// flush passes on the last line although its end is missing.
func (l *lineSplitter) flush() {
	if len(l.part) > 0 {
		l.onLine(l.part)
	}
	l.part, l.truncated = l.part[:0], false
}

// reset discards an incomplete line.
func (l *lineSplitter) reset() { l.part, l.truncated = l.part[:0], false }

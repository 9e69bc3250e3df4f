package exporter

import "bytes"

// maxLine bounds a line; Hubble's are about a thousand bytes. What is longer is handed over cut, so that it counts as
// unreadable and is not missed in silence.
const maxLine = 1 << 20

// lines cuts what is read into lines.
type lines struct {
	take func([]byte)
	part []byte
	// cut: the line was too long, and the rest of it is still to come.
	cut bool
}

func (l *lines) feed(b []byte) {
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			l.keep(b)
			return
		}
		switch {
		case l.cut:
			l.cut = false
		case len(l.part) > 0:
			l.part = append(l.part, b[:end]...)
			l.take(l.part)
			l.part = l.part[:0]
		default:
			l.take(b[:end])
		}
		b = b[end+1:]
	}
}

func (l *lines) keep(b []byte) {
	if l.cut {
		return
	}
	l.part = append(l.part, b...)
	if len(l.part) > maxLine {
		l.take(l.part[:maxLine])
		l.part, l.cut = nil, true
	}
}

// end hands over a line that will not be finished.
func (l *lines) end() {
	if len(l.part) > 0 {
		l.take(l.part)
	}
	l.part, l.cut = l.part[:0], false
}

// forget drops a line whose beginning is gone.
func (l *lines) forget() { l.part, l.cut = l.part[:0], false }

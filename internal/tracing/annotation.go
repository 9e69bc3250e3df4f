package tracing

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// MaxChanges is the number of changes in an annotation: the latest ones. An object has up to 512 statements, but only the
	// changes that are still on their way to the members are followed.
	MaxChanges = 16
	// MaxAge is the time for which a change is followed. Older changes are dropped when the annotation is written, and ignored
	// when it is read.
	MaxAge = time.Hour
	// maxSkew is how far in the future a change may be, for clocks that differ.
	maxSkew = time.Minute
	// maxSID is the maximum length of a sid in the annotation. The portal's sids are shorter.
	maxSID = 32
	// MaxAnnotation bounds the annotation, in bytes. A longer one is not ACP's and is ignored as a whole.
	MaxAnnotation = MaxChanges * (maxSID + len(" ") + positionLength + len(" 18446744073709551615") + len(","))
)

// Change is the last change of a statement, with the position of its trace.
type Change struct {
	SID      string
	Position string
	At       time.Time // whole seconds
}

var sidForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

func (c Change) valid(now time.Time) bool {
	_, ok := parse(c.Position)
	return ok && len(c.SID) <= maxSID && sidForm.MatchString(c.SID) && now.Sub(c.At) <= MaxAge && c.At.Sub(now) <= maxSkew
}

// ParseChanges parses an annotation, the newest change first. The annotation can have been written by anybody: entries that
// are invalid or too old are left out, and so is everything beyond the bounds.
func ParseChanges(annotation string, now time.Time) []Change {
	if annotation == "" || len(annotation) > MaxAnnotation {
		return nil
	}
	var out []Change
	for entry := range strings.SplitSeq(annotation, ",") {
		if len(out) == MaxChanges {
			break
		}
		fields := strings.Split(entry, " ")
		if len(fields) != 3 {
			continue
		}
		seconds, err := strconv.ParseInt(fields[2], 10, 64)
		c := Change{SID: fields[0], Position: fields[1], At: time.Unix(seconds, 0)}
		if err != nil || !c.valid(now) || slices.ContainsFunc(out, func(o Change) bool { return o.SID == c.SID }) {
			continue
		}
		out = append(out, c)
	}
	return out
}

// AddChanges returns an annotation with new changes before those that it has, within the bounds. An entry of the same sid is
// replaced.
func AddChanges(annotation string, now time.Time, changes ...Change) string {
	var parts []string
	all := slices.Concat(changes, ParseChanges(annotation, now))
	for i, c := range all {
		if len(parts) == MaxChanges {
			break
		}
		c.At = c.At.Truncate(time.Second)
		if !c.valid(now) || slices.ContainsFunc(all[:i], func(o Change) bool { return o.SID == c.SID }) {
			continue
		}
		parts = append(parts, c.SID+" "+c.Position+" "+strconv.FormatInt(c.At.Unix(), 10))
	}
	return strings.Join(parts, ",")
}

package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/acp-io/acp/internal/message"
)

// document is one YAML or JSON document of a file.
type document struct {
	text []byte
	// number is the position among the documents that are not empty, from 1.
	number int
	// first is the line of the file at which the text begins, minus one.
	first int
	// json is set for a value of a file or stream of JSON values. It is decoded as JSON and not as YAML, because the
	// escapes in strings differ.
	json bool
}

// normalize returns text as UTF-8 without a byte order mark and with "\n" as line end, or the line and a description of
// why it cannot. Every kind of line end that YAML defines separates lines, so that no part of a file is read as the
// rest of a comment.
func normalize(text []byte) (out []byte, line int, problem message.Message) {
	for _, mark := range [][]byte{{0xff, 0xfe}, {0xfe, 0xff}, {0, 0, 0xfe, 0xff}} {
		if bytes.HasPrefix(text, mark) {
			return nil, 1, message.ManifestUtf16()
		}
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if bytes.IndexByte(text, '\r') >= 0 {
		text = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
	}
	lineAt := func(i int) int { return bytes.Count(text[:i], []byte("\n")) + 1 }
	if i := bytes.IndexByte(text, 0); i >= 0 {
		return nil, lineAt(i), message.ManifestZeroByte()
	}
	if !utf8.Valid(text) {
		i := 0
		for i < len(text) {
			r, size := utf8.DecodeRune(text[i:])
			if r == utf8.RuneError && size <= 1 {
				break
			}
			i += size
		}
		return nil, lineAt(i), message.ManifestNotUtf8()
	}
	return text, 0, message.Message{}
}

// split divides a file at its lines that begin with "---", as kubectl does, and a sequence of JSON values into single
// values. Empty documents are left out.
func split(text []byte) []document {
	var out []document
	start, startLine, line := 0, 0, 0
	cut := func(end int) {
		body := document{text: text[start:end], first: startLine}
		values := body.jsonValues()
		if values == nil {
			values = []document{body}
		}
		for _, d := range values {
			if !d.empty() {
				d.number = len(out) + 1
				out = append(out, d)
			}
		}
	}
	for at := 0; at < len(text); {
		next := len(text)
		if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
			next = at + i + 1
		}
		if rest, ok := bytes.CutPrefix(text[at:next], []byte("---")); ok && (len(bytes.TrimSpace(rest)) == 0 || rest[0] == ' ' || rest[0] == '\t') {
			cut(at)
			start, startLine = next, line+1
			if content := bytes.TrimSpace(rest); len(content) > 0 && content[0] != '#' {
				start, startLine = at+len("---"), line // "--- {a: b}" has its content on the same line
			}
		}
		at = next
		line++
	}
	cut(len(text))
	return out
}

// jsonValues returns the values of a text that is a sequence of JSON values and nothing else, or nil.
func (d *document) jsonValues() []document {
	if trimmed := bytes.TrimSpace(d.text); len(trimmed) == 0 || trimmed[0] != '{' && trimmed[0] != '[' {
		return nil
	}
	var out []document
	decoder := json.NewDecoder(bytes.NewReader(d.text))
	for line, counted := d.first, 0; ; {
		var value json.RawMessage
		switch err := decoder.Decode(&value); {
		case errors.Is(err, io.EOF):
			return out
		case err != nil:
			return nil
		}
		begins := int(decoder.InputOffset()) - len(value)
		line += bytes.Count(d.text[counted:begins], []byte("\n"))
		counted = begins
		out = append(out, document{text: d.text[begins : begins+len(value)], first: line, json: true})
	}
}

// empty reports whether the YAML parser finds no content in a document. A document that cannot be parsed is not empty.
func (d *document) empty() bool {
	if len(bytes.TrimSpace(d.text)) == 0 {
		return true
	}
	for l := range bytes.Lines(d.text) { // Most documents begin with content.
		if l = bytes.TrimSpace(l); len(l) > 0 && l[0] != '#' {
			if !bytes.Equal(l, []byte("...")) {
				return false
			}
			break
		}
	}
	var n yamlv3.Node
	return errors.Is(yamlv3.NewDecoder(bytes.NewReader(d.text)).Decode(&n), io.EOF)
}

var lineInError = regexp.MustCompile(`\bline (\d+)`)

// lineOf returns the line of the file to which a YAML error refers.
func (d *document) lineOf(err error) int {
	m := lineInError.FindStringSubmatch(err.Error())
	if m == nil {
		return d.begins()
	}
	n, convErr := strconv.Atoi(m[1])
	if convErr != nil {
		return d.begins()
	}
	return d.first + n
}

// describe returns the text of a YAML error with line numbers of the file instead of the document.
func (d *document) describe(err error) message.Message {
	if own := (*message.Error)(nil); errors.As(err, &own) {
		return own.Message
	}
	return message.Verbatim(lineInError.ReplaceAllStringFunc(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "), func(s string) string {
		n, convErr := strconv.Atoi(strings.TrimPrefix(s, "line "))
		if convErr != nil {
			return s
		}
		return "line " + strconv.Itoa(d.first+n)
	}))
}

// format returns the name of the document's format for messages.
func (d *document) format() string {
	if d.json {
		return "JSON"
	}
	return "YAML"
}

// begins returns the line of the first content.
func (d *document) begins() int {
	n := 0
	for l := range bytes.Lines(d.text) {
		n++
		if l = bytes.TrimSpace(l); len(l) > 0 && l[0] != '#' {
			break
		}
	}
	return d.first + n
}

// tree returns the document's nodes with their lines. It fails if text follows the end of the document, because nothing
// would read that part, and if aliases make the document much larger than its text.
func (d *document) tree() (*yamlv3.Node, error) {
	decoder := yamlv3.NewDecoder(bytes.NewReader(d.text))
	var n, rest yamlv3.Node
	if err := decoder.Decode(&n); err != nil {
		return nil, err
	}
	if err := decoder.Decode(&rest); !errors.Is(err, io.EOF) {
		return nil, errTrailing
	}
	if len(n.Content) == 0 {
		return nil, nil
	}
	if expanded(&n, len(d.text), map[*yamlv3.Node]int{}) > len(d.text)+minExpanded {
		return nil, errAliases
	}
	return n.Content[0], nil
}

// minExpanded is the number of nodes that a document with aliases may have in addition to the length of its text.
const minExpanded = 10_000

var (
	errTrailing = message.ManifestTrailing().Err()
	errAliases  = message.ManifestAliases().Err()
)

// expanded counts the nodes below a node with aliases expanded, up to a little more than the limit.
func expanded(n *yamlv3.Node, limit int, known map[*yamlv3.Node]int) int {
	if n.Kind == yamlv3.AliasNode {
		n = n.Alias
	}
	if count, ok := known[n]; ok {
		return count
	}
	known[n] = limit + minExpanded + 1 // The value for an alias of an enclosing node.
	count := 1
	for _, c := range n.Content {
		if count += expanded(c, limit, known); count > limit+minExpanded {
			count = limit + minExpanded + 1
			break
		}
	}
	known[n] = count
	return count
}

var pathStep = regexp.MustCompile(`[^.\[\]]+`)

// descend follows a field path such as spec.statements[0].subjects as far as the document has it, and returns the last
// node that exists.
func descend(n *yamlv3.Node, path string) *yamlv3.Node {
	for _, step := range pathStep.FindAllString(path, -1) {
		next := child(n, step)
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

func child(n *yamlv3.Node, step string) *yamlv3.Node {
	switch {
	case n == nil:
	case n.Kind == yamlv3.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i]
		}
	case n.Kind == yamlv3.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == step {
				return n.Content[i+1]
			}
		}
	}
	return nil
}

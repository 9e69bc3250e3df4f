package manifest

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
)

// document is one YAML document of a file.
type document struct {
	text []byte
	// number counts from 1 among the documents that are not empty, as people count them.
	number int
	// first is the line of the file that the text begins at, less one.
	first int
}

// split cuts a file at its lines that begin with "---", as kubectl does. What holds nothing but comments is left out.
func split(text []byte) []document {
	var out []document
	start, startLine, line := 0, 0, 0
	cut := func(end int) {
		if body := text[start:end]; !blank(body) {
			out = append(out, document{text: body, number: len(out) + 1, first: startLine})
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

func blank(text []byte) bool {
	for l := range bytes.Lines(text) {
		if l = bytes.TrimSpace(l); len(l) > 0 && l[0] != '#' && !bytes.Equal(l, []byte("...")) {
			return false
		}
	}
	return true
}

var lineInError = regexp.MustCompile(`\bline (\d+)`)

// lineOf finds the line that a YAML error is about, in the file.
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

// describe is a YAML error with the lines of the file instead of the document's.
func (d *document) describe(err error) string {
	return lineInError.ReplaceAllStringFunc(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "), func(s string) string {
		n, convErr := strconv.Atoi(strings.TrimPrefix(s, "line "))
		if convErr != nil {
			return s
		}
		return "line " + strconv.Itoa(d.first+n)
	})
}

// begins is the line of the first content.
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

// tree is the document with the lines of its parts; nil when it cannot be read so.
func (d *document) tree() *yamlv3.Node {
	var n yamlv3.Node
	if err := yamlv3.Unmarshal(d.text, &n); err != nil || len(n.Content) == 0 {
		return nil
	}
	return n.Content[0]
}

var pathStep = regexp.MustCompile(`[^.\[\]]+`)

// descend follows a field path such as spec.statements[0].subjects as far as the document goes. It returns the last
// part that is there.
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

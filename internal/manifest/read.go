package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// MaxInput is how many bytes of text one Read accepts in all. The objects take about forty times as much memory
// (docs/cli.md has the measurement).
const MaxInput = 256 << 20

// Reader reads objects.
type Reader struct {
	// Strict makes kinds that are not ACP's an error; otherwise they are ignored with a warning.
	Strict bool
	// Stdin is read for the path "-".
	Stdin io.Reader

	validators validators
	// left is the unused part of MaxInput.
	left int64
}

// Read reads files, folders (their *.yaml, *.yml and *.json, including subfolders) and "-". It returns an error only if
// something cannot be read at all; all errors in the content are issues of the set.
func (r *Reader) Read(ctx context.Context, paths ...string) (*Set, error) {
	r.left = MaxInput
	set := newSet()
	seen := map[string]bool{}
	for _, path := range paths {
		files, err := expand(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			target := linkTarget(file)
			if seen[target] {
				continue // The file was named twice, is in a folder that was named, too, or has another name by a link.
			}
			seen[target] = true
			text, err := r.content(file)
			if err != nil {
				return nil, err
			}
			if err := r.parse(ctx, set, file, text); err != nil {
				return nil, err
			}
		}
	}
	sortIssues(set.Issues)
	return set, nil
}

func (r *Reader) content(file string) ([]byte, error) {
	in := r.Stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("read objects: %w", err)
		}
		defer f.Close()
		in = f
	}
	if in == nil {
		return nil, fmt.Errorf("read objects: there is no standard input")
	}
	text, err := io.ReadAll(io.LimitReader(in, r.left+1))
	r.left -= int64(len(text))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read objects from %s: %w", file, err)
	case r.left < 0:
		return nil, fmt.Errorf("read objects from %s: with it there are more than %d MiB: name fewer files", file, MaxInput>>20)
	}
	return text, nil
}

// linkTarget returns the path of the file that a path leads to through symbolic links. Without it, the mount of a ConfigMap, in which each file
// is a link into a hidden folder, would have every object twice.
func linkTarget(file string) string {
	if file == "-" {
		return file
	}
	if target, err := filepath.EvalSymlinks(file); err == nil {
		return target
	}
	return file // The following read of the file reports the error.
}

// expand returns the files of a folder, sorted: those that `kubectl apply -R -f` applies (k8s.io/cli-runtime, ExpandPathsToFileVisitors), which
// selects them by their extension and does not follow links to folders. Hidden files and folders are no exception, because an object that kubectl
// applied and that was not read here would be a change that no lint and no diff shows.
func expand(path string) ([]string, error) {
	if path == "-" {
		return []string{path}, nil
	}
	var files []string
	err := filepath.WalkDir(path, func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir():
		case p == path, slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(p)): // A file that is named may have any extension.
			files = append(files, filepath.Clean(p))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read objects: %w", err)
	}
	return files, nil
}

func (r *Reader) parse(ctx context.Context, set *Set, file string, text []byte) error {
	text, line, problem := normalize(text)
	if !problem.IsZero() {
		set.report(Position{File: file, Line: line}, Key{}, false, problem)
		return nil
	}
	for _, d := range split(text) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.parseDocument(ctx, set, file, &d); err != nil {
			return err
		}
	}
	return nil
}

// place locates an object in its file: its position, and its node in the document, which is nil if it could not be read.
type place struct {
	Position
	doc  *document
	node *yamlv3.Node
}

// at returns the place of a node of the document.
func (p place) at(n *yamlv3.Node) place {
	if n != nil {
		p.Line, p.node = p.doc.first+n.Line, n
	} else {
		p.node = nil
	}
	return p
}

func (r *Reader) parseDocument(ctx context.Context, set *Set, file string, d *document) error {
	at := place{Position: Position{File: file, Document: d.number, Line: d.begins()}, doc: d}
	tree, err := d.tree()
	var object map[string]any
	if !errors.Is(err, errAliases) { // Aliases are expanded only if the result is bounded.
		var decodeErr error
		object, decodeErr = d.decode()
		switch {
		case decodeErr != nil:
			err = decodeErr
		case d.json:
			err = nil // The tree is then used for line numbers only.
		}
	}
	if err != nil {
		at.Line = d.lineOf(err)
		set.report(at.Position, Key{}, false, message.ManifestNotOfFormat(d.format(), d.describe(err)))
		return nil
	}
	if object == nil {
		set.report(at.Position, Key{}, false, message.ManifestNotAnObject())
		return nil
	}
	at.node = tree
	return r.object(ctx, set, object, at)
}

// decode returns the object of a document, with integers as int64 because schema validation expects them, or nil if the
// document is not a map. A duplicate key is an error.
func (d *document) decode() (map[string]any, error) {
	raw := d.text
	if !d.json {
		var err error
		if raw, err = yaml.YAMLToJSONStrict(d.text); err != nil {
			return nil, err //nolint:wrapcheck // describe puts it into words
		}
	}
	var value any
	problems, err := kjson.UnmarshalStrict(raw, &value)
	if err = errors.Join(append(problems, err)...); err != nil {
		return nil, err
	}
	object, _ := value.(map[string]any)
	return object, nil
}

// object adds an object, or a list of objects in kubectl's format.
func (r *Reader) object(ctx context.Context, set *Set, object map[string]any, at place) error {
	u := &unstructured.Unstructured{Object: object}
	k := Key{Kind: u.GetKind(), Name: u.GetName()}
	if items, ok := object["items"].([]any); ok && strings.HasSuffix(k.Kind, "List") {
		return r.items(ctx, set, items, at)
	}
	group, version, _ := strings.Cut(u.GetAPIVersion(), "/")
	switch {
	case k.Kind == "" || u.GetAPIVersion() == "":
		set.report(at.Position, k, false, message.ManifestNoKind())
		return nil
	case group == kubefedGroup && k.Kind == KubeFedCluster && k.Name != "":
		set.add(u, at.Position)
		return nil
	case group != v1alpha1.GroupVersion.Group:
		set.report(at.Position, k, !r.Strict, message.ManifestOtherGroup(u.GetAPIVersion()))
		return nil
	case version != v1alpha1.GroupVersion.Version:
		set.report(at.Position, k, false, message.ManifestVersionNotServed(u.GetAPIVersion(), v1alpha1.GroupVersion.String()))
		return nil
	}
	v, err := r.validators.of(k.Kind)
	if err != nil {
		return err
	}
	if v == nil {
		set.report(at.Position, k, !r.Strict, message.ManifestUnknownKind(v1alpha1.GroupVersion.String()))
		return nil
	}
	errs := v.validate(ctx, object)
	for _, e := range errs {
		set.report(at.at(descend(at.node, e.Field)).Position, k, false, fieldMessage(e))
	}
	if len(errs) == 0 && set.add(u, at.Position) && k.Kind == "AccessControlPolicy" {
		set.locate(k.Name, at)
	}
	return nil
}

func (r *Reader) items(ctx context.Context, set *Set, items []any, at place) error {
	nodes := child(at.node, "items")
	for i, item := range items {
		where := at.at(itemNode(nodes, i))
		object, ok := item.(map[string]any)
		if !ok {
			set.report(where.Position, Key{}, false, message.ManifestListItem(i+1))
			continue
		}
		if err := r.object(ctx, set, object, where); err != nil {
			return err
		}
	}
	return nil
}

// locate records the lines of the statements of a policy.
func (s *Set) locate(policyName string, at place) {
	statements := child(child(at.node, "spec"), "statements")
	if statements == nil {
		return
	}
	for _, n := range statements.Content {
		if sid := child(n, "sid"); sid != nil {
			s.statements[policy.Ref{Policy: policyName, SID: sid.Value}] = at.at(n).Position
		}
	}
}

func itemNode(n *yamlv3.Node, i int) *yamlv3.Node {
	if n == nil || i >= len(n.Content) {
		return nil
	}
	return n.Content[i]
}

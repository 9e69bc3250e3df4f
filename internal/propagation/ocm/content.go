package ocm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
)

const (
	// maxExpression is the largest length of one expression in bytes. The agent's parser refuses more than 100,000 code points.
	maxExpression = 60000
	// maxText is the largest number of characters of a text that the agent copies from the member into its report, which may have
	// 32768 in all. A report that is too large is refused by the host, and an earlier one would stay.
	maxText = 1024
)

// reservedLabels are the prefixes of the label keys of which only the recorded ones may be on an object, because policies select
// groups of addresses by them.
var reservedLabels = []string{"acp.io/", "class.acp.io/"}

// exactExpressions returns CEL expressions that are all true if and only if an object has the recorded spec, the recorded labels, no other
// reserved label, no annotation that changes what Istio enforces, and no other content. An expression that fails counts as false.
func exactExpressions(spec map[string]any, labels map[string]string) ([]string, error) {
	var only []string
	for _, prefix := range reservedLabels {
		only = append(only, fmt.Sprintf("k.startsWith(%s)", quote(prefix)))
	}
	keys := slices.Sorted(maps.Keys(labels))
	quoted := make([]string, len(keys))
	for i, k := range keys {
		quoted[i] = quote(k)
	}
	out := []string{
		"object.all(k, k in ['apiVersion', 'kind', 'metadata', 'spec', 'status'])",
		fmt.Sprintf("object.metadata.?labels.orValue({}).all(k, !(%s) || k in [%s])", strings.Join(only, " || "), strings.Join(quoted, ", ")),
		"object.metadata.?annotations.orValue({}).all(k, !k.startsWith('istio.io/'))",
	}
	for _, k := range keys {
		out = append(out, fmt.Sprintf("object.metadata.?labels[?%s].orValue('') == %s", quote(k), quote(labels[k])))
	}
	raw, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("encode the spec: %w", err)
	}
	var plain any
	numbers := json.NewDecoder(bytes.NewReader(raw))
	numbers.UseNumber()
	if err := numbers.Decode(&plain); err != nil {
		return nil, fmt.Errorf("decode the spec: %w", err)
	}
	return appendEqual(out, "object.spec", plain)
}

// errTextTooLong reports a text that no expression can contain, so that the agent cannot compare it.
var errTextTooLong = errors.New("a text is too long to be compared")

// appendEqual appends expressions that compare the value at a path with a wanted one. A value whose literal is too long for one expression
// is compared part by part.
func appendEqual(out []string, path string, want any) ([]string, error) {
	var b strings.Builder
	if writeLiteral(&b, want); b.Len() <= maxExpression {
		return append(out, path+" == "+b.String()), nil
	}
	var err error
	switch v := want.(type) {
	case map[string]any:
		out = append(out, fmt.Sprintf("type(%s) == map && size(%s) == %d", path, path, len(v)))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if out, err = appendEqual(out, path+"["+quote(k)+"]", v[k]); err != nil {
				return nil, err
			}
		}
		return out, nil
	case []any:
		return appendEqualList(out, path, v)
	default:
		return nil, fmt.Errorf("%w: %s has more than %d bytes", errTextTooLong, path, maxExpression)
	}
}

// appendEqualList appends expressions that compare a list in runs of consecutive elements, as many as fit into one expression.
func appendEqualList(out []string, path string, want []any) ([]string, error) {
	out = append(out, fmt.Sprintf("type(%s) == list && size(%s) == %d", path, path, len(want)))
	var b strings.Builder
	flush := func() {
		if b.Len() > 0 {
			out = append(out, b.String())
			b.Reset()
		}
	}
	for i, v := range want {
		at := fmt.Sprintf("%s[%d]", path, i)
		var one strings.Builder
		if writeLiteral(&one, v); len(at)+4+one.Len() > maxExpression {
			flush()
			var err error
			if out, err = appendEqual(out, at, v); err != nil {
				return nil, err
			}
			continue
		}
		// The number of operators in one expression is limited, too, because the agent's parser nests them.
		if b.Len()+one.Len()+len(at)+8 > maxExpression || strings.Count(b.String(), " && ") > 100 {
			flush()
		}
		if b.Len() > 0 {
			b.WriteString(" && ")
		}
		b.WriteString(at + " == " + one.String())
	}
	flush()
	return out, nil
}

// writeLiteral writes a JSON value as a CEL literal.
func writeLiteral(w io.StringWriter, v any) {
	text := func(s string) { _, _ = w.WriteString(s) } // a strings.Builder returns no error
	switch v := v.(type) {
	case nil:
		text("null")
	case bool:
		text(fmt.Sprint(v))
	case string:
		text(quote(v))
	case json.Number:
		text(v.String())
	case []any:
		text("[")
		for i, e := range v {
			if i > 0 {
				text(",")
			}
			writeLiteral(w, e)
		}
		text("]")
	case map[string]any:
		text("{")
		for i, k := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				text(",")
			}
			text(quote(k) + ":")
			writeLiteral(w, v[k])
		}
		text("}")
	}
}

// quote returns a CEL literal of a text. JSON escapes every character in a way that CEL has, too.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a text can always be encoded
	return strings.TrimSuffix(b.String(), "\n")
}

// separator separates the parts of a report. It is in no nonce, UID, resource version or label.
const separator = "|"

// reportMessage returns the expression of the message in which the agent reports on an object. result is whether it is exactly as recorded.
func reportMessage(nonce string) string {
	label := func(k string) string { return fmt.Sprintf("object.metadata.?labels[?%s].orValue('')", quote(k)) }
	parts := []string{
		quote(nonce), "string(result)", "object.metadata.uid", "object.metadata.resourceVersion",
		label(v1alpha1.LabelRevision), label(v1alpha1.LabelManagedBy), label(federation.LabelKubeFed),
		// The message of a dataplane that rejects the object is last, because it can contain anything.
		fmt.Sprintf("object.?status.?conditions.orValue([]).filter(c, c.?type.orValue('') == 'Valid' && c.?status.orValue('') != 'True')"+
			".map(c, string(c.?message.orValue('')) == '' ? %[1]s : string(c.?message.orValue('')))"+
			".map(m, size(m) > %[2]d ? m.substring(0, %[2]d) : m).join('; ')", quote(noReason), maxText),
	}
	return strings.Join(parts, " + '"+separator+"' + ")
}

// noReason is reported for an object that the dataplane does not accept without a message.
const noReason = "cilium-operator does not accept the policy, and does not say why"

// report is what the agent reported on an object.
type report struct {
	nonce string
	// exact reports whether the object has exactly the recorded content of the ManifestWork with the nonce.
	exact                               bool
	uid, version                        string
	revision, managedBy, kubeFed, error string
}

// parseReport parses the message of a condition. Anything else than a report, such as the text of an error, is none.
func parseReport(message string) (report, bool) {
	p := strings.SplitN(message, separator, 8)
	if len(p) != 8 {
		return report{}, false
	}
	for i := range p {
		p[i] = cut(p[i]) // the agent does so, but what claims to be the agent may not
	}
	return report{nonce: p[0], exact: p[1] == "true", uid: p[2], version: p[3], revision: p[4], managedBy: p[5], kubeFed: p[6], error: p[7]}, true
}

// cut returns the first maxText characters of a text that a member reported. It never refers to the memory of a larger text.
func cut(text string) string {
	characters := 0
	for i := range text {
		if characters == maxText {
			text = text[:i]
			break
		}
		characters++
	}
	return strings.Clone(text)
}

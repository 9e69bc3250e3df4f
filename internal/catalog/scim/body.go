package scim

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	scimerrors "github.com/elimity-com/scim/errors"
)

// readBody reads the body of a request and replaces it by a reader of what was read. It refuses filters, paths and numbers of operations that
// cost too much to parse, before they are parsed, and rewrites the forms of an attribute that Entra ID sends and the schema does not have.
func readBody(r *http.Request) *scimerrors.ScimError {
	if len(r.URL.Query().Get("filter")) > maxFilter {
		return &scimerrors.ScimErrorInvalidFilter
	}
	if r.Body == nil || r.Method != http.MethodPost && r.Method != http.MethodPut && r.Method != http.MethodPatch {
		return nil
	}
	body, err := io.ReadAll(r.Body) // in memory already; see core.Server
	if err != nil {
		return &scimerrors.ScimErrorInvalidSyntax
	}
	var in struct {
		Filter     string
		Operations []struct{ Path string }
	}
	// The library says what is wrong with a body. After a value of a wrong type, the others are decoded.
	_ = json.Unmarshal(body, &in)
	if len(in.Operations) > maxOperations {
		return &scimerrors.ScimErrorTooMany
	}
	if len(in.Filter) > maxFilter || slices.ContainsFunc(in.Operations, func(o struct{ Path string }) bool { return len(o.Path) > maxFilter }) {
		return &scimerrors.ScimErrorInvalidFilter
	}
	if r.Method == http.MethodPatch {
		body = rewriteOperations(body)
	} else {
		body = rewriteUser(body)
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return nil
}

const managerAttribute = "manager"

// managerPath is the path of the manager of a user.
var managerPath = enterprise + ":" + managerAttribute

// rewriteOperations returns a patch whose operations on the manager have the form of RFC 7643. Entra ID sends the path without the schema, and
// as the value the id of the manager, or a list with one manager. Everything else is returned as it is, also a body that cannot be decoded.
func rewriteOperations(body []byte) []byte {
	var in struct {
		Schemas    json.RawMessage   `json:"schemas"`
		Operations []json.RawMessage `json:"Operations"`
	}
	if json.Unmarshal(body, &in) != nil {
		return body
	}
	changed := false
	for i, raw := range in.Operations {
		var o struct {
			Op    string `json:"op"`
			Path  string `json:"path,omitempty"`
			Value any    `json:"value,omitempty"`
		}
		if json.Unmarshal(raw, &o) != nil {
			continue
		}
		switch {
		case strings.EqualFold(o.Path, managerAttribute), strings.EqualFold(o.Path, managerPath):
			o.Path, o.Value = managerPath, managerValue(o.Value)
			if strings.EqualFold(o.Op, "remove") {
				o.Value = nil
			}
		case o.Path == "":
			values, ok := o.Value.(map[string]any)
			if !ok || !rewriteManagers(values) {
				continue
			}
		default:
			continue
		}
		out, err := json.Marshal(o)
		if err != nil {
			continue
		}
		in.Operations[i], changed = out, true
	}
	if !changed {
		return body
	}
	out, err := json.Marshal(in)
	if err != nil {
		return body
	}
	return out
}

// rewriteManagers rewrites the managers among the attributes of a user, or of an operation without a path, and reports whether there is one
// that had another form.
func rewriteManagers(values map[string]any) bool {
	changed := false
	for name, v := range values {
		switch {
		case strings.EqualFold(name, managerPath):
			if value := managerValue(v); !isObject(v) {
				values[name], changed = value, true
			}
		case strings.EqualFold(name, enterprise):
			extension, _ := v.(map[string]any)
			for sub, v := range extension {
				if strings.EqualFold(sub, managerAttribute) && !isObject(v) && v != nil {
					extension[sub], changed = managerValue(v), true
				}
			}
		}
	}
	return changed
}

// rewriteUser returns a user whose manager has the form of RFC 7643. Everything else is returned as it is.
func rewriteUser(body []byte) []byte {
	if !bytes.Contains(body, []byte(managerAttribute)) {
		return body
	}
	var in map[string]any
	if json.Unmarshal(body, &in) != nil || !rewriteManagers(in) {
		return body
	}
	out, err := json.Marshal(in)
	if err != nil {
		return body
	}
	return out
}

func isObject(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

// managerValue returns the complex value of a manager: an id becomes the value of a manager, and a list with one value becomes this value.
// An empty id stands for no manager. Other values are returned as they are.
func managerValue(v any) any {
	if list, ok := v.([]any); ok && len(list) == 1 {
		v = list[0]
	}
	if id, ok := v.(string); ok {
		return map[string]any{"value": id}
	}
	return v
}

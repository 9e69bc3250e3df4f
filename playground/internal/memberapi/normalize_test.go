package memberapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// outline returns the types, names and generations of events.
func outline(events []any) []string {
	var out []string
	for _, e := range events {
		event, _ := e.(map[string]any)
		metadata, _ := event["metadata"].(map[string]any)
		out = append(out, fmt.Sprint(event["type"], " ", metadata["name"], " ", metadata["generation"]))
	}
	return out
}

func clone(o map[string]any) map[string]any {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil || out == nil {
		return map[string]any{}
	}
	return out
}

// normalize returns the part of an answer on which the adapter depends: everything but messages, and of identifiers and times only
// whether they are present.
func normalize(o map[string]any) map[string]any {
	out := map[string]any{"apiVersion": o["apiVersion"], "kind": o["kind"]}
	if o["kind"] == "Status" {
		out["status"], out["reason"] = o["status"], o["reason"]
		return out
	}
	metadata, _ := o["metadata"].(map[string]any)
	meta := map[string]any{}
	for k, v := range metadata {
		switch k {
		case "managedFields":
			meta[k] = managersOf(v)
		case "creationTimestamp", "deletionTimestamp", "resourceVersion", "uid":
			meta[k] = v != nil && v != ""
		case "continue":
			if v != "" {
				meta[k] = true
			}
		case "remainingItemCount", "selfLink": // optional
		default:
			meta[k] = v
		}
	}
	out["metadata"] = meta
	for _, k := range []string{"spec", "data"} {
		if v, ok := o[k]; ok {
			out[k] = v
		}
	}
	if items, ok := o["items"].([]any); ok {
		list := []any{}
		for _, item := range items {
			if one, ok := item.(map[string]any); ok {
				list = append(list, normalize(one))
			}
		}
		out["items"] = list
	}
	return out
}

// managersOf returns the managers with their fields, sorted, and whether they have times.
func managersOf(v any) []any {
	entries, _ := v.([]any)
	var out []any
	for _, entry := range entries {
		m, ok := entry.(map[string]any)
		if !ok {
			continue
		}
		m = clone(m)
		m["time"] = m["time"] != nil
		withoutSchema(m["fieldsV1"])
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b any) int {
		return strings.Compare(fmt.Sprint(a.(map[string]any)["manager"], a.(map[string]any)["operation"]),
			fmt.Sprint(b.(map[string]any)["manager"], b.(map[string]any)["operation"]))
	})
	return out
}

// withoutSchema removes what depends on the schema, which the light server does not have: the entries that mean a map itself, and those
// within selectors and finalizers.
func withoutSchema(v any) {
	m, _ := v.(map[string]any)
	delete(m, ".")
	for k, below := range m {
		if k == "f:endpointSelector" || k == "f:finalizers" {
			m[k] = map[string]any{}
		}
		withoutSchema(below)
	}
}

package istio

import (
	"maps"

	"github.com/acp-io/acp/internal/enforcer"
)

// EffectOf compares two specs of one object; nil means that the member does not have the object.
func EffectOf(before, after map[string]any) enforcer.Effect {
	was, is := closes(before), closes(after)
	switch {
	case was && !is:
		return enforcer.Opens
	case !was && is && before["action"] != deny:
		// No source was refused until now. Closing a workload is a decision about the workload, not about one client's
		// access.
		return enforcer.Grants
	case before["action"] == deny && after["action"] != deny:
		return enforcer.Grants // a source that was denied may be let in by others
	case len(after) == 0 || after["action"] == audit:
		return enforcer.Grants // it decided nothing before and decides nothing now
	case text(before["selector"]) == text(after["selector"]) && before["action"] == after["action"] && within(before, after):
		return enforcer.Grants
	}
	return enforcer.Revokes
}

// closes reports whether a spec closes the workload: a policy that allows refuses every other source.
func closes(spec map[string]any) bool { return spec["action"] == allow }

// within reports whether no source loses access: every allowed source is still allowed, and every denied source was
// denied before.
func within(before, after map[string]any) bool {
	few, many := pairs(before), pairs(after)
	if before["action"] == deny {
		few, many = many, few
	}
	for pair := range few {
		if !many[pair] {
			return false
		}
	}
	return true
}

// pairs returns the sources of a policy's rules with their operations, one by one, because rules combine many sources.
func pairs(spec map[string]any) map[string]bool {
	out := map[string]bool{}
	none := text(nobody())
	for _, r := range entries(spec["rules"]) {
		if text(r) == none {
			continue
		}
		rule, _ := r.(map[string]any)
		from, named := rule["from"]
		to := text(rule["to"]) + text(rule["when"])
		if !named {
			out["anyone"+to] = true
		}
		for _, f := range entries(from) {
			entry, _ := f.(map[string]any)
			source, _ := entry["source"].(map[string]any)
			for _, part := range splitSource(source) {
				out[text(part)+to] = true
			}
		}
	}
	return out
}

// splitSource returns a source once for each name or address range that it lists, because one of them is enough to
// match.
func splitSource(source map[string]any) []map[string]any {
	for _, field := range []string{"principals", "ipBlocks"} {
		var out []map[string]any
		for _, v := range entries(source[field]) {
			part := maps.Clone(source)
			part[field] = v
			out = append(out, part)
		}
		if out != nil {
			return out
		}
	}
	return []map[string]any{source}
}

func entries(v any) []any {
	l, _ := v.([]any)
	return l
}

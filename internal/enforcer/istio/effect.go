package istio

import (
	"maps"

	"github.com/acp-io/acp/internal/enforcer"
)

// EffectOf compares two specs of one object, either of which may be nil: the member has none then.
func EffectOf(before, after map[string]any) enforcer.Effect {
	was, is := closes(before), closes(after)
	switch {
	case was && !is:
		return enforcer.Opens
	case !was && is && before["action"] != deny:
		// Nobody was refused until now. That is a decision about the workload, not about somebody's access.
		return enforcer.Gives
	case before["action"] == deny && after["action"] != deny:
		return enforcer.Gives // who was denied may be let in by others
	case len(after) == 0 || after["action"] == audit:
		return enforcer.Gives // it decided nothing, and decides nothing
	case text(before["selector"]) == text(after["selector"]) && before["action"] == after["action"] && within(before, after):
		return enforcer.Gives
	}
	return enforcer.Takes
}

// closes: a workload with a policy that allows is closed for everyone else.
func closes(spec map[string]any) bool { return spec["action"] == allow }

// within tells whether nobody loses anything: whoever was allowed still is, or whoever is denied was.
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

// pairs are the sources of a policy's rules with what they may do, each by itself, as rules join many sources.
func pairs(spec map[string]any) map[string]bool {
	out := map[string]bool{}
	for _, r := range entries(spec["rules"]) {
		rule, _ := r.(map[string]any)
		from, named := rule["from"]
		to := text(rule["to"]) + text(rule["when"])
		if !named {
			out["anyone"+to] = true
		}
		for _, f := range entries(from) {
			entry, _ := f.(map[string]any)
			source, _ := entry["source"].(map[string]any)
			for _, one := range each(source) {
				out[text(one)+to] = true
			}
		}
	}
	return out
}

// each is a source once for each of the names or address ranges that it lists: one of them is enough to match.
func each(source map[string]any) []map[string]any {
	for _, field := range []string{"principals", "ipBlocks"} {
		var out []map[string]any
		for _, v := range entries(source[field]) {
			one := maps.Clone(source)
			one[field] = v
			out = append(out, one)
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

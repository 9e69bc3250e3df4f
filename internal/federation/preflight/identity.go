package preflight

import (
	"regexp"
	"strings"

	"github.com/acp-io/acp/internal/message"
)

// podSource is the source of pod labels in Cilium's terms.
const podSource = "k8s"

// builtIn are the default rules of agents if no file replaces them (1.19, 1.20).
var builtIn = []string{
	`io\.kubernetes\.pod\.namespace`, `io\.cilium\.k8s\.namespace\.labels`, `app\.kubernetes\.io`,
	`io\.cilium\.k8s\.policy\.cluster`, `io\.cilium\.k8s\.policy\.serviceaccount`,
	`!io\.kubernetes`, `!kubernetes\.io`, `!statefulset\.kubernetes\.io/pod-name`, `!apps\.kubernetes\.io/pod-index`,
	`!batch\.kubernetes\.io/job-completion-index`, `!batch\.kubernetes\.io/controller-uid`, `!.*beta\.kubernetes\.io`, `!k8s\.io`,
	`!pod-template-generation`, `!pod-template-hash`, `!controller-revision-hash`, `!controller-uid`, `!annotation.*`, `!etcd_node`,
	`!topology\.kubernetes\.io`,
}

// Filter decides which labels of pods are in identities.
type Filter struct {
	rules []rule
	// chosen reports whether only labels that a rule includes are in identities.
	chosen bool
}

type rule struct {
	source string
	ignore bool
	match  *regexp.Regexp
}

// ParseFilter parses the agents' setting "labels": rules separated by blanks, each a regular expression that matches
// from the beginning of the key, with an optional source before a colon, and ! for exclusion.
func ParseFilter(setting string) (*Filter, error) {
	f := &Filter{}
	for _, text := range builtIn {
		r, err := parseRule(text)
		if err != nil {
			return nil, err
		}
		f.rules = append(f.rules, r)
	}
	for text := range strings.FieldsSeq(setting) {
		r, err := parseRule(text)
		if err != nil {
			return nil, err
		}
		f.chosen = f.chosen || !r.ignore
		f.rules = append(f.rules, r)
	}
	return f, nil
}

func parseRule(text string) (rule, error) {
	var r rule
	pattern := text
	if source, rest, ok := strings.Cut(text, ":"); ok {
		r.source, pattern = source, rest
	}
	pattern, r.ignore = strings.CutPrefix(pattern, "!")
	if pattern == "" {
		return rule{}, message.PreflightLabelRuleEmpty(message.Quoted(text)).Err()
	}
	var err error
	if r.match, err = regexp.Compile(pattern); err != nil {
		return rule{}, message.PreflightLabelRuleInvalid(message.Quoted(text), err.Error()).WithKind(err)
	}
	return r, nil
}

// Has reports whether a pod label with the key is in the pod's identity: the longest rule that includes it must match
// more of it than the shortest that excludes it.
func (f *Filter) Has(key string) bool {
	included, ignored := 0, 0
	for _, r := range f.rules {
		if r.source != "" && r.source != podSource {
			continue
		}
		at := r.match.FindStringIndex(key)
		if at == nil || at[0] != 0 {
			continue
		}
		switch n := at[1]; {
		case !r.ignore:
			included = max(included, n)
		case ignored == 0 || n < ignored:
			ignored = n
		}
	}
	return !f.chosen && ignored == 0 || included > ignored
}

package federation

import (
	"maps"
	"slices"
)

// Opened tells which pods of some classes are opened in a member, by the labels of the classes.
//
// Where the member's identities are known it looks at the pods that are there; where they are not (agents may keep them in a
// store of their own), at what a pod with the class's label may have.
type Opened struct {
	// labels of pods that are there, with a policy that opens them.
	labels map[Label]string
	// unsure are all policies, for the keys of which no identity tells what pods there are.
	unsure []Opening
	// keys are those of the classes, and whether unsure is for them.
	keys map[string]bool
	// harmless are the policies of unsure that let in nothing beside ACP's to pods with a label.
	harmless map[harmless]bool
}

type harmless struct {
	// policy is its place in unsure.
	policy int
	to     Label
}

// FindOpened looks for what policies open in a member beside ACP's own. each calls with the labels of every identity there; keys
// are those of the classes' labels, and whether every pod with one has an identity with it, if there are identities at all.
func FindOpened(policies []Opening, own []*OwnAllowed, keys map[string]bool, each func(do func(labels []Handle))) Opened {
	out, known := Opened{labels: map[Label]string{}, keys: map[string]bool{}, harmless: map[harmless]bool{}}, map[string]bool{}
	compared := newComparison(own)
	each(func(labels []Handle) {
		for _, h := range labels {
			known[h.Value().Key] = true
		}
	})
	for key, sure := range keys {
		if out.keys[key] = len(known) == 0 || !sure && !known[key]; out.keys[key] {
			out.unsure = policies
		}
	}
	for i := range out.unsure {
		for l := range compared.byLabel {
			if p := &out.unsure[i]; out.keys[l.Key] && p.MaySelect(l.Key, l.Value) && !compared.adds(p, map[string]string{l.Key: l.Value}) {
				out.harmless[harmless{i, l}] = true
			}
		}
	}
	byNamespace := map[string][]Opening{}
	for _, p := range policies {
		byNamespace[p.namespace()] = append(byNamespace[p.namespace()], p)
	}
	each(func(labels []Handle) {
		var ofClasses []Label
		for _, h := range labels {
			l := h.Value()
			if _, ours := keys[l.Key]; ours && out.labels[l] == "" {
				ofClasses = append(ofClasses, l)
			}
		}
		if len(ofClasses) == 0 {
			return
		}
		pod := make(map[string]string, len(labels))
		for _, h := range labels {
			pod[h.Value().Key] = h.Value().Value
		}
		candidates := policies // of an identity without a namespace nobody knows where its pods are
		if ns, ok := pod[namespaceKey]; ok {
			candidates = slices.Concat(byNamespace[""], byNamespace[ns])
		}
		i := slices.IndexFunc(candidates, func(p Opening) bool {
			return p.Selects(pod, func(key string) bool { return known[key] }) && compared.adds(&p, pod)
		})
		if i < 0 {
			return
		}
		for _, l := range ofClasses {
			out.labels[l] = candidates[i].String()
		}
	})
	return out
}

// By names a policy that opens the pods with a label, or may do so; "": none does.
func (o Opened) By(key, value string) string {
	if name := o.labels[Label{Key: key, Value: value}]; name != "" || !o.keys[key] {
		return name
	}
	for i, p := range o.unsure {
		if p.MaySelect(key, value) && !o.harmless[harmless{i, Label{Key: key, Value: value}}] {
			return p.String()
		}
	}
	return ""
}

// Equal tells whether two say the same.
func (o Opened) Equal(p Opened) bool {
	return maps.Equal(o.labels, p.labels) && maps.Equal(o.keys, p.keys) && maps.Equal(o.harmless, p.harmless) && slices.EqualFunc(o.unsure, p.unsure, Opening.Equal)
}

package istio

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unique"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer/istiotest"
	"github.com/acp-io/acp/internal/federation"
)

// This file generates AuthorizationPolicies of others, and judges them as the adapter does.

// namespaceLabel is the key of the label of an identity with the namespace of its pods.
const namespaceLabel = "io.kubernetes.pod.namespace"

// elsewhere is a namespace without pods of the worlds.
const elsewhere = "elsewhere"

// foreignWorld is a random world in which every resource is in Enforce, with policies of others.
type foreignWorld struct {
	*world
	// in is the namespace of the pods. No other world has pods there.
	in      string
	foreign []*unstructured.Unstructured
	// pods are the labels of the pods.
	pods []map[string]string
	// opened contains, for each label of a resource, a connection to a pod with this label that passes because of the policies of others
	// alone, in istiod's translation.
	opened map[federation.Label]string
}

// newForeignWorld generates the world of a seed, with pods in a namespace.
func newForeignWorld(seed uint64, in string) (*foreignWorld, error) {
	w := &world{seed: seed, generator: istiotest.NewGenerator(seed, 11), plain: true, member: strictMember, capabilities: istiotest.Capabilities}
	w.generator.Suffix = "-" + in
	out := &foreignWorld{world: w, in: in, opened: map[federation.Label]string{}, pods: w.generator.Destinations()}
	if err := w.render(inMode(w.generator.World(w.plain), v1alpha1.ModeEnforce), nil); err != nil {
		return nil, err
	}
	for i := range 1 + w.generator.IntN(3) {
		out.foreign = append(out.foreign, out.invent(i))
	}
	return out, nil
}

// labels are the labels of the resources of the world.
func (w *foreignWorld) labels() []federation.Label {
	var out []federation.Label
	for _, r := range w.world.in.Resources {
		name := string(r.Spec.Resource)
		for head, key := range map[string]string{istiotest.RedisHead: istiotest.RedisLabel, istiotest.SiteHead: istiotest.SiteLabel} {
			if value, ok := strings.CutPrefix(name, head); ok {
				out = append(out, federation.Label{Key: key, Value: value})
			}
		}
	}
	return out
}

// invent returns a policy of others: often a variant of one of ACP's, so that it lets in about the same.
func (w *foreignWorld) invent(number int) *unstructured.Unstructured {
	d := w.generator
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion("security.istio.io/v1")
	u.SetKind("AuthorizationPolicy")
	u.SetName(fmt.Sprintf("others-%s-%d", w.in, number))
	u.SetNamespace(istiotest.Pick(d, w.in, w.in, w.in, rootNamespace, elsewhere))
	spec := map[string]any{}
	if action := istiotest.Pick(d, "", "ALLOW", "ALLOW", "ALLOW", "DENY", "AUDIT"); action != "" {
		spec["action"] = action
	}
	if d.IntN(12) == 0 {
		u.SetAnnotations(map[string]string{"istio.io/dry-run": "true"})
	}
	pod := w.pods[d.IntN(len(w.pods))]
	key := istiotest.Pick(d, slices.Sorted(maps.Keys(pod))...)
	switch n := d.IntN(5); {
	case n == 0 && u.GetNamespace() == w.in: // every pod of the namespace
	case n == 1:
		spec["selector"] = map[string]any{"matchLabels": map[string]any{key: pod[key], "app": "other"}}
	default:
		spec["selector"] = map[string]any{"matchLabels": map[string]any{key: pod[key]}}
	}
	var rules []any
	for range 1 + d.IntN(2) {
		rules = append(rules, w.rule())
	}
	spec["rules"] = rules
	u.Object["spec"] = spec
	return u
}

// rule returns a rule: a changed copy of a rule of ACP's, or one of its own.
func (w *foreignWorld) rule() map[string]any {
	d := w.generator
	out := map[string]any{
		"from": []any{map[string]any{"source": map[string]any{"principals": []any{istiotest.Pick(d, "*/sa/app-888", "cluster.local/ns/a/sa/app-889")}}}},
		"to":   []any{map[string]any{"operation": map[string]any{"ports": []any{istiotest.Pick(d, "6379", "8080", "9121")}}}},
	}
	var own []any
	for i := range w.objects {
		if rules, _ := w.objects[i].Spec["rules"].([]any); w.objects[i].Spec["action"] == "ALLOW" {
			own = append(own, rules...)
		}
	}
	excepting := slices.DeleteFunc(slices.Clone(own), func(r any) bool { return !strings.Contains(fmt.Sprint(r), "notIpBlocks") })
	if len(excepting) > 0 && d.IntN(2) == 0 { // few rules of ACP have exceptions
		chosen, _ := excepting[d.IntN(len(excepting))].(map[string]any)
		return withoutExceptions((&unstructured.Unstructured{Object: chosen}).DeepCopy().Object)
	}
	if len(own) > 0 && d.IntN(5) > 0 {
		chosen, _ := own[d.IntN(len(own))].(map[string]any)
		out = (&unstructured.Unstructured{Object: chosen}).DeepCopy().Object
	}
	for range d.IntN(3) {
		w.edit(out)
	}
	return out
}

// withoutExceptions removes the exceptions from the ranges of a rule.
func withoutExceptions(rule map[string]any) map[string]any {
	entries, _ := rule["from"].([]any)
	for _, e := range entries {
		if source, _ := e.(map[string]any)["source"].(map[string]any); source != nil { //nolint:forcetypeassert // an entry of the API
			delete(source, "notIpBlocks")
		}
	}
	return rule
}

// edit makes one change of a rule, if it applies.
func (w *foreignWorld) edit(rule map[string]any) {
	d := w.generator
	source, operation := entryOf(d, rule["from"], "source"), entryOf(d, rule["to"], "operation")
	change := func(of map[string]any, field string, values ...any) {
		if of != nil {
			of[field] = values
		}
	}
	switch d.IntN(18) {
	case 0:
		delete(rule, "from")
	case 1:
		delete(rule, "to")
	case 2:
		change(source, "principals", istiotest.Pick(d, "*/sa/app-888", "cluster.local/ns/a/sa/app-888", "other.domain/ns/sa/sa/*", "*", "*/sa/app-999"))
	case 3:
		if source["ipBlocks"] != nil { // otherwise everybody matches who has no principal
			delete(source, "notPrincipals")
		}
	case 4:
		change(source, "ipBlocks", istiotest.Pick(d, "10.5.0.0/25", "10.5.0.9", "10.4.0.0/14", "2001:db8::/40"))
	case 5:
		if source["ipBlocks"] != nil {
			delete(source, "notIpBlocks")
		}
	case 6:
		change(source, "notIpBlocks", istiotest.Pick(d, "10.5.0.0/24", "10.5.0.9/32"))
	case 7:
		change(source, "namespaces", istiotest.Pick(d, "a", "sa"))
	case 8, 9:
		change(operation, "ports", istiotest.Pick(d, "6379", "6380", "80", "8080", "9121"))
	case 10:
		if operation["ports"] != nil {
			change(operation, "ports", append(slices.Clone(operation["ports"].([]any)), "9121")...) //nolint:forcetypeassert // a list of the API
		}
	case 11:
		if len(operation) > 1 {
			delete(operation, "ports")
		}
	case 12:
		change(operation, "methods", istiotest.Pick(d, "GET", "POST", "P*"))
	case 13:
		if len(operation) > 1 {
			delete(operation, "methods")
		}
	case 14:
		change(operation, "paths", istiotest.Pick(d, "/orders", "/orders/*", "*.css", "/a*"))
	case 15:
		if len(operation) > 1 {
			delete(operation, "paths")
		}
	case 16:
		change(operation, "notPorts", istiotest.Pick(d, "6379", "8080"))
	case 17:
		rule["when"] = []any{map[string]any{"key": "destination.port", "values": []any{istiotest.Pick(d, "6379", "80")}}}
	}
}

// entryOf returns one of the sources or operations of a rule, or nil.
func entryOf(d istiotest.Generator, list any, kind string) map[string]any {
	entries, _ := list.([]any)
	if len(entries) == 0 {
		return nil
	}
	entry, _ := entries[d.IntN(len(entries))].(map[string]any)
	of, _ := entry[kind].(map[string]any)
	return of
}

// vocabulary are the values of the rules of a world, as connections have them.
type vocabulary struct {
	principals, methods, paths []string
	addresses                  []netip.Addr
	ports                      []uint16
}

// vocabularyOf returns the values in rules, and others.
func vocabularyOf(rules []any) vocabulary {
	out := vocabulary{
		principals: []string{"", "cluster.local/ns/a/sa/app-888", "other.domain/ns/sa/sa/svc-cart", "cluster.local/ns/z/sa/z"},
		methods:    []string{"", "GET", "PUT"}, paths: []string{"/", "/orders/1"},
		addresses: []netip.Addr{netip.MustParseAddr("10.0.3.4"), netip.MustParseAddr("10.9.9.9"), netip.MustParseAddr("2001:dead::1")},
		ports:     []uint16{7777},
	}
	for _, r := range rules {
		rule, _ := r.(map[string]any)
		for _, list := range []any{rule["from"], rule["to"]} {
			entries, _ := list.([]any)
			for _, e := range entries {
				for _, fields := range e.(map[string]any) { //nolint:forcetypeassert // an entry of the API
					out.add(fields.(map[string]any)) //nolint:forcetypeassert // an entry of the API
				}
			}
		}
		conditions, _ := rule["when"].([]any)
		for _, c := range conditions {
			out.add(map[string]any{"ports": c.(map[string]any)["values"]}) //nolint:forcetypeassert // an entry of the API
		}
	}
	return out
}

// add adds the values of a source or an operation.
func (v *vocabulary) add(of map[string]any) {
	for field, list := range of {
		values, _ := list.([]any)
		for _, value := range values {
			text, _ := value.(string)
			switch strings.TrimPrefix(strings.ToLower(strings.TrimPrefix(field, "not")), "remote") {
			case "principals":
				v.principals = append(v.principals, strings.Replace(realized(text, "cluster.local/ns/a"), "//", "/", 1))
			case "methods":
				v.methods = append(v.methods, realized(text, "ATCH"))
			case "paths":
				v.paths = append(v.paths, realized(text, "/x"), realized(text, ""))
			case "ipblocks":
				p, err := netip.ParsePrefix(text)
				if err != nil {
					a, _ := netip.ParseAddr(text)
					p = netip.PrefixFrom(a, a.BitLen())
				}
				v.addresses = append(v.addresses, p.Masked().Addr(), lastOf(p))
			case "ports":
				if n, err := strconv.ParseUint(text, 10, 16); err == nil {
					v.ports = append(v.ports, uint16(n))
				}
			}
		}
	}
}

// realized returns a text that a pattern matches.
func realized(pattern, star string) string { return strings.Replace(pattern, "*", star, 1) }

// lastOf returns the last address of a range.
func lastOf(p netip.Prefix) netip.Addr {
	bytes := p.Masked().Addr().AsSlice()
	for i := p.Bits(); i < 8*len(bytes); i++ {
		bytes[i/8] |= 1 << (7 - i%8)
	}
	out, _ := netip.AddrFromSlice(bytes)
	return out
}

// sample returns connections whose values are in rules, or are none of them, and further addresses.
func sample(d istiotest.Generator, n int, rules []any, addresses ...netip.Addr) []istiotest.Traffic {
	v := vocabularyOf(rules)
	v.addresses = append(v.addresses, addresses...)
	out := make([]istiotest.Traffic, n)
	for i := range out {
		t := istiotest.Traffic{Principal: istiotest.Pick(d, v.principals...), Address: istiotest.Pick(d, v.addresses...), Port: istiotest.Pick(d, v.ports...)}
		if t.Method = istiotest.Pick(d, v.methods...); t.Method != "" {
			t.Path = istiotest.Pick(d, v.paths...)
		}
		out[i] = t
	}
	return out
}

// traffic returns connections by which a difference between policies can be noticed: with the values of all rules of the world, and with those
// of each rule of others.
func (w *foreignWorld) traffic() []istiotest.Traffic {
	var all []any
	for i := range w.objects {
		rules, _ := w.objects[i].Spec["rules"].([]any)
		all = append(all, rules...)
	}
	addresses := vocabularyOf(all).addresses
	var out []istiotest.Traffic
	for _, u := range w.foreign {
		rules, _, _ := unstructured.NestedSlice(u.Object, "spec", "rules")
		all = append(all, rules...)
		for _, r := range rules {
			out = append(out, sample(w.generator, samplesOfRule, []any{r}, addresses...)...)
		}
	}
	return append(out, sample(w.generator, samplesOfWorld, all)...)
}

// Numbers of connections that are evaluated for each rule of others, and in addition for each world.
const (
	samplesOfRule  = 200
	samplesOfWorld = 200
)

// detection is a detector of policies of others with one mistake; the zero value has none.
type detection struct {
	// foreign and own change what the detector reads: a policy of others, or the spec of one of ACP's. A nil result is not read.
	foreign func(u *unstructured.Unstructured) *unstructured.Unstructured
	own     func(spec map[string]any) map[string]any
	// withoutIdentities judges by the policies alone, as where no identities of pods are known.
	withoutIdentities bool
}

// opens returns the function that reports whether policies of others open the pods with a label, as the adapter judges it.
func (f detection) opens(w *foreignWorld) (func(federation.Label) string, error) {
	var foreign []federation.IstioAllow
	for _, u := range w.foreign {
		if f.foreign != nil {
			if u = f.foreign(u.DeepCopy()); u == nil {
				continue
			}
		}
		o, err := federation.ParseIstioAllow(u)
		if err != nil {
			return nil, fmt.Errorf("read a policy of the world of seed %d: %w", w.seed, err)
		}
		if o.Opens() {
			foreign = append(foreign, o)
		}
	}
	var own []*federation.OwnAllowed
	for i := range w.objects {
		spec := w.objects[i].Spec
		if f.own != nil {
			spec = f.own(spec)
		}
		if spec == nil {
			continue
		}
		if o := federation.ParseOwnAllowed(spec); o != nil {
			own = append(own, o)
		}
	}
	each := func(do func([]federation.Handle)) {
		for _, labels := range w.pods {
			identity := []federation.Handle{unique.Make(federation.Label{Key: namespaceLabel, Value: w.in})}
			for k, v := range labels {
				identity = append(identity, unique.Make(federation.Label{Key: k, Value: v}))
			}
			do(identity)
		}
	}
	if f.withoutIdentities {
		each = func(func([]federation.Handle)) {}
	}
	found := federation.FindIstioExposure(foreign, own, map[string]bool{istiotest.RedisLabel: true, istiotest.SiteLabel: true}, each)
	return func(l federation.Label) string { return found.OpenedBy(l.Key, l.Value) }, nil
}

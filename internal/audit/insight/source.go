package insight

import (
	"net/netip"
	"strings"

	"github.com/acp-io/acp/internal/audit"
)

// sourceKind says what is known of an end that has no name.
type sourceKind uint8

const (
	// The first is nobody: only "*" matches it.
	_ sourceKind = iota
	// sourceHost: the destination's own node, which no policy refuses.
	sourceHost
	// sourcePrefix: an address outside the fleet, of which the prefix was kept.
	sourcePrefix
	// sourceOutside: an address outside the fleet, which is not known.
	sourceOutside
	// sourceLabels: a workload, of which the labels were kept.
	sourceLabels
)

// end is an Edge's Source or Destination, read back.
type end struct {
	kind   sourceKind
	prefix netip.Prefix
	labels map[string]string
	// cut: there were more labels than could be kept.
	cut bool
}

const (
	reservedHead = "reserved:"
	ownNode      = "reserved:host"
	cutMark      = "…"
	namespaceKey = "namespace="
)

// readEnd understands how the collector describes an end without a name.
func readEnd(text string) end {
	switch {
	case text == ownNode:
		return end{kind: sourceHost}
	case text == "", strings.HasPrefix(text, reservedHead):
		return end{}
	case text == "outside":
		return end{kind: sourceOutside}
	}
	if p, err := netip.ParsePrefix(text); err == nil {
		return end{kind: sourcePrefix, prefix: p.Masked()}
	}
	e := end{kind: sourceLabels, labels: map[string]string{}}
	text, e.cut = strings.CutSuffix(text, cutMark)
	// The namespace comes first and is no label.
	if strings.HasPrefix(text, namespaceKey) {
		_, text, _ = strings.Cut(text, ",")
	}
	for pair := range strings.SplitSeq(text, ",") {
		if k, v, ok := strings.Cut(pair, "="); ok {
			e.labels[k] = v
		}
	}
	return e
}

// countedHere tells whether the edge is the one by which its connections are counted, among those that the filter of
// resources lets through: a connection between ends of several names has an edge for each pair of them.
func countedHere(e *audit.Edge, resources map[string]bool) bool {
	if e.OtherSubjects == "" && e.OtherResources == "" {
		return true
	}
	for other := range strings.FieldsSeq(e.OtherSubjects) {
		if other < e.Subject {
			return false
		}
	}
	for other := range strings.FieldsSeq(e.OtherResources) {
		if other < e.Resource && (len(resources) == 0 || resources[other]) {
			return false
		}
	}
	return true
}

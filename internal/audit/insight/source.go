package insight

import (
	"net/netip"
	"strings"

	"github.com/acp-io/acp/internal/audit"
)

// sourceKind classifies an end without a name.
type sourceKind uint8

const (
	// The first kind has no name; only "*" matches it.
	_ sourceKind = iota
	// sourceHost is the destination's own node, which no policy refuses.
	sourceHost
	// sourcePrefix is an address outside the fleet, of which the prefix was recorded.
	sourcePrefix
	// sourceOutside is an address outside the fleet that is not known.
	sourceOutside
	// sourceLabels is a workload, of which the labels were recorded.
	sourceLabels
)

// end is a parsed Source or Destination of an edge.
type end struct {
	kind   sourceKind
	prefix netip.Prefix
	labels map[string]string
	// cut reports whether there were more labels than could be recorded.
	cut bool
}

const (
	reservedHead = "reserved:"
	ownNode      = "reserved:host"
	cutMark      = "…"
	namespaceKey = "namespace="
)

// readEnd parses the collector's description of an end without a name.
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
	// The namespace comes first and is not a label.
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

// countedHere reports whether the edge is the one by which its connections are counted, among those that the filter of
// resources matches: a connection between ends with several names has an edge for each pair of names.
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

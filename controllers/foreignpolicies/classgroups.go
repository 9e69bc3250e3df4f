package foreignpolicies

import (
	"maps"
	"strings"
	"sync"

	"github.com/acp-io/acp/internal/enforcer/cilium"
	"github.com/acp-io/acp/internal/federation/foreignpolicy"
)

// classGroups records which address groups of others have a label of a subject class's groups. Rules about a whole class select groups
// by this label, so whoever may write groups in a member could add addresses to the class.
type classGroups struct {
	own     func(name string) bool
	changed func()

	mu sync.RWMutex
	// foreign are the names of groups of others, by member and label.
	foreign map[string]map[string]string
}

// record replaces what is known of a member.
func (c *classGroups) record(cluster string, groups []foreignpolicy.Group) {
	found := map[string]string{}
	for i := range groups {
		for label := range groups[i].Labels {
			if name := groups[i].Name; strings.HasPrefix(label, cilium.LabelClass("")) && !c.own(name) && (found[label] == "" || name < found[label]) {
				found[label] = name
			}
		}
	}
	c.mu.Lock()
	same := maps.Equal(c.foreign[cluster], found)
	c.foreign[cluster] = found
	c.mu.Unlock()
	if !same {
		c.changed()
	}
}

// in returns the name of a group of others in a member with a label, or "". ACP's group may have become known since the member was read.
func (c *classGroups) in(cluster, label string) string {
	c.mu.RLock()
	name := c.foreign[cluster][label]
	c.mu.RUnlock()
	if name == "" || c.own(name) {
		return ""
	}
	return name
}

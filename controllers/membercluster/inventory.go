package membercluster

import (
	"slices"

	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/internal/federation"
)

// Inventory compares what the host requires in the members with what was decided, and with what the members have.
type Inventory struct {
	Cache   *policycache.Cache
	Reports *statuscache.Cache
	Stores  federation.KindStores
	// Reserved returns the keys of a member's objects with ACP's reserved name or label, of every kind that the host
	// distributes.
	Reserved func(cluster string) []string
}

// Complete reports whether everything that is, or was, placed has been decided since the start. A count of units before
// that would be too low.
func (i *Inventory) Complete() bool {
	for _, r := range i.Cache.Resources() {
		if !i.Reports.Decided(r) {
			return false
		}
	}
	for _, o := range i.Stores.List() {
		if r := o.Resource(); r != "" && !i.Reports.Decided(r) {
			return false
		}
	}
	return true
}

// Orphans returns the keys of a member's objects with ACP's reserved name or label that nothing on the host requires.
func (i *Inventory) Orphans(cluster string) []string {
	if listed, _ := i.Stores.State(); !listed {
		return nil // without the list of wanted objects, nothing counts as an orphan
	}
	return slices.DeleteFunc(i.Reserved(cluster), func(key string) bool {
		if o, onHost := i.Stores.Get(key); onHost {
			return o.WasPlacedIn(cluster)
		}
		_, reported := i.Reports.ResourceOf(key)
		return reported
	})
}

// Package registry knows every enforcer that is built in, so that programs need not. It only collects: what an enforcer
// does is in its own package.
package registry

import (
	"errors"
	"fmt"
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/cilium"
)

// ErrUnknown is wrapped by Get's error about a name that no built-in enforcer has.
var ErrUnknown = errors.New("unknown enforcer")

// all is where a new enforcer is added.
func all() []enforcer.Enforcer { return []enforcer.Enforcer{cilium.Enforcer{}} }

// Names of the enforcers, sorted.
func Names() []v1alpha1.EnforcerName {
	var out []v1alpha1.EnforcerName
	for _, e := range all() {
		out = append(out, e.Name())
	}
	slices.Sort(out)
	return out
}

// Get finds an enforcer.
func Get(name v1alpha1.EnforcerName) (enforcer.Enforcer, error) {
	for _, e := range all() {
		if e.Name() == name {
			return e, nil
		}
	}
	return nil, fmt.Errorf("%w %q: this build has %v", ErrUnknown, name, Names())
}

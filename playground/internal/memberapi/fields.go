package memberapi

import (
	"crypto/sha256"
	"errors"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
)

// merger merges applied configurations and tracks managed fields, with the code of the real API server. It has no schemas: lists are
// atomic, as in Cilium's kinds.
type merger struct {
	fields map[Resource]*managedfields.FieldManager

	mu sync.RWMutex
	// applied contains the results of configurations that were applied to nothing, which depend only on the configuration.
	applied map[configuration]written
}

// configuration identifies an applied configuration.
type configuration struct {
	resource Resource
	manager  string
	sum      [sha256.Size]byte
}

// written is the result of a write.
type written struct {
	content  *content
	managers []owner
}

// maxApplied bounds the results that are kept.
const maxApplied = 100_000

func newMerger(resources []Resource) (*merger, error) {
	m := &merger{fields: map[Resource]*managedfields.FieldManager{}, applied: map[configuration]written{}}
	for _, r := range resources {
		var err error
		m.fields[r], err = managedfields.NewDefaultCRDFieldManager(managedfields.NewDeducedTypeConverter(), oneVersion{}, oneVersion{}, oneVersion{},
			r.GroupVersionKind(), r.GroupVersion(), "", nil)
		if err != nil {
			return nil, err
		}
	}
	return m, nil
}

// oneVersion converts between the versions of a kind that has one, which has no default values.
type oneVersion struct{}

func (oneVersion) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(kind)
	return u, nil
}

func (oneVersion) Convert(any, any, any) error { return errors.New("there is one version") }

func (oneVersion) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

func (oneVersion) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (oneVersion) Default(runtime.Object) {}

// apply returns the result of a server-side apply to an object, or to nothing. at is in seconds.
func (m *merger) apply(r Resource, live *object, body []byte, by string, force bool, at int64) (written, error) {
	if live == nil || live.onlyAppliedBy(by) {
		// Every field of the live object was applied by this manager, so that nothing of it remains.
		return m.applyToNothing(r, body, by, at)
	}
	before, err := live.unstructured()
	if err != nil {
		return written{}, err
	}
	config, err := decode(r, body)
	if err != nil {
		return written{}, err
	}
	return m.result(m.fields[r].Apply(before, config, by, force))
}

func (m *merger) applyToNothing(r Resource, body []byte, by string, at int64) (written, error) {
	key := configuration{r, by, sha256.Sum256(body)}
	m.mu.RLock()
	out, ok := m.applied[key]
	m.mu.RUnlock()
	if !ok {
		config, err := decode(r, body)
		if err != nil {
			return written{}, err
		}
		nothing, err := oneVersion{}.New(r.GroupVersionKind())
		if err != nil {
			return written{}, err
		}
		if out, err = m.result(m.fields[r].Apply(nothing, config, by, true)); err != nil {
			return written{}, err
		}
		m.mu.Lock()
		if len(m.applied) >= maxApplied {
			clear(m.applied)
		}
		m.applied[key] = out
		m.mu.Unlock()
	}
	managers := make([]owner, len(out.managers))
	for i, o := range out.managers {
		managers[i] = owner{o.manager, at}
	}
	return written{out.content, managers}, nil
}

// onlyAppliedBy reports whether all fields of the object were applied by one manager.
func (o *object) onlyAppliedBy(by string) bool {
	return len(o.managers) == 1 && o.managers[0].name == by && o.managers[0].operation == metav1.ManagedFieldsOperationApply
}

// update returns the result of replacing an object, or nothing, by another one.
func (m *merger) update(r Resource, live *object, u *unstructured.Unstructured, by string) (written, error) {
	var before runtime.Object
	var err error
	if live == nil {
		before, err = oneVersion{}.New(r.GroupVersionKind())
	} else {
		before, err = live.unstructured()
	}
	if err != nil {
		return written{}, err
	}
	return m.result(m.fields[r].UpdateNoErrors(before, u, by), nil)
}

func (m *merger) result(o runtime.Object, err error) (written, error) {
	if err != nil {
		return written{}, err
	}
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return written{}, errors.New("the merged object is not unstructured")
	}
	var out written
	if out.content, err = newContent(u); err != nil {
		return written{}, err
	}
	out.managers, err = newOwners(u)
	return out, err
}

package memberapi

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// maxBody is the largest body of a request, as in a real API server.
const maxBody = 3 << 20

func (q *request) body() ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(q.Body, maxBody+1))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if len(body) > maxBody {
		return nil, apierrors.NewRequestEntityTooLargeError("limit is " + strconv.Itoa(maxBody))
	}
	return body, nil
}

// decode returns the object in a body, which is JSON or YAML.
func decode(r Resource, body []byte) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	err := yaml.Unmarshal(body, &u.Object)
	if len(body) > 0 && body[0] == '{' {
		err = u.UnmarshalJSON(body)
	}
	switch {
	case err != nil:
		return nil, apierrors.NewBadRequest(err.Error())
	case u.GroupVersionKind() != r.GroupVersionKind():
		return nil, apierrors.NewBadRequest("the object provided is not a " + r.Kind + " of " + r.GroupVersion().String())
	}
	return u, nil
}

// by returns the field manager of a request.
func (q *request) by() string {
	if manager := q.URL.Query().Get("fieldManager"); manager != "" {
		return manager
	}
	agent, _, _ := strings.Cut(q.UserAgent(), "/")
	return agent
}

func (m *Member) create(w http.ResponseWriter, q *request) error {
	body, err := q.body()
	if err != nil {
		return err
	}
	u, err := decode(q.store.resource, body)
	if err != nil {
		return err
	}
	if q.name = u.GetName(); q.name == "" {
		return q.invalid("metadata.name", "Required value: name or generateName is required")
	}
	u.SetNamespace(q.namespace)
	return m.change(w, q, http.StatusCreated, func(live *object) (written, error) {
		if live != nil {
			return written{}, apierrors.NewAlreadyExists(q.store.resource.GroupResource(), q.name)
		}
		return m.replaced(q, nil, u)
	})
}

func (m *Member) update(w http.ResponseWriter, q *request) error {
	body, err := q.body()
	if err != nil {
		return err
	}
	u, err := decode(q.store.resource, body)
	if err != nil {
		return err
	}
	return m.change(w, q, http.StatusOK, func(live *object) (written, error) {
		if live == nil {
			return written{}, q.notFound()
		}
		return m.replaced(q, live, u)
	})
}

func (m *Member) patch(w http.ResponseWriter, q *request) error {
	body, err := q.body()
	if err != nil {
		return err
	}
	kind, _, _ := strings.Cut(q.Header.Get("Content-Type"), ";")
	switch types.PatchType(kind) {
	case types.ApplyPatchType:
		return m.change(w, q, http.StatusOK, func(live *object) (written, error) {
			return m.of.merger.apply(q.store.resource, live, body, q.by(), isTrue(q.URL.Query().Get("force")), time.Now().Unix())
		})
	case types.MergePatchType:
		var patch map[string]any
		if err := json.Unmarshal(body, &patch); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		return m.change(w, q, http.StatusOK, func(live *object) (written, error) {
			if live == nil {
				return written{}, q.notFound()
			}
			u, err := live.unstructured()
			if err != nil {
				return written{}, err
			}
			merge(u.Object, patch)
			return m.replaced(q, live, u)
		})
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType,
		Reason: metav1.StatusReasonUnsupportedMediaType, Message: "the body of the request was in an unknown format"}}
}

// merge applies a JSON merge patch (RFC 7386).
func merge(to, patch map[string]any) {
	for k, v := range patch {
		child, isMap := v.(map[string]any)
		switch {
		case v == nil:
			delete(to, k)
		case isMap:
			below, ok := to[k].(map[string]any)
			if !ok {
				below = map[string]any{}
			}
			merge(below, child)
			to[k] = below
		default:
			to[k] = v
		}
	}
}

// replaced returns the result of replacing an object, or of creating one if live is nil. The status stays as it is.
func (m *Member) replaced(q *request, live *object, u *unstructured.Unstructured) (written, error) {
	if live != nil {
		if u.GetResourceVersion() == "" && q.store.resource.custom() {
			return written{}, q.invalid("metadata.resourceVersion", "Invalid value: must be specified for an update")
		}
		if version := u.GetResourceVersion(); version != "" && version != strconv.FormatUint(live.version, 10) {
			return written{}, apierrors.NewConflict(q.store.resource.GroupResource(), q.name,
				errorText("the object has been modified; please apply your changes to the latest version and try again"))
		}
		if uid := u.GetUID(); uid != "" {
			if before, err := live.unstructured(); err != nil || before.GetUID() != uid {
				return written{}, apierrors.NewConflict(q.store.resource.GroupResource(), q.name, errorText("Precondition failed: UID in precondition"))
			}
		}
	}
	delete(u.Object, "status")
	return m.of.merger.update(q.store.resource, live, u.DeepCopy(), q.by())
}

// invalid returns the answer to an object with an invalid field.
func (q *request) invalid(field, text string) error {
	err := apierrors.NewInvalid(q.store.resource.GroupVersionKind().GroupKind(), q.name, nil)
	err.ErrStatus.Message += field + ": " + text
	return err
}

// errorText is an error with a constant text.
type errorText string

func (e errorText) Error() string { return string(e) }

// change writes an object and answers with it.
func (m *Member) change(w http.ResponseWriter, q *request, code int, do func(live *object) (written, error)) error {
	encode, _ := q.encoder()
	now, kind, err := q.store.change(keyOf(q.namespace, q.name), func(live *object) (*object, error) {
		result, err := do(live)
		if err != nil {
			return nil, err
		}
		if result.content.name != q.name || result.content.namespace != q.namespace {
			return nil, apierrors.NewBadRequest("the name of the object does not match the name on the URL")
		}
		if live == nil {
			return m.next(q.store.resource, nil, result, nil), nil
		}
		if result.content.equal(live.content) && sameOwners(result.managers, live.managers) {
			return live, nil
		}
		out := m.next(q.store.resource, live, result, live.status)
		out.gone = out.deleted != 0 && len(out.finalizers) == 0
		return out, nil
	})
	if err != nil {
		return err
	}
	m.changed(q.store.resource, kind, now)
	if kind == added {
		code = http.StatusCreated
	}
	write(w, code, encode(now, nil))
	return nil
}

// remove deletes an object, or marks it as deleted while it has finalizers.
func (m *Member) remove(w http.ResponseWriter, q *request) error {
	now, kind, err := q.store.change(keyOf(q.namespace, q.name), func(live *object) (*object, error) {
		switch {
		case live == nil:
			return nil, q.notFound()
		case len(live.finalizers) == 0:
			out := *live
			out.gone = true
			return &out, nil
		case live.deleted != 0:
			return live, nil
		}
		out := *live
		out.deleted = time.Now().Unix()
		if out.generation != 0 {
			out.generation++
		}
		return &out, nil
	})
	if err != nil {
		return err
	}
	m.changed(q.store.resource, kind, now)
	if kind != deleted {
		encode, _ := q.encoder()
		write(w, http.StatusOK, encode(now, nil))
		return nil
	}
	answer(w, http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Name: q.name, Group: q.store.resource.Group, Kind: q.store.resource.Resource}})
	return nil
}

// encodeStatus returns the encoded status of an object, or nil.
func encodeStatus(u *unstructured.Unstructured) ([]byte, error) {
	status, ok := u.Object["status"]
	if !ok {
		return nil, nil
	}
	return json.Marshal(status)
}

func encodeStatusOf(err error) ([]byte, error) { return json.Marshal(statusOf(err)) }

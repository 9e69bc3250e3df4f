package memberapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// ServerVersion is the version that members report.
const ServerVersion = "v1.36.0"

// request is a request about objects.
type request struct {
	*http.Request
	store           *store
	namespace, name string
}

// serve answers a request.
func (m *Member) serve(w http.ResponseWriter, r *http.Request) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	user, known := m.of.config.Users[token]
	if !m.wait(r.Context()) {
		return
	}
	switch {
	case !known:
		fail(w, apierrors.NewUnauthorized("Unauthorized"))
		return
	case m.fails():
		fail(w, apierrors.NewInternalError(errors.New("injected error")))
		return
	}
	if m.discover(w, r) {
		return
	}
	q, err := m.parse(r)
	if err == nil && r.Method != http.MethodGet && !user.Writes {
		verb := map[string]string{http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete"}[r.Method]
		resource := q.store.resource.GroupResource()
		err = apierrors.NewForbidden(resource, q.name, errors.New("User \""+user.Name+"\" cannot "+verb+" resource \""+resource.Resource+"\""))
	}
	if err == nil {
		err = m.answer(w, q)
	}
	switch {
	case errors.Is(err, errPath):
		http.Error(w, err.Error(), http.StatusNotFound)
	case err != nil:
		fail(w, err)
	}
}

func (m *Member) answer(w http.ResponseWriter, q *request) error {
	switch {
	case q.Method == http.MethodGet && q.name != "":
		return m.get(w, q)
	case q.Method == http.MethodGet && isTrue(q.URL.Query().Get("watch")):
		return m.watch(w, q)
	case q.Method == http.MethodGet:
		return m.list(w, q)
	case q.Method == http.MethodPost && q.name == "":
		return m.create(w, q)
	case q.Method == http.MethodPut && q.name != "":
		return m.update(w, q)
	case q.Method == http.MethodPatch && q.name != "":
		return m.patch(w, q)
	case q.Method == http.MethodDelete && q.name != "":
		return m.remove(w, q)
	}
	return apierrors.NewMethodNotSupported(q.store.resource.GroupResource(), strings.ToLower(q.Method))
}

func isTrue(v string) bool { return v == "true" || v == "1" }

// errPath is the error of a path that no resource has. A real API server answers it with a text.
var errPath = errors.New("404 page not found")

// parse returns the request about objects that a path names.
func (m *Member) parse(r *http.Request) (*request, error) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var gv schema.GroupVersion
	switch {
	case len(parts) > 2 && parts[0] == "api":
		gv, parts = schema.GroupVersion{Version: parts[1]}, parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		gv, parts = schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:]
	default:
		return nil, errPath
	}
	q := &request{Request: r}
	if len(parts) > 2 && parts[0] == "namespaces" {
		q.namespace, parts = parts[1], parts[2:]
	}
	for kind, s := range m.stores {
		if kind.GroupVersion() == gv && kind.Resource == parts[0] && (kind.Namespaced || q.namespace == "") {
			q.store = s
		}
	}
	if q.store == nil || len(parts) > 2 {
		return nil, errPath
	}
	if len(parts) == 2 {
		q.name = parts[1]
		if q.store.resource.Namespaced && q.namespace == "" {
			return nil, errPath
		}
	}
	return q, nil
}

// discover answers requests that are not about objects.
func (m *Member) discover(w http.ResponseWriter, r *http.Request) bool {
	path := strings.Trim(r.URL.Path, "/")
	switch path {
	case "healthz", "livez", "readyz":
		_, _ = w.Write([]byte("ok")) // the client may have gone
	case "version":
		answer(w, http.StatusOK, version.Info{Major: "1", Minor: "36", GitVersion: ServerVersion})
	case "api":
		answer(w, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case "apis":
		list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for _, gv := range groups() {
			if gv.Group != "" {
				v := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
				list.Groups = append(list.Groups, metav1.APIGroup{Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
			}
		}
		answer(w, http.StatusOK, list)
	default:
		for _, gv := range groups() {
			if path == "apis/"+gv.String() || gv.Group == "" && path == "api/"+gv.Version {
				answer(w, http.StatusOK, resourcesOf(gv))
				return true
			}
		}
		return false
	}
	return true
}

func groups() []schema.GroupVersion {
	var out []schema.GroupVersion
	for _, r := range Resources() {
		if !slices.Contains(out, r.GroupVersion()) {
			out = append(out, r.GroupVersion())
		}
	}
	return out
}

func resourcesOf(gv schema.GroupVersion) metav1.APIResourceList {
	out := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String()}
	for _, r := range Resources() {
		if r.GroupVersion() == gv {
			out.APIResources = append(out.APIResources, metav1.APIResource{Name: r.Resource, Kind: r.Kind, Namespaced: r.Namespaced,
				Verbs: metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}})
		}
	}
	return out
}

func answer(w http.ResponseWriter, code int, o any) {
	body, err := json.Marshal(o)
	if err != nil {
		code, body = http.StatusInternalServerError, []byte(err.Error())
	}
	write(w, code, body)
}

func write(w http.ResponseWriter, code int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(body) //nolint:gosec // JSON for programs; the client may have gone
}

func fail(w http.ResponseWriter, err error) {
	status := statusOf(err)
	answer(w, int(status.Code), status)
}

func statusOf(err error) metav1.Status {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		known = apierrors.NewInternalError(err)
	}
	status := known.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	return status
}

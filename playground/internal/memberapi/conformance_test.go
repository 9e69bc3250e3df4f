package memberapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/playground/internal/fleet"
	"github.com/acp-io/acp/playground/internal/parts"
	"github.com/acp-io/acp/playground/internal/supervisor"
)

// target is a server to which the requests are sent.
type target struct {
	url    string
	client *http.Client
	tokens map[string]string
	// last is the last object of each name that was answered, and version its resource version before that.
	last map[string]map[string]any
	// next is the last continue token, and listed the version of the last list.
	next, listed string
}

// step is one request. Both servers get it, and their normalized answers must be equal.
type step struct {
	name, method, path string
	// query is added to the path; CONTINUE and LISTED stand for the tokens of the last list.
	query string
	// as is the short name of the user; empty means the administrator.
	as     string
	accept string
	// kind is the content type of the body.
	kind string
	body any
	// change, when set, makes the body of the last object of that name.
	change func(last map[string]any) any
}

const (
	policiesPath = "/apis/cilium.io/v2/ciliumclusterwidenetworkpolicies"
	mapsPath     = "/api/v1/namespaces/default/configmaps"
	applyType    = "application/apply-patch+yaml"
	mergeType    = "application/merge-patch+json"
	metadataList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

	// lastName is the name of the object that the last step creates.
	lastName = "last"
)

type tree map[string]any

// rule returns a policy that admits applications.
func rule(name string, labels tree, extra tree, apps ...any) tree {
	spec := tree{
		"endpointSelector":  tree{"matchLabels": tree{"k8s:com.trip/redis-cluster": "c1"}},
		"enableDefaultDeny": tree{"ingress": true, "egress": false},
		"ingress": []any{tree{
			"fromEndpoints": []any{tree{"matchExpressions": []any{tree{"key": "k8s:com.trip/appid", "operator": "In", "values": apps}}}},
			"toPorts":       []any{tree{"ports": []any{tree{"port": "6379", "protocol": "TCP"}}}},
		}},
	}
	maps.Copy(spec, extra)
	return tree{"apiVersion": "cilium.io/v2", "kind": "CiliumClusterwideNetworkPolicy", "metadata": tree{"name": name, "labels": labels}, "spec": spec}
}

func configMap(name string, data tree) tree {
	return tree{"apiVersion": "v1", "kind": "ConfigMap", "metadata": tree{"name": name}, "data": data}
}

func set(object map[string]any, value any, path ...string) map[string]any {
	for _, p := range path[:len(path)-1] {
		below, ok := object[p].(map[string]any)
		if !ok {
			below = map[string]any{}
			object[p] = below
		}
		object = below
	}
	if value == nil {
		delete(object, path[len(path)-1])
	} else {
		object[path[len(path)-1]] = value
	}
	return object
}

func steps() []step {
	one, apply := policiesPath+"/c1", "fieldManager=a&force=true"
	mine := tree{"app.kubernetes.io/managed-by": "acp", "acp.io/revision": "1"}
	with := func(path ...string) func(value any) func(map[string]any) any {
		return func(value any) func(map[string]any) any {
			return func(last map[string]any) any { set(last, value, path...); return last }
		}
	}
	return []step{
		{name: "an object that does not exist", method: "GET", path: one},
		{name: "an empty list", method: "GET", path: policiesPath, query: "limit=1"},
		{name: "apply creates", method: "PATCH", path: one, query: apply, kind: applyType, body: rule("c1", mine, nil, "1", "2")},
		{name: "apply of the same", method: "PATCH", path: one, query: apply, kind: applyType, body: rule("c1", mine, nil, "1", "2")},
		{name: "apply of less", method: "PATCH", path: one, query: apply, kind: applyType,
			body: rule("c1", tree{"app.kubernetes.io/managed-by": "acp", "acp.io/revision": "2"}, nil, "2")},
		{name: "apply without a label", method: "PATCH", path: one, query: apply, kind: applyType,
			body: rule("c1", tree{"acp.io/revision": "2"}, nil, "2")},
		{name: "read it", method: "GET", path: one},
		{name: "another manager replaces it", method: "PUT", path: one, query: "fieldManager=b", kind: "application/json",
			change: func(last map[string]any) any {
				set(last, "by b", "spec", "description")
				set(last, "b", "metadata", "labels", "acp.io/other")
				return last
			}},
		{name: "apply keeps what the other owns", method: "PATCH", path: one, query: apply, kind: applyType,
			body: rule("c1", tree{"acp.io/revision": "3"}, nil, "3")},
		{name: "apply of what the other owns", method: "PATCH", path: one, query: "fieldManager=a", kind: applyType,
			body: rule("c1", tree{"acp.io/revision": "3"}, tree{"description": "by a"}, "3")},
		{name: "the same by force", method: "PATCH", path: one, query: apply, kind: applyType,
			body: rule("c1", tree{"acp.io/revision": "3"}, tree{"description": "by a"}, "3")},
		{name: "replace an old version", method: "PUT", path: one, kind: "application/json", change: with("metadata", "resourceVersion")("1")},
		{name: "replace without a version", method: "PUT", path: one, query: "fieldManager=b", kind: "application/json",
			change: with("metadata", "resourceVersion")(nil)},
		{name: "merge patch", method: "PATCH", path: one, query: "fieldManager=c", kind: mergeType,
			body: tree{"metadata": tree{"labels": tree{"acp.io/other": nil, "c": "1"}}, "spec": tree{"description": nil}}},
		{name: "merge patch of nothing", method: "PATCH", path: policiesPath + "/none", kind: mergeType, body: tree{}},
		{name: "create what exists", method: "POST", path: policiesPath, kind: "application/json", body: rule("c1", nil, nil, "1")},
		{name: "create", method: "POST", path: policiesPath, query: "fieldManager=b", kind: "application/json", body: rule("c2", tree{"x": "y"}, nil, "1")},
		{name: "create without a name", method: "POST", path: policiesPath, kind: "application/json", body: rule("", nil, nil, "1")},
		{name: "the first page", method: "GET", path: policiesPath, query: "limit=1"},
		{name: "the second page", method: "GET", path: policiesPath, query: "limit=1&continue=CONTINUE"},
		{name: "all", method: "GET", path: policiesPath},
		{name: "all from the cache", method: "GET", path: policiesPath, query: "resourceVersion=0"},
		{name: "by label", method: "GET", path: policiesPath, query: "labelSelector=x%3Dy"},
		{name: "by a label that none has", method: "GET", path: policiesPath, query: "labelSelector=none"},
		{name: "by name", method: "GET", path: policiesPath, query: "fieldSelector=metadata.name%3Dc2"},
		{name: "only metadata", method: "GET", path: policiesPath, accept: metadataList},
		{name: "delete", method: "DELETE", path: policiesPath + "/c2"},
		{name: "read what is deleted", method: "GET", path: policiesPath + "/c2"},
		{name: "delete again", method: "DELETE", path: policiesPath + "/c2"},
		{name: "with a finalizer", method: "POST", path: policiesPath, kind: "application/json", query: "fieldManager=b",
			change: func(map[string]any) any {
				o := rule("c3", nil, nil, "1")
				o["metadata"] = tree{"name": "c3", "finalizers": []any{"example.com/wait"}}
				return o
			}},
		{name: "delete with a finalizer", method: "DELETE", path: policiesPath + "/c3"},
		{name: "read what waits", method: "GET", path: policiesPath + "/c3"},
		{name: "delete what waits", method: "DELETE", path: policiesPath + "/c3"},
		{name: "remove the finalizer", method: "PUT", path: policiesPath + "/c3", query: "fieldManager=b", kind: "application/json",
			change: with("metadata", "finalizers")(nil)},
		{name: "read what has gone", method: "GET", path: policiesPath + "/c3"},
		{name: "create in a namespace", method: "POST", path: mapsPath, query: "fieldManager=b", kind: "application/json",
			body: configMap("m", tree{"a": "1"})},
		{name: "apply in a namespace", method: "PATCH", path: mapsPath + "/m", query: apply, kind: applyType, body: configMap("m", tree{"b": "2"})},
		{name: "list a namespace", method: "GET", path: mapsPath, query: "fieldSelector=metadata.name%3Dm"},
		{name: "list another namespace", method: "GET", path: strings.Replace(mapsPath, "default", "kube-public", 1)},
		{name: "delete in a namespace", method: "DELETE", path: mapsPath + "/m"},
		{name: "a wrong token", method: "GET", path: policiesPath, as: "nobody"},
		{name: "a write without permission", method: "POST", path: policiesPath, as: "reader", kind: "application/json", body: rule("c4", nil, nil, "1")},
		{name: "a kind that is not served", method: "GET", path: "/apis/cilium.io/v2/ciliumthings"},
		{name: "a group that is not served", method: "GET", path: "/apis/example.com/v1/things"},
		{name: "a body that is no JSON", method: "POST", path: policiesPath, kind: "application/json", body: "{"},
		{name: "an unknown patch", method: "PATCH", path: one, kind: "text/plain", body: "{}"},
		{name: "create the last object", method: "POST", path: policiesPath, query: "fieldManager=b", kind: "application/json",
			body: rule(lastName, tree{"x": "z"}, nil, "1")},
	}
}

func TestConformance(t *testing.T) {
	real, light := startReal(t), startLight(t)
	watches := map[*target]func(last string) []any{}
	for _, s := range []*target{real, light} {
		if _, err := s.do(t.Context(), step{method: "GET", path: policiesPath}); err != nil {
			t.Fatal(err)
		}
		watches[s] = s.watch(t)
	}
	for _, s := range steps() {
		want, err := real.do(t.Context(), s)
		if err != nil {
			t.Fatalf("%s: the real server: %v", s.name, err)
		}
		got, err := light.do(t.Context(), s)
		if err != nil {
			t.Fatalf("%s: the light server: %v", s.name, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: the light server answers differently (-real +light):\n%s", s.name, d)
		}
	}
	want, got := watches[real](lastName), watches[light](lastName)
	if len(want) < 10 {
		t.Errorf("the real server sent only %d events", len(want))
	}
	if d := cmp.Diff(outline(want), outline(got)); d != "" {
		t.Fatalf("the watches send different events (-real +light):\n%s", d)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the watches differ (-real +light):\n%s", d)
	}
}

// do sends a request, and returns its normalized answer.
func (s *target) do(ctx context.Context, r step) (map[string]any, error) {
	object := filepath.Base(r.path)
	var body []byte
	switch content := r.body.(type) {
	case string:
		body = []byte(content)
	default:
		if r.change != nil {
			content = r.change(clone(s.last[object]))
		}
		if content == nil {
			break
		}
		var err error
		if body, err = json.Marshal(content); err != nil {
			return nil, err
		}
	}
	query := strings.NewReplacer("CONTINUE", s.next, "LISTED", s.listed).Replace(r.query)
	req, err := http.NewRequestWithContext(ctx, r.method, s.url+r.path+"?"+query, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	as := "admin"
	if r.as != "" {
		as = r.as
	}
	req.Header.Set("Authorization", "Bearer "+s.tokens[as])
	req.Header.Set("Content-Type", r.kind)
	req.Header.Set("Accept", "application/json")
	if r.accept != "" {
		req.Header.Set("Accept", r.accept)
	}
	res, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	var answer map[string]any
	if err := json.Unmarshal(text, &answer); err != nil {
		return map[string]any{"code": res.StatusCode, "text": true}, nil //nolint:nilerr // texts are not compared
	}
	metadata, _ := answer["metadata"].(map[string]any)
	kind, _ := answer["kind"].(string)
	if strings.HasSuffix(kind, "List") {
		s.next, _ = metadata["continue"].(string)
		s.listed, _ = metadata["resourceVersion"].(string)
	}
	out := normalize(answer)
	if name, ok := metadata["name"].(string); ok && name != "" {
		before, _ := s.last[name]["metadata"].(map[string]any)
		out["written"] = before["resourceVersion"] != metadata["resourceVersion"]
		out["same"] = before == nil || before["uid"] == metadata["uid"]
		s.last[name] = answer
	}
	out["code"] = res.StatusCode
	return out, nil
}

// watch begins a watch from the version of the last list. The returned function ends it, and returns the events up to the one of the
// named object. A kube-apiserver may refuse a watch, or end it, while it prepares the storage of a new kind, so the watch begins again, from
// the version of its last event.
func (s *target) watch(t *testing.T) func(last string) []any {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	events := make(chan map[string]any, 100)
	go func() {
		for version := s.listed; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
			version = s.stream(ctx, version, events)
		}
	}()
	return func(last string) []any {
		t.Helper()
		defer cancel()
		late := time.After(time.Minute)
		var out []any
		for {
			select {
			case e := <-events:
				out = append(out, e)
				if metadata, _ := e["metadata"].(map[string]any); metadata["name"] == last {
					return out
				}
			case <-late:
				t.Fatalf("the watch of %s did not send the event of %s: %v", s.url, last, outline(out))
			}
		}
	}
}

// stream sends the events after a version to the channel until the server ends the watch. It returns the version of the last event.
func (s *target) stream(ctx context.Context, version string, events chan<- map[string]any) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+policiesPath+"?watch=true&resourceVersion="+version, http.NoBody)
	if err != nil {
		return version
	}
	req.Header.Set("Authorization", "Bearer "+s.tokens["admin"])
	client := http.Client{Transport: s.client.Transport} // without a limit of time, because a watch may last as long as all steps
	res, err := client.Do(req)
	if err != nil {
		return version
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return version
	}
	for in := json.NewDecoder(res.Body); ; {
		var event struct {
			Type   string                    `json:"type"`
			Object unstructured.Unstructured `json:"object"`
		}
		if in.Decode(&event) != nil {
			return version
		}
		version = event.Object.GetResourceVersion()
		one := normalize(event.Object.Object)
		one["type"] = event.Type
		select {
		case events <- one:
		case <-ctx.Done():
			return version
		}
	}
}

// startReal starts a kube-apiserver with Cilium's kinds.
func startReal(t *testing.T) *target {
	t.Helper()
	repo, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := parts.DefaultDir()
	if err != nil {
		t.Fatal(err)
	}
	built, err := (&parts.Cache{Repo: repo, Dir: dir, Assets: os.Getenv("KUBEBUILDER_ASSETS"), Progress: silent{}}).Ensure(t.Context(), parts.All())
	if err != nil {
		t.Fatal(err)
	}
	layout, err := fleet.NewLayout(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := supervisor.New(supervisor.Config{RunDir: layout.Run(), LogDir: layout.Logs()})
	t.Cleanup(s.Close)
	f, err := fleet.New(fleet.Config{Layout: layout, Repo: repo, Built: built, Supervisor: s, HostOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if err := f.Up(ctx, nil); err != nil {
		t.Fatal(err)
	}
	text, err := exec.CommandContext(ctx, built.Path(parts.Dataplane, parts.ACPDataplane), "crds").Output()
	if err != nil {
		t.Fatal(err)
	}
	crds, err := fleet.Parse("Cilium's CRDs", text)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Applier(fleet.Host).Apply(ctx, crds); err != nil {
		t.Fatal(err)
	}
	pool, err := fleet.Pool(f.PKI.ServerCA)
	if err != nil {
		t.Fatal(err)
	}
	return &target{url: f.AdminConfig(fleet.Host).Host, client: clientOf(pool), last: map[string]map[string]any{},
		tokens: map[string]string{"admin": f.Tokens[fleet.Host][fleet.Admin], "reader": f.Tokens[fleet.Host][fleet.Portal], "nobody": "x"}}
}

type silent struct{}

func (silent) Begin(int, int, parts.Part, string)      {}
func (silent) Elapsed(parts.Part, time.Duration, bool) {}
func (silent) End(parts.Part, time.Duration, error)    {}

func clientOf(pool *x509.CertPool) *http.Client {
	return &http.Client{Timeout: time.Minute, Transport: &http.Transport{ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
}

package fleet

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/testenv"
	"github.com/acp-io/acp/playground/internal/parts"
)

// replica is one of several adapter processes.
type replica struct {
	process *exec.Cmd
	metrics string
	ended   chan struct{}
}

func buildAdapter(t *testing.T, f *Fleet) string {
	t.Helper()
	return buildProgram(t, f, "acp-adapter")
}

// programs are the programs of ACP that the tests of this package built, in a folder that TestMain removes.
var programs struct {
	sync.Mutex
	dir   string
	built map[string]bool
}

// buildProgram returns the path of a program of ACP, which the first test that needs it builds from this checkout.
func buildProgram(t *testing.T, f *Fleet, name string) string {
	t.Helper()
	programs.Lock()
	defer programs.Unlock()
	if !programs.built[name] {
		if err := parts.BuildPrograms(t.Context(), f.Repo, programs.dir, name); err != nil {
			t.Fatal(err)
		}
		programs.built[name] = true
	}
	return filepath.Join(programs.dir, name)
}

func startReplica(t *testing.T, f *Fleet, binary string) *replica {
	t.Helper()
	r := &replica{metrics: testenv.FreeAddress(t), ended: make(chan struct{})}
	r.process = exec.CommandContext(t.Context(), binary, "--kubeconfig", f.Layout.Kubeconfig(Adapter), "--health-address=0", "--metrics-address="+r.metrics)
	if err := r.process.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(r.ended)
		_ = r.process.Wait() // it is killed
	}()
	t.Cleanup(func() { <-r.ended })
	return r
}

func (r *replica) kill(t *testing.T) {
	t.Helper()
	if err := r.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-r.ended
}

// metric returns the sum of the samples whose line begins with one text and contains others.
func metric(ctx context.Context, address, begins string, contains ...string) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	sum := 0.0
	lines := bufio.NewScanner(res.Body)
next:
	for lines.Scan() {
		line := lines.Text()
		if !strings.HasPrefix(line, begins) {
			continue
		}
		for _, c := range contains {
			if !strings.Contains(line, c) {
				continue next
			}
		}
		value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err != nil {
			return 0, err
		}
		sum += value
	}
	return sum, lines.Err()
}

func (r *replica) leads(ctx context.Context) error {
	led, err := metric(ctx, r.metrics, "leader_election_master_status{", `name="acp-adapter"`)
	if err == nil && led != 1 {
		err = errors.New("it does not lead")
	}
	return err
}

// units is a fleet with adapters and resources with one grant each.
type units struct {
	*testing.T
	ctx  context.Context
	f    *Fleet
	host dynamic.Interface
	n    int
}

var (
	protectedResources = v1alpha1.GroupVersion.WithResource("protectedresources")
	accessPolicies     = v1alpha1.GroupVersion.WithResource("accesscontrolpolicies")
	resourceClasses    = v1alpha1.GroupVersion.WithResource("resourceclasses")
	subjectClasses     = v1alpha1.GroupVersion.WithResource("subjectclasses")
)

func (u *units) resource(i int) string { return fmt.Sprint("trnv1:rsc:trip-com:redis:clusters:r", i) }

func (u *units) object(i int) string { return v1alpha1.ObjectPrefix + policy.UnitID(u.resource(i)) }

func (u *units) create(kind schema.GroupVersionResource, kindName, name string, spec map[string]any) {
	u.Helper()
	if _, err := u.host.Resource(kind).Create(u.ctx, &unstructured.Unstructured{Object: map[string]any{"apiVersion": v1alpha1.GroupVersion.String(),
		"kind": kindName, "metadata": map[string]any{"name": name}, "spec": spec}}, metav1.CreateOptions{}); err != nil {
		u.Fatal(err)
	}
}

func (u *units) patch(kind schema.GroupVersionResource, name, patch string) {
	u.Helper()
	if _, err := u.host.Resource(kind).Patch(u.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		u.Fatal(err)
	}
}

func (u *units) createAll() {
	u.Helper()
	u.create(resourceClasses, "ResourceClass", "redis", map[string]any{"pattern": "trnv1:rsc:trip-com:redis:clusters:*", "labelKey": "com.trip/redis-cluster",
		"actions":   []any{map[string]any{"name": "redis:connect", "ports": []any{map[string]any{"port": int64(6379), "protocol": "TCP"}}}},
		"placement": map[string]any{"clusterSelector": map[string]any{}}})
	u.create(subjectClasses, "SubjectClass", "app", map[string]any{"pattern": "trnv1:rsc:trip-com:iam:sa:app/*", "labelKey": "com.trip/appid"})
	for i := range u.n {
		u.create(protectedResources, "ProtectedResource", fmt.Sprint("r", i), map[string]any{"resource": u.resource(i), "mode": "Enforce"})
		u.create(accessPolicies, "AccessControlPolicy", fmt.Sprint("p", i), map[string]any{"statements": []any{map[string]any{"sid": "one", "effect": "Allow",
			"subjects": []any{"trnv1:rsc:trip-com:iam:sa:app/888"}, "actions": []any{"redis:connect"}, "resources": []any{u.resource(i)}}}})
	}
}

// untilMembers waits until the policy of every unit is correct in a member.
func (u *units) untilMembers(what string, is func(i int, ingress string) bool) {
	u.Helper()
	for _, m := range Members() {
		client := as(u.T, u.f, m).Resource(ccnpResource)
		if err := poll(u.ctx, what+" in "+m, func(ctx context.Context) error {
			list, err := client.List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			there := map[string]string{}
			for i := range list.Items {
				rules, _, err := unstructured.NestedSlice(list.Items[i].Object, "spec", "ingress")
				if err != nil {
					return err
				}
				there[list.Items[i].GetName()] = fmt.Sprint(rules)
			}
			for i := range u.n {
				if text, ok := there[u.object(i)]; !ok || !is(i, text) {
					return fmt.Errorf("resource %d: %q", i, text)
				}
			}
			return nil
		}); err != nil {
			u.Fatal(err)
		}
	}
}

// statuses returns the statuses of policies by name, to show differences.
func (u *units) statuses() map[string]string {
	u.Helper()
	out := map[string]string{}
	list, err := u.host.Resource(accessPolicies).List(u.ctx, metav1.ListOptions{})
	if err != nil {
		u.Fatal(err)
	}
	for i := range list.Items {
		out[accessPolicies.Resource+"/"+list.Items[i].GetName()] = fmt.Sprint(list.Items[i].Object["status"])
	}
	return out
}

// versions contains the resource versions of all objects that the adapter may write on the host, and generations the generations of
// the Federated objects.
func (u *units) versions() (versions map[string]string, generations map[string]int64) {
	u.Helper()
	versions, generations = map[string]string{}, map[string]int64{}
	for _, kind := range []schema.GroupVersionResource{protectedResources, accessPolicies, resourceClasses, subjectClasses, federatedResource} {
		list, err := u.host.Resource(kind).List(u.ctx, metav1.ListOptions{})
		if err != nil {
			u.Fatal(err)
		}
		for i := range list.Items {
			versions[kind.Resource+"/"+list.Items[i].GetName()] = list.Items[i].GetResourceVersion()
			if kind == federatedResource {
				generations[list.Items[i].GetName()] = list.Items[i].GetGeneration()
			}
		}
	}
	return versions, generations
}

// settle waits until none of the versions changes any more.
func (u *units) settle() (versions map[string]string, generations map[string]int64) {
	u.Helper()
	const calm = 8 * time.Second // on a busy machine an adapter may not be scheduled for seconds
	before, _ := u.versions()
	since := time.Now()
	if err := poll(u.ctx, "objects of the host change all the time", func(context.Context) error {
		versions, generations = u.versions()
		if changed := differing(before, versions); changed != "" {
			before, since = versions, time.Now()
			return errors.New(changed)
		}
		if time.Since(since) < calm {
			return errors.New("not for long yet")
		}
		return nil
	}); err != nil {
		u.Fatal(err)
	}
	return versions, generations
}

func differing(a, b map[string]string) string {
	for k, v := range a {
		if b[k] != v {
			return k
		}
	}
	if len(a) != len(b) {
		return "there are more"
	}
	return ""
}

// TestReplicas checks that one of two real adapters is active. When it is killed in the middle of a bulk change, the other one
// takes over without losing a change, without writing any object twice, and without writes or further requests when there is
// nothing to do.
func TestReplicas(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	f, processes := newFleet(t, t.TempDir())
	if err := f.Up(ctx, nil); err != nil {
		t.Fatal(err)
	}
	binary := buildAdapter(t, f)
	replicas := []*replica{startReplica(t, f, binary), startReplica(t, f, binary)}
	// leader moves the leading replica to the front.
	leader := func() *replica {
		t.Helper()
		if err := poll(ctx, "nobody leads", func(ctx context.Context) error {
			for i, r := range replicas {
				if r.leads(ctx) == nil {
					replicas[0], replicas[i] = replicas[i], replicas[0]
					return nil
				}
			}
			return errors.New("neither does")
		}); err != nil {
			t.Fatal(err)
		}
		return replicas[0]
	}
	u := &units{T: t, ctx: ctx, f: f, host: as(t, f, Host), n: 100}
	u.createAll()
	u.untilMembers("every unit is there", func(_ int, ingress string) bool { return strings.Contains(ingress, "888") })
	_, before := u.settle()

	first := leader()
	// The adapter writes only as many objects as members may have pending. Without KubeFed nothing is read back, so that a bulk of 100
	// objects takes many times longer than it takes to kill the leader.
	if err := processes.Stop("kubefed"); err != nil {
		t.Fatal(err)
	}
	u.patch(resourceClasses, "redis", `{"spec":{"actions":[{"name":"redis:connect","ports":[{"port":6379,"protocol":"TCP"},{"port":6380,"protocol":"TCP"}]}]}}`)
	widened := func(generations map[string]int64) int {
		n := 0
		for name, g := range generations {
			if g > before[name] {
				n++
			}
		}
		return n
	}
	if err := poll(ctx, "nothing of the bulk is written", func(context.Context) error {
		if _, generations := u.versions(); widened(generations) == 0 {
			return errors.New("not one")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	first.kill(t)
	if _, generations := u.versions(); widened(generations) == u.n {
		t.Error("the bulk was written at once, so this test did not kill anybody in the middle of it")
	}
	if err := f.dropKubeFedLock(ctx); err != nil {
		t.Fatal(err)
	}
	if err := f.startKubeFed(ctx); err != nil {
		t.Fatal(err)
	}
	const gone = 59
	u.patch(accessPolicies, fmt.Sprint("p", gone), `{"spec":{"statements":[]}}`)
	replicas[0] = startReplica(t, f, binary)
	u.untilMembers("the bulk is done and the grant revoked", func(i int, ingress string) bool {
		return strings.Contains(ingress, "6380") && i != gone || i == gone && !strings.Contains(ingress, "888")
	})
	versions, generations := u.settle()
	for i := range u.n {
		// The one that was revoked may have been written for its class before.
		if g, was := generations[u.object(i)], before[u.object(i)]; g != was+1 && (i != gone || g != was+2) {
			t.Errorf("resource %d was written %d times for one change", i, g-was)
		}
	}

	told := u.statuses()
	leader().kill(t)
	killed, standby := time.Now(), replicas[1]
	if err := poll(ctx, "the standby does not lead", standby.leads); err != nil {
		t.Fatal(err)
	}
	t.Logf("the standby leads %s after the leader was killed", time.Since(killed).Round(100*time.Millisecond))
	replicas[0] = startReplica(t, f, binary)
	leader()
	now, _ := u.settle()
	if changed := differing(versions, now); changed != "" {
		t.Errorf("a new leader wrote %s though nothing had changed: %s, and before %s", changed, u.statuses()[changed], told[changed])
	}
	quietMinute(t, ctx, f, replicas)
}

// window is the duration over which requests are counted.
const window = 30 * time.Second

// quietMinute counts the requests of the adapters and KubeFed to API servers while nothing changes.
func quietMinute(t *testing.T, ctx context.Context, f *Fleet, replicas []*replica) {
	t.Helper()
	type count struct {
		what, address string
		contains      []string
		// perMinute is the maximum of requests per minute.
		perMinute float64
	}
	host := f.Ports.Address("apiserver-" + Host)
	var counts []count
	for i, r := range replicas {
		who := []string{"the leader", "the standby"}[i]
		counts = append(counts,
			// The lease is renewed every second and a half, or looked at every two or three.
			count{who + " at the host", r.metrics, []string{`host="` + host + `"`}, []float64{60, 40}[i]},
			count{who + " writes to the host", r.metrics, []string{`host="` + host + `"`, `method="P`}, []float64{45, 0}[i]})
		for _, m := range Members() {
			// The health of a member is read for each kind that is watched: every two seconds of the three that ACP pushes, every ten of the
			// eight that it only reads. That is 138 a minute; the leader's looks at how the member is set up are two of 22 requests each.
			counts = append(counts, count{who + " at " + m, r.metrics, []string{`host="` + f.Ports.Address("apiserver-"+m) + `"`}, []float64{210, 160}[i]},
				count{who + " writes to " + m, r.metrics, []string{`host="` + f.Ports.Address("apiserver-"+m) + `"`, `method="P`}, 0})
		}
	}
	counts = append(counts, count{"KubeFed at the host", f.Ports.Address("kubefed-metrics"), []string{`host="` + host + `"`}, 300})
	for _, m := range Members() {
		counts = append(counts, count{"KubeFed at " + m, f.Ports.Address("kubefed-metrics"), []string{`host="` + f.Ports.Address("apiserver-"+m) + `"`}, 300})
	}
	ask := func() []float64 {
		out := make([]float64, len(counts))
		for i, c := range counts {
			n, err := metric(ctx, c.address, "rest_client_requests_total{", c.contains...)
			if err != nil {
				t.Fatal(err)
			}
			out[i] = n
		}
		return out
	}
	before := ask()
	select {
	case <-time.After(window):
	case <-ctx.Done():
		t.Fatal(ctx.Err())
	}
	for i, n := range ask() {
		perMinute := (n - before[i]) * float64(time.Minute) / float64(window)
		t.Logf("%s: %.0f requests a minute", counts[i].what, perMinute)
		if perMinute > counts[i].perMinute {
			t.Errorf("%s: %.0f requests a minute of nothing, more than %.0f", counts[i].what, perMinute, counts[i].perMinute)
		}
	}
}

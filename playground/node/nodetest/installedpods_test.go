package nodetest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// waitForPods returns when every Deployment of the two namespaces has rolled out: its pods are ready, and no others are left.
func (in *installation) waitForPods(t *testing.T) {
	t.Helper()
	for _, namespace := range []string{"acp-system", "kube-federation-system"} {
		eventually(t, podsTimeout, "the pods of "+namespace+" are ready", func(ctx context.Context) error {
			all, err := in.host.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
			if err != nil || len(all.Items) == 0 {
				return fmt.Errorf("%d Deployments: %w", len(all.Items), err)
			}
			pods, err := in.host.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			wanted := 0
			for _, d := range all.Items {
				wanted += int(*d.Spec.Replicas)
				if s := d.Status; s.ObservedGeneration < d.Generation || s.UpdatedReplicas != *d.Spec.Replicas || s.ReadyReplicas != *d.Spec.Replicas {
					return fmt.Errorf("%s: %+v; pods: %s", d.Name, s, states(pods))
				}
			}
			if len(pods.Items) != wanted {
				return fmt.Errorf("%d pods, want %d", len(pods.Items), wanted)
			}
			return nil
		})
	}
}

// states says how pods are.
func states(pods *corev1.PodList) string {
	var out []string
	for _, p := range pods.Items {
		out = append(out, fmt.Sprintf("%s %s %+v", p.Name, p.Status.Phase, p.Status.ContainerStatuses))
	}
	return strings.Join(out, "; ")
}

// report writes the ends of the logs of all pods.
func (in *installation) report(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	for _, namespace := range []string{"acp-system", "kube-federation-system", "login"} {
		pods, err := in.host.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Log(err)
			continue
		}
		t.Logf("%s: %s", namespace, states(pods))
		for _, p := range pods.Items {
			log, err := in.host.CoreV1().Pods(namespace).GetLogs(p.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
			t.Logf("%s wrote (%v): ... %s", p.Name, err, log[max(0, len(log)-3000):])
		}
	}
}

func podReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// pod returns a ready pod of a program of ACP.
func (in *installation) pod(t *testing.T, namespace, selector string) corev1.Pod {
	t.Helper()
	pods, err := in.host.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		if podReady(&p) {
			return p
		}
	}
	t.Fatalf("no pod %s is ready", selector)
	return corev1.Pod{}
}

// measureMemory prints what the pods of the host use while nobody uses them.
func (in *installation) measureMemory(t *testing.T) {
	measureMemory(t, in.host, "host", map[string]int{"acp-system": 2, "kube-federation-system": 1})
}

// measureMemory prints what pods use, as the kubelet of the node counts it. Programs are how many programs the namespaces have.
func measureMemory(t *testing.T, client kubernetes.Interface, node string, programs map[string]int) {
	t.Helper()
	since := time.Now()
	eventually(t, 3*time.Minute, "the kubelet counts the memory of the pods", func(ctx context.Context) error {
		data, err := client.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes/" + node + "/proxy/stats/summary").DoRaw(ctx)
		if err != nil {
			return err
		}
		var summary struct {
			Pods []struct {
				PodRef struct{ Name, Namespace string }
				Memory struct {
					Time            time.Time
					WorkingSetBytes *int64
				}
			}
		}
		if err := json.Unmarshal(data, &summary); err != nil {
			return err
		}
		used := map[string]int64{}
		for namespace, want := range programs {
			pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			program := map[string]string{}
			found := map[string]bool{}
			for _, p := range pods.Items {
				program[p.Name] = p.Labels["app.kubernetes.io/name"]
			}
			for _, p := range summary.Pods {
				if p.PodRef.Namespace != namespace {
					continue
				}
				if p.Memory.WorkingSetBytes == nil || p.Memory.Time.Before(since) {
					return fmt.Errorf("%s was not counted since %s", p.PodRef.Name, since)
				}
				name := program[p.PodRef.Name]
				used[name], found[name] = max(used[name], *p.Memory.WorkingSetBytes), true
			}
			if len(found) != want || found[""] {
				return fmt.Errorf("the kubelet counts %v in %s, want %d programs", found, namespace, want)
			}
		}
		for program, bytes := range used {
			fmt.Printf("bench pod_memory_%s %.0f MB\n", strings.ReplaceAll(program, "-", "_"), float64(bytes)/(1<<20))
		}
		return nil
	})
}

// checkPods fails when a container was restarted, or something was forbidden to a program.
func (in *installation) checkPods(t *testing.T) {
	t.Helper()
	for _, namespace := range []string{"acp-system", "kube-federation-system"} {
		checkPodsOf(t, in.host, namespace)
	}
}

// checkPodsOf checks the pods of one namespace.
func checkPodsOf(t *testing.T, client kubernetes.Interface, namespace string) {
	t.Helper()
	pods, err := client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		for _, c := range p.Status.ContainerStatuses {
			if c.RestartCount > 0 {
				t.Errorf("%s was restarted %d times: %+v", p.Name, c.RestartCount, c.LastTerminationState)
			}
		}
		log, err := client.CoreV1().Pods(namespace).GetLogs(p.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
		if err != nil {
			t.Error(err)
		}
		for line := range strings.Lines(string(log)) {
			if strings.Contains(strings.ToLower(line), "forbidden") {
				t.Errorf("%s: %s", p.Name, line)
			}
		}
	}
}

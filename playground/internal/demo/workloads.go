package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"net/netip"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// Workload is a group of identical pods in some clusters.
type Workload struct {
	Name      string            `json:"name"`
	Namespace string            `json:"namespace"`
	Labels    map[string]string `json:"labels"`
	Clusters  []string          `json:"clusters"`
	Replicas  int               `json:"replicas"`
	// GRPC are the ports of a gRPC server that istiod configures. Such a workload has no proxy.
	GRPC []int32 `json:"grpc,omitempty"`
}

// serviceAccount returns the service account of its pods: that of the application whose name their labels contain.
func (w Workload) serviceAccount() string {
	if id := w.Labels["com.trip/appid"]; id != "" {
		return "app-" + id
	}
	return "default"
}

// PodLabels returns the labels of each of its pods.
func (w Workload) PodLabels() map[string]string {
	labels := map[string]string{"app.kubernetes.io/name": w.Name}
	maps.Copy(labels, w.Labels)
	return labels
}

// LoadWorkloads reads a list of workloads.
func LoadWorkloads(path string) ([]Workload, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the demo's workloads: %w", err)
	}
	var file struct {
		Workloads []Workload `json:"workloads"`
	}
	if err := yaml.UnmarshalStrict(bytes.TrimSpace(data), &file); err != nil {
		return nil, fmt.Errorf("read the demo's workloads in %s: %w", path, err)
	}
	for _, w := range file.Workloads {
		if w.Name == "" || w.Namespace == "" || len(w.Clusters) == 0 || w.Replicas < 1 {
			return nil, fmt.Errorf("read the demo's workloads in %s: %q needs name, namespace, clusters and replicas", path, w.Name)
		}
	}
	return file.Workloads, nil
}

// Place creates the pods of one cluster. There is no scheduler and no kubelet, so it also assigns a node and an address to each
// pod.
func Place(ctx context.Context, config *rest.Config, cluster string, workloads []Workload) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("place the demo's pods in %s: %w", cluster, err)
	}
	present, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the pods of %s: %w", cluster, err)
	}
	pods, taken := map[string]corev1.Pod{}, map[string]bool{}
	for _, pod := range present.Items {
		pods[pod.Namespace+"/"+pod.Name] = pod
		taken[pod.Status.PodIP] = true
	}
	namespaces := map[string]bool{}
	for _, w := range workloads {
		for _, c := range w.Clusters {
			if c != cluster {
				continue
			}
			if !namespaces[w.Namespace] {
				ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}
				if _, err := client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
					return fmt.Errorf("make namespace %s in %s: %w", w.Namespace, cluster, err)
				}
				namespaces[w.Namespace] = true
			}
			if err := placeService(ctx, client, w); err != nil {
				return fmt.Errorf("place the service of %s in %s: %w", w.Name, cluster, err)
			}
			for i := range w.Replicas {
				if err := placePod(ctx, client, cluster, w, i, pods, taken); err != nil {
					return fmt.Errorf("place pod %d of %s in %s: %w", i, w.Name, cluster, err)
				}
			}
		}
	}
	return nil
}

// meshAnnotations returns the annotations that Istio's injector adds to a pod with a sidecar. No proxy runs here: the pods have them, as
// the members declare Istio, so that resources of classes that Istio enforces, too, have the states that they have in a mesh.
func meshAnnotations() map[string]string {
	return map[string]string{"sidecar.istio.io/status": `{"containers":["istio-proxy"]}`}
}

// annotations returns the annotations of its pods: those of a pod with a sidecar, or those of a gRPC server without a proxy.
func (w Workload) annotations() map[string]string {
	out := meshAnnotations()
	if len(w.GRPC) > 0 {
		out["inject.istio.io/templates"], out["acp.io/grpc-servers"] = "grpc-agent", "xds"
	}
	return out
}

// placeService creates a Service for the ports of a gRPC server, without which istiod does not configure them.
func placeService(ctx context.Context, client kubernetes.Interface, w Workload) error {
	if len(w.GRPC) == 0 {
		return nil
	}
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: w.Name, Namespace: w.Namespace}, Spec: corev1.ServiceSpec{Selector: w.PodLabels()}}
	for _, port := range w.GRPC {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: fmt.Sprintf("grpc-%d", port), Port: port, TargetPort: intstr.FromInt32(port)})
	}
	if _, err := client.CoreV1().Services(w.Namespace).Create(ctx, s, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

func placePod(ctx context.Context, client kubernetes.Interface, cluster string, w Workload, i int, pods map[string]corev1.Pod, taken map[string]bool) error {
	name := fmt.Sprintf("%s-%d", w.Name, i)
	pod, ok := pods[w.Namespace+"/"+name]
	if !ok {
		main := corev1.Container{Name: "main", Image: "playground.invalid/" + w.Name}
		for _, port := range w.GRPC {
			main.Ports = append(main.Ports, corev1.ContainerPort{ContainerPort: port})
		}
		created, err := client.CoreV1().Pods(w.Namespace).Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace, Labels: w.PodLabels(), Annotations: w.annotations()},
			Spec: corev1.PodSpec{
				NodeName:           fmt.Sprintf("%s-node-%d", cluster, i%2+1),
				ServiceAccountName: w.serviceAccount(),
				Containers:         []corev1.Container{main},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		pod = *created
	}
	if pod.Status.PodIP != "" {
		return nil
	}
	ip, err := freeAddress(cluster, pod.Namespace+"/"+pod.Name, taken)
	if err != nil {
		return err
	}
	now := metav1.Now()
	pod.Status.Phase = corev1.PodRunning
	pod.Status.PodIP, pod.Status.PodIPs = ip, []corev1.PodIP{{IP: ip}}
	pod.Status.StartTime = &now
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now}}
	_, err = client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, &pod, metav1.UpdateOptions{})
	return err
}

// freeAddress returns an address for a pod in the range of its cluster (m1: 10.1.0.0/16, m2: 10.2.0.0/16). It is always the same
// address unless another pod has it.
func freeAddress(cluster, pod string, taken map[string]bool) (string, error) {
	var n byte
	if _, err := fmt.Sscanf(cluster, "m%d", &n); err != nil {
		return "", fmt.Errorf("cluster %q has no pod range", cluster)
	}
	h := fnv.New32a()
	h.Write([]byte(pod))
	for offset := range uint32(1 << 16) {
		at := h.Sum32() + offset
		ip := netip.AddrFrom4([4]byte{10, n, byte(at >> 8), byte(at)}).String()
		if byte(at) == 0 || byte(at) == 255 || taken[ip] {
			continue
		}
		taken[ip] = true
		return ip, nil
	}
	return "", errors.New("the cluster's pod range is full")
}

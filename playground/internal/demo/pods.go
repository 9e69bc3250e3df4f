package demo

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/playground/internal/parts"
)

// connection is a line of the traffic file that pods can make. Connections from addresses outside the fleet and scheduled
// connections are excluded.
type connection struct {
	Source struct {
		Clusters []string `json:"clusters"`
		Selector string   `json:"selector"`
	} `json:"source"`
	Destination struct {
		Selector string `json:"selector"`
	} `json:"destination"`
	Port      int32   `json:"port"`
	Protocol  string  `json:"protocol"`
	Interval  string  `json:"interval"`
	Jitter    float64 `json:"jitter"`
	LongLived bool    `json:"longLived"`
}

func (c connection) from(cluster string, w Workload) bool {
	return c.Source.Selector != "" && c.Interval != "" && (c.Protocol == "" || strings.EqualFold(c.Protocol, "TCP")) &&
		(len(c.Source.Clusters) == 0 || slices.Contains(c.Source.Clusters, cluster)) && selects(c.Source.Selector, w)
}

func selects(selector string, w Workload) bool {
	s, err := labels.Parse(selector)
	return err == nil && s.Matches(labels.Set(w.PodLabels()))
}

// firstOpenPort is the first port that a program without privileges may listen on.
const firstOpenPort = 1024

// healthPort is the port of the probes of every pod.
const healthPort = 18080

// RunPods creates the workloads of one cluster as pods of a real node, and Services for those that accept connections. The pods
// make the connections of the traffic file, with its rates multiplied by rate.
func RunPods(ctx context.Context, config *rest.Config, cluster string, workloads []Workload, traffic string, rate float64) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("run the demo's pods in %s: %w", cluster, err)
	}
	data, err := os.ReadFile(traffic)
	if err != nil {
		return fmt.Errorf("read the traffic file: %w", err)
	}
	var file struct {
		Connections []connection `json:"connections"`
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		return fmt.Errorf("read the traffic file %s: %w", traffic, err)
	}
	here := slices.DeleteFunc(slices.Clone(workloads), func(w Workload) bool { return !slices.Contains(w.Clusters, cluster) })
	namespaces := map[string]bool{}
	for _, w := range here {
		if !namespaces[w.Namespace] {
			namespaces[w.Namespace] = true
			if err := makeNamespace(ctx, client, w.Namespace); err != nil {
				return fmt.Errorf("make namespace %s in %s: %w", w.Namespace, cluster, err)
			}
		}
		if err := runWorkload(ctx, client, cluster, w, here, file.Connections, rate); err != nil {
			return fmt.Errorf("run %s in %s: %w", w.Name, cluster, err)
		}
	}
	return waitForPods(ctx, client, cluster, here)
}

// makeNamespace creates a namespace and waits for its ServiceAccount, without which pods cannot be created.
func makeNamespace(ctx context.Context, client kubernetes.Interface, name string) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return every(ctx, func() error {
		_, err := client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

func runWorkload(ctx context.Context, client kubernetes.Interface, cluster string, w Workload, all []Workload, connections []connection, rate float64) error {
	var ports []int32
	args := []string{}
	for _, c := range connections {
		if selects(c.Destination.Selector, w) && !slices.Contains(ports, c.Port) {
			ports = append(ports, c.Port)
		}
		if !c.from(cluster, w) || rate == 0 {
			continue
		}
		interval, err := time.ParseDuration(c.Interval)
		if err != nil {
			return err
		}
		interval = max(time.Duration(float64(interval)/rate), 100*time.Millisecond)
		for _, to := range all {
			if selects(c.Destination.Selector, to) {
				way := "connect"
				if c.LongLived {
					way = "hold"
				}
				args = append(args, fmt.Sprintf("--%s=%s.%s.svc.cluster.local.:%d@%s~%g", way, to.Name, to.Namespace, c.Port, interval, c.Jitter))
			}
		}
	}
	listen := []string{fmt.Sprintf(":%d", healthPort)}
	var service []corev1.ServicePort
	for _, port := range ports {
		service = append(service, corev1.ServicePort{Name: fmt.Sprintf("port-%d", port), Port: port, TargetPort: intstr.FromInt32(port)})
		if port >= firstOpenPort {
			listen = append(listen, fmt.Sprintf(":%d", port))
		}
	}
	args = append(args, "--listen="+strings.Join(listen, ","))
	if len(service) > 0 {
		s := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: w.Name, Namespace: w.Namespace},
			Spec:       corev1.ServiceSpec{Selector: w.PodLabels(), Ports: service},
		}
		if _, err := client.CoreV1().Services(w.Namespace).Create(ctx, s, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	for i := range w.Replicas {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("%s-%d", w.Name, i), Namespace: w.Namespace, Labels: w.PodLabels(), Annotations: meshAnnotations(),
			},
			Spec: podSpec(args),
		}
		if _, err := client.CoreV1().Pods(w.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

func podSpec(args []string) corev1.PodSpec {
	yes, no, grace := true, false, int64(1)
	return corev1.PodSpec{
		TerminationGracePeriodSeconds: &grace, AutomountServiceAccountToken: &no,
		Containers: []corev1.Container{
			{
				Name:            "main",
				Image:           parts.NodeProbeImage,
				ImagePullPolicy: corev1.PullNever,
				Args:            args,
				ReadinessProbe: &corev1.Probe{
					ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(healthPort)}},
					PeriodSeconds: 5,
				},
				SecurityContext: &corev1.SecurityContext{
					RunAsNonRoot:             &yes,
					AllowPrivilegeEscalation: &no,
					ReadOnlyRootFilesystem:   &yes,
					Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			},
		},
	}
}

// waitForPods waits until all pods are running.
func waitForPods(ctx context.Context, client kubernetes.Interface, cluster string, workloads []Workload) error {
	wanted := 0
	namespaces := map[string]bool{}
	for _, w := range workloads {
		wanted += w.Replicas
		namespaces[w.Namespace] = true
	}
	return every(ctx, func() error {
		pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		running := 0
		for _, p := range pods.Items {
			if namespaces[p.Namespace] && p.Status.Phase == corev1.PodRunning {
				running++
			}
		}
		if running < wanted {
			return fmt.Errorf("%d of the %d pods of %s run", running, wanted, cluster)
		}
		return nil
	})
}

// every calls check repeatedly until it returns nil.
func every(ctx context.Context, check func() error) error {
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; last answer: %w", cmp.Or(context.Cause(ctx), ctx.Err()), err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

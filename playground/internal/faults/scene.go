package faults

import (
	"fmt"
	"maps"
	"slices"

	"github.com/acp-io/acp/playground/internal/demo"
)

// Label keys of the demo's classes.
const (
	appKey   = "com.trip/appid"
	queueKey = "com.trip/queue"
	redisKey = "com.trip/redis-cluster"
)

// names of what is only here.
const (
	// vault is always in Enforce, and no step touches it by hand: what never may reach it, nothing may let in.
	vault     = "vault"
	redisStem = "trnv1:rsc:trip-com:redis:clusters:"
	queueStem = "trnv1:rsc:trip-com:queue:topics:"
	appStem   = "trnv1:rsc:trip-com:iam:sa:app/"
	// intruder is an application that no statement ever names.
	intruder = "900"
)

// ownWorkloads are pods beside the demo's.
func ownWorkloads() []demo.Workload {
	both := []string{"m1", "m2"}
	return []demo.Workload{
		{Name: vault, Namespace: "redis", Labels: map[string]string{redisKey: vault}, Clusters: both, Replicas: 1},
		{Name: "jobs", Namespace: "queue", Labels: map[string]string{queueKey: "jobs"}, Clusters: both, Replicas: 1},
		{Name: "mails", Namespace: "queue", Labels: map[string]string{queueKey: "mails"}, Clusters: both, Replicas: 1},
		{Name: "intruder", Namespace: "tools", Labels: map[string]string{appKey: intruder}, Clusters: both, Replicas: 1},
	}
}

// outside are addresses that the external workloads of the steps have or do not have.
var outside = []string{"172.20.4.17", "172.30.0.1", "172.30.0.2", "172.30.1.1"}

// scene is who may try to connect to whom: one pod of each workload, everywhere.
type scene struct {
	sources []source
	// servers of each member.
	servers map[string][]server
}

type source struct {
	id     string
	labels map[string]string // nil: an address outside
}

type server struct {
	pod    string
	labels map[string]string
}

// ports that some action names, and one that none does.
var ports = []uint16{6379, 3306, 8080, 9092, 7070, 9000, 9121}

func newScene(workloads []demo.Workload) scene {
	s := scene{servers: map[string][]server{}}
	for _, w := range workloads {
		labels := w.PodLabels()
		for _, c := range w.Clusters {
			if _, client := w.Labels[appKey]; client || len(w.Labels) == 0 {
				s.sources = append(s.sources, source{fmt.Sprintf("%s/%s/%s-0", c, w.Namespace, w.Name), labels})
				continue
			}
			s.servers[c] = append(s.servers[c], server{fmt.Sprintf("%s/%s-0", w.Namespace, w.Name), labels})
		}
	}
	for _, a := range outside {
		s.sources = append(s.sources, source{id: a})
	}
	return s
}

// connections to the servers of a member, each with what is needed to decide it.
func (s scene) connections(member string) []attempt {
	var out []attempt
	for _, to := range s.servers[member] {
		for _, from := range s.sources {
			for _, port := range ports {
				out = append(out, attempt{connection{from.id, to.pod, port}, from, to})
			}
		}
	}
	return out
}

type attempt struct {
	connection
	source source
	server server
}

// labels that pods have, by key.
func (s scene) knownLabels() map[string][]string {
	out := map[string]map[string]bool{}
	add := func(labels map[string]string) {
		for k, v := range labels {
			if out[k] == nil {
				out[k] = map[string]bool{}
			}
			out[k][v] = true
		}
	}
	for _, from := range s.sources {
		add(from.labels)
	}
	for _, all := range s.servers {
		for _, to := range all {
			add(to.labels)
		}
	}
	sorted := map[string][]string{}
	for k, v := range out {
		sorted[k] = slices.Sorted(maps.Keys(v))
	}
	return sorted
}

package faults

import (
	"fmt"
	"maps"
	"slices"

	"github.com/acp-io/acp/playground/internal/demo"
	"github.com/acp-io/acp/playground/internal/enforcement"
)

// These are the label keys of the demo's classes.
const (
	appKey   = "com.trip/appid"
	queueKey = "com.trip/queue"
	redisKey = "com.trip/redis-cluster"
)

// These names are used only by the drill.
const (
	// alwaysEnforced is the name of a resource that is in Enforce during the whole run and that no manual change affects, so that an
	// application without a grant must never reach it.
	alwaysEnforced = "unchanged"
	redisStem      = "trnv1:rsc:trip-com:redis:clusters:"
	queueStem      = "trnv1:rsc:trip-com:queue:topics:"
	appStem        = "trnv1:rsc:trip-com:iam:sa:app/"
	// ungrantedApp is an application that no statement names.
	ungrantedApp = "900"
)

// drillWorkloads returns the workloads that the drill adds to those of the demo.
func drillWorkloads() []demo.Workload {
	both := []string{"m1", "m2"}
	return []demo.Workload{
		{Name: alwaysEnforced, Namespace: "redis", Labels: map[string]string{redisKey: alwaysEnforced}, Clusters: both, Replicas: 1},
		{Name: "jobs", Namespace: "queue", Labels: map[string]string{queueKey: "jobs"}, Clusters: both, Replicas: 1},
		{Name: "mails", Namespace: "queue", Labels: map[string]string{queueKey: "mails"}, Clusters: both, Replicas: 1},
		{Name: "ungranted", Namespace: "tools", Labels: map[string]string{appKey: ungrantedApp}, Clusters: both, Replicas: 1},
	}
}

// externalAddresses are source addresses outside the fleet. The external workloads of the steps cover some of them at times.
var externalAddresses = []string{"172.20.4.17", "172.30.0.1", "172.30.0.2", "172.30.1.1"}

// topology contains the sources and servers of the probed connections: one pod of each workload in each member.
type topology struct {
	sources []source
	// servers contains the servers by member.
	servers map[string][]server
}

// source is a pod, or an address outside the fleet.
type source struct {
	id     string
	labels map[string]string // nil for an address outside the fleet
}

// server is a pod that accepts connections.
type server struct {
	pod    string
	labels map[string]string
}

// ports contains the ports of the actions, and one port of no action.
var ports = []uint16{6379, 3306, 8080, 9092, 7070, 9000, 9121}

func newTopology(workloads []demo.Workload) topology {
	s := topology{servers: map[string][]server{}}
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
	for _, a := range externalAddresses {
		s.sources = append(s.sources, source{id: a})
	}
	return s
}

// connections returns every combination of source, server and port of a member, with the labels that decide the verdict.
func (t topology) connections(member string) []attempt {
	var out []attempt
	for _, to := range t.servers[member] {
		for _, from := range t.sources {
			for _, port := range ports {
				out = append(out, attempt{enforcement.Connection{From: from.id, To: to.pod, Port: port}, from, to})
			}
		}
	}
	return out
}

// attempt is a probed connection with its source and server.
type attempt struct {
	enforcement.Connection
	source source
	server server
}

// knownLabels returns the sorted label values of all pods, by key.
func (t topology) knownLabels() map[string][]string {
	out := map[string]map[string]bool{}
	add := func(labels map[string]string) {
		for k, v := range labels {
			if out[k] == nil {
				out[k] = map[string]bool{}
			}
			out[k][v] = true
		}
	}
	for _, from := range t.sources {
		add(from.labels)
	}
	for _, all := range t.servers {
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

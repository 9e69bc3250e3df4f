package federation

import (
	corev1 "k8s.io/api/core/v1"
)

// Propagation is what KubeFed says about the present generation of a Federated object.
type Propagation struct {
	// Done: KubeFed has handled the present generation, and every placed member took it.
	Done bool
	// Seen: KubeFed has handled the present generation; some members may have failed.
	Seen bool
	// Clusters maps the members that KubeFed lists to its word for each; "" is success. It may be about an older
	// generation when Seen is false.
	Clusters map[string]string
}

// OK tells whether KubeFed says that the member has the present generation.
func (p Propagation) OK(cluster string) bool {
	word, listed := p.Clusters[cluster]
	return p.Seen && listed && word == ""
}

// The condition and the words are KubeFed's (pkg/controller/sync/status).
const (
	propagationCondition = "Propagation"
	// WaitingForRemoval: KubeFed has asked the member to delete the object, and still sees it there.
	WaitingForRemoval = "WaitingForRemoval"
)

type wireStatus struct {
	ObservedGeneration int64               `json:"observedGeneration,omitempty"`
	Conditions         []wireCondition     `json:"conditions,omitempty"`
	Clusters           []wireClusterStatus `json:"clusters,omitempty"`
}

type wireCondition struct {
	Type   string                 `json:"type"`
	Status corev1.ConditionStatus `json:"status"`
	Reason string                 `json:"reason,omitempty"`
}

type wireClusterStatus struct {
	Name   string `json:"name"`
	Status string `json:"status,omitempty"`
}

func (s wireStatus) propagation(generation int64) Propagation {
	p := Propagation{Clusters: map[string]string{}, Seen: s.ObservedGeneration == generation && generation > 0}
	for _, c := range s.Clusters {
		p.Clusters[c.Name] = c.Status
	}
	for _, c := range s.Conditions {
		if c.Type == propagationCondition {
			p.Done = p.Seen && c.Status == corev1.ConditionTrue
		}
	}
	return p
}

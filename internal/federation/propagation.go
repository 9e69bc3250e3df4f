package federation

// Propagation is what KubeFed says about the present generation of a Federated object.
type Propagation struct {
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

// WaitingForRemoval is KubeFed's word (pkg/controller/sync/status) for a member that it has asked to delete the object,
// and still sees it there.
const WaitingForRemoval = "WaitingForRemoval"

type wireStatus struct {
	ObservedGeneration int64               `json:"observedGeneration,omitempty"`
	Clusters           []wireClusterStatus `json:"clusters,omitempty"`
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
	return p
}

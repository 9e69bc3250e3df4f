package federation

// Propagation is KubeFed's status of the present generation of a Federated object.
type Propagation struct {
	// Seen reports whether KubeFed has handled the present generation. Some members may have failed.
	Seen bool
	// Clusters contains KubeFed's status value of each member that it lists; "" is success. It may belong to an older
	// generation if Seen is false.
	Clusters map[string]string
}

// OK reports whether, according to KubeFed, the member has the present generation.
func (p Propagation) OK(cluster string) bool {
	word, listed := p.Clusters[cluster]
	return p.Seen && listed && word == ""
}

// WaitingForRemoval is KubeFed's status value (pkg/controller/sync/status) of a member in which it requested the
// deletion of the object but still sees it.
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
		p.Clusters[shared.share(c.Name)] = shared.share(c.Status)
	}
	return p
}

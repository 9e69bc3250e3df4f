package federation

import (
	"slices"
	"strings"

	"github.com/acp-io/acp/internal/federation/guard"
)

// Engine names the propagation engine of a member: what distributes the recorded objects to it. Package propagation implements the
// engines.
type Engine string

// Engines.
const (
	// EngineKubeFed is KubeFed's sync controller. It is the engine of a member whose registration names none.
	EngineKubeFed Engine = "kubefed"
	// EngineDirect is the adapter itself, with an account of its own in the member.
	EngineDirect Engine = "direct"
	// EngineOCM is the work agent of Open Cluster Management in the member, which fetches ManifestWorks from the host.
	EngineOCM Engine = "ocm"
	// EngineNone is the engine of a member that leaves, and gets nothing any more. No member is joined with it.
	EngineNone Engine = "none"
)

// Engines returns the engines with which a member can be joined.
func Engines() []Engine { return []Engine{EngineKubeFed, EngineDirect, EngineOCM} }

// ParseEngine returns the engine that an annotation names. An unknown name is kept: nothing is carried to such a member.
func ParseEngine(annotation string) Engine {
	if annotation == "" {
		return EngineKubeFed
	}
	return Engine(annotation)
}

// KubeFedLocked reports whether the registration names a Secret that KubeFed cannot have, so that KubeFed neither reads nor writes the
// member.
func (c Cluster) KubeFedLocked() bool { return c.Quarantined || c.Secret == DirectSecretName(c.Name) }

// SharedWithKubeFed reports whether KubeFed may still write into a member of another engine: the registration names KubeFed's Secret, or
// KubeFed has not noticed yet that it does not.
func (c Cluster) SharedWithKubeFed() bool {
	return !c.Engine.IsKubeFed() && !c.Quarantined && (!c.KubeFedLocked() || c.ReadyForKubeFed)
}

// DependsOnKubeFed reports whether KubeFed writes into the member, or still may.
func (c Cluster) DependsOnKubeFed() bool { return c.Engine.IsKubeFed() || !c.KubeFedLocked() }

// UsesKubeFed reports whether KubeFed writes into one of the registered members, or whether there is no member yet.
func UsesKubeFed(clusters []Cluster) bool {
	return len(clusters) == 0 || slices.ContainsFunc(clusters, Cluster.DependsOnKubeFed)
}

// IsKubeFed reports whether the engine is KubeFed, which the zero value stands for, too.
func (e Engine) IsKubeFed() bool { return e == "" || e == EngineKubeFed }

// HasWorkAgent reports whether the work agent of Open Cluster Management writes into the member, or may still because the member is moving
// to another engine.
func (c Cluster) HasWorkAgent() bool { return c.Engine == EngineOCM || c.FormerEngine == EngineOCM }

// Pulls reports whether an agent in the member fetches what it has to have, so that the host has no token of the engine's account.
func (e Engine) Pulls() bool { return e == EngineOCM }

// Writer returns the user as which the engine writes in a member, which the guard there admits.
func (e Engine) Writer() string {
	switch e {
	case EngineDirect:
		return guard.DirectWriter
	case EngineOCM:
		return guard.WorkAgent
	case EngineKubeFed, EngineNone:
	}
	return guard.Pusher
}

// Account returns the name of the service account of Writer.
func (e Engine) Account() string {
	return e.Writer()[strings.LastIndex(e.Writer(), ":")+1:]
}

// WriterSecret returns the namespace and the name of the Secret on the host with the token of the engine's account in the member.
// KubeFed's is in KubeFed's namespace; the direct engine's is in the adapter's, which KubeFed cannot read. An engine that pulls has none,
// and both names are "".
func (c Cluster) WriterSecret(kubeFedNamespace, credentialsNamespace string) (namespace, name string) {
	switch {
	case c.Engine.Pulls():
		return "", ""
	case c.Engine == EngineDirect:
		return credentialsNamespace, DirectSecretName(c.Name)
	}
	return kubeFedNamespace, c.Secret
}

// Package kubefed is the propagation engine of members that KubeFed's sync controller writes to. KubeFed watches the recorded objects
// itself, so the engine only reports KubeFed's status, and passes urgent objects to a DirectWriter, which writes them while KubeFed is behind.
package kubefed

import (
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/propagation"
)

// Engine is the engine of KubeFed.
type Engine struct {
	// DirectWriter writes urgent objects into the members while KubeFed is behind; nil disables that.
	DirectWriter DirectWriter
}

// DirectWriter writes objects into members of KubeFed while KubeFed is behind. memberwriter.Writer implements it.
type DirectWriter interface{ Send(o *federation.Object) }

var _ propagation.Engine = Engine{}

// Name returns the engine's name.
func (Engine) Name() federation.Engine { return federation.EngineKubeFed }

// Capabilities returns KubeFed's limits, which package writequeue takes into account.
func (Engine) Capabilities() propagation.Capabilities {
	return propagation.Capabilities{Mode: propagation.Push, Overrides: true, WritesPerSecond: federation.WritesPerSecond, NeedsController: true,
		FollowsEdits: true, RemovesDeleted: true}
}

// Deliver does nothing, because KubeFed watches the recorded objects.
func (Engine) Deliver(*federation.Object) {}

// DeliverUrgent passes the object to the urgent writer.
func (e Engine) DeliverUrgent(o *federation.Object) {
	if e.DirectWriter != nil {
		e.DirectWriter.Send(o)
	}
}

// Report returns KubeFed's status.
func (Engine) Report(o *federation.Object, cluster string) federation.Report {
	return o.Propagation.ReportIn(cluster)
}

// Recheck does nothing, because KubeFed watches the members.
func (Engine) Recheck(string, string) {}

package views

import (
	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/organization"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/rollout"
	"github.com/acp-io/acp/internal/waves"
)

// Waves returns the progress of a rollout, or nil for nil. everywhere is whether the last wave has begun, and may reports which instructions
// the caller may give.
func Waves(c *catalog.Catalog, in *v1alpha1.RolloutProgress, everywhere bool, may func(waves.Action) bool) *openapi.RolloutWaves {
	if in == nil {
		return nil
	}
	out := &openapi.RolloutWaves{Wave: int(in.Wave), Name: core.Optional(in.Name), Waves: int(in.Waves), Waiting: int(in.Waiting),
		Everywhere: everywhere, StartedAt: in.StartedAt.UTC(), Actions: []openapi.WavesAction{}}
	if in.BegunAt != nil {
		out.BegunAt = new(in.BegunAt.UTC())
	}
	if in.EnforcedSince != nil {
		out.EnforcedSince = new(in.EnforcedSince.UTC())
	}
	if h := in.Halt; h != nil {
		out.Halt = &openapi.WavesHalt{Reason: string(h.Reason), At: h.At.UTC(), Cluster: core.Optional(h.Cluster),
			Message: message.Restore(h.Message, h.MessageCode, h.MessageParams)}
		if h.By != "" && h.By != waves.Guard {
			out.Halt.By = new(Person(c, h.By))
		}
	}
	for _, action := range waves.Actions() {
		halted := in.Halt != nil
		if may(action) && (action != waves.Pause || !halted) && (action != waves.Resume || halted) {
			out.Actions = append(out.Actions, openapi.WavesAction(action))
		}
	}
	return out
}

// ClassWaves returns the progress of a change of a class through its waves, or nil if no rollout is in progress.
func ClassWaves(c *catalog.Catalog, all *organization.Index, who approval.Actor, class *v1alpha1.ResourceClass) *openapi.RolloutWaves {
	return Waves(c, rollout.ClassProgress(class), class.Begun().Equal(v1alpha1.MemberSet{AllExcept: true}), func(action waves.Action) bool {
		return rollout.MayInstructClass(c, all, who, class, action)
	})
}

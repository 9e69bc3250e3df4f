package governance

import (
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

// mostReasons and mostText bound the number of members whose reasons NotRealized returns, and their texts in bytes. The
// first reason is returned in any case.
const (
	mostReasons = 5
	mostText    = 1024
)

// NotRealized returns the reasons why the worst members are not Realized. text is the message of the condition Realized,
// which has no code: it is composed of the messages of the members, so it is composed again from those. If the status
// lists no member with a message, the text says why no member has to have anything, or is returned as it is.
func NotRealized(states []v1alpha1.ClusterState, text string) message.Message {
	var parts []message.Message
	length := 0
	for _, c := range slices.SortedFunc(slices.Values(states), v1alpha1.CompareMembers) {
		if c.State == v1alpha1.MemberRealized || c.Message == "" {
			continue
		}
		if length += len(c.Message); len(parts) == 0 || len(parts) < mostReasons && length <= mostText {
			parts = append(parts, message.StateOfMember(string(c.Name), message.Restore(c.Message, c.MessageCode, c.MessageParams)))
		}
	}
	if len(parts) == 0 {
		return message.OfText(text, message.ConditionNothingRequired(), message.ConditionNotOnboarded())
	}
	return message.Parts(parts)
}

package statusfields

import (
	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

// BoundedMessage returns the fields of a status that hold a message: the English text, the code and the parameters. A text that
// is too long is shortened. It then has no code, because the code and the parameters would say more than the text. Nor
// has a message that would be larger than the longest text, so that the code never takes room from another message.
func BoundedMessage(m message.Message) (text, code, params string) {
	text = Truncate(m.Text)
	if text != m.Text {
		return text, "", ""
	}
	code, params = m.Compact()
	if len(params) > maxMessage || len(code)+SizeOfText(text)+SizeOfText(params) > 2*maxMessage {
		return text, "", ""
	}
	return text, code, params
}

// RefusedStatement returns a refusal for the status of a policy.
func RefusedStatement(sid, reason string, m message.Message) v1alpha1.RefusedStatement {
	out := v1alpha1.RefusedStatement{SID: sid, Reason: reason}
	out.Message, out.MessageCode, out.MessageParams = BoundedMessage(m)
	return out
}

// SetMessage sets the message of a member's state.
func SetMessage(c *v1alpha1.ClusterState, m message.Message) {
	c.Message, c.MessageCode, c.MessageParams = BoundedMessage(m)
}

package policy

import "github.com/acp-io/acp/internal/message"

// DecisionReason identifies why a Decision has its verdict. It is a number, because a decision is made for every
// connection and its reason is rarely shown.
type DecisionReason uint8

// The reasons of decisions. The last two are the reasons of decisions that are made without statements.
const (
	// ReasonNone is the reason of no decision.
	ReasonNone DecisionReason = iota
	// ReasonUnmanaged means that none of the resources is in Audit or Enforce.
	ReasonUnmanaged
	// ReasonDenied means that a deny matches and its resource is enforced.
	ReasonDenied
	// ReasonAllowed means that an allow matches.
	ReasonAllowed
	// ReasonOtherPort means that no action names the port, and that the class leaves such ports open.
	ReasonOtherPort
	// ReasonDefaultDenied means that no allow matches, and that the resource is enforced.
	ReasonDefaultDenied
	// ReasonAuditDenied means that Audit lets in what a deny would refuse in Enforce.
	ReasonAuditDenied
	// ReasonAuditDefaultDenied means that Audit lets in what no allow would match in Enforce.
	ReasonAuditDefaultDenied
	// ReasonProtocolNotEnforced means that the enforcer of the resource does not refuse the protocol.
	ReasonProtocolNotEnforced
	// ReasonAddressesDenied means that all addresses are denied the port, because a denied subject may have pods in
	// another cluster mesh.
	ReasonAddressesDenied
	// ReasonOwnNode means that the source is the node of the destination, which is always let in.
	ReasonOwnNode
	// ReasonNothingThere means that the member has nothing of the resource yet.
	ReasonNothingThere
)

var decisionReasons = [...]func() message.Message{
	ReasonNone:                func() message.Message { return message.Message{} },
	ReasonUnmanaged:           message.DecisionUnmanaged,
	ReasonDenied:              message.DecisionDenied,
	ReasonAllowed:             message.DecisionAllowed,
	ReasonOtherPort:           message.DecisionOtherPort,
	ReasonDefaultDenied:       message.DecisionDefaultDenied,
	ReasonAuditDenied:         message.DecisionAuditDenied,
	ReasonAuditDefaultDenied:  message.DecisionAuditDefaultDenied,
	ReasonProtocolNotEnforced: message.DecisionProtocolNotEnforced,
	ReasonAddressesDenied:     message.DecisionAddressesDenied,
	ReasonOwnNode:             message.DecisionOwnNode,
	ReasonNothingThere:        message.DecisionNothingThere,
}

// Message returns the reason as a message, which it does not allocate.
func (r DecisionReason) Message() message.Message { return decisionReasons[r]() }

// Code returns the code of the reason, "" for ReasonNone. message.Decode reads it.
func (r DecisionReason) Code() string { return r.Message().Code }

// String returns the reason in English.
func (r DecisionReason) String() string { return r.Message().Text }

// MarshalJSON writes the reason as a message.
func (r DecisionReason) MarshalJSON() ([]byte, error) { return r.Message().MarshalJSON() }

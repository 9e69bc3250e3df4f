package policy

import "github.com/acp-io/acp/internal/message"

// DecisionReason identifies why a Decision has its verdict. It is a number, because a decision is made for every
// connection and its reason is rarely shown.
type DecisionReason uint8

// The reasons of decisions. The last two are those of decisions that are made without statements.
const (
	ReasonNone DecisionReason = iota
	ReasonUnmanaged
	ReasonDenied
	ReasonAllowed
	ReasonOtherPort
	ReasonDefaultDenied
	ReasonAuditDenied
	ReasonAuditDefaultDenied
	ReasonProtocolNotEnforced
	ReasonAddressesDenied
	ReasonOwnNode
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

// Package propagation is the interface between the objects that the host records and the members that must have them. An engine distributes
// the recorded objects to the members that use it, and reports what it recorded. Each member uses one engine, which its registration
// names; members of different engines can be mixed.
//
// The record of an object on the host, the Federated object, is the same for every engine: the template, the placement, the
// differences by member, and the members that may have the object. So the desired state does not change when a member moves from one
// engine to another.
//
// The packages above this one implement what ACP guarantees, once for all engines: the removal protocol, the order of revocations, the
// quarantine, the state that is read back, the downgrade, and the guard. docs/engines.md describes the contract.
package propagation

// Package admission owns the rules that an object has to obey and that need other objects: names in no class, classes
// that overlap or are in use, resources that would be lost while they are closed. It also says what is legal but odd.
//
// It is pure; the webhook that serves it is below. Nothing relies on it: compilation refuses by itself what slips
// through, so the webhook fails open. For the same reason it never stands in the way of taking something away: what was
// wrong before the change, and is not touched by it, is a warning.
package admission

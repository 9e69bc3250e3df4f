// Package direct writes what may not wait into the members itself while KubeFed is behind, or stands still: 10,000 policies that are opened
// in an emergency take KubeFed 500 seconds, and a revocation meanwhile would take what is left of these.
//
// The Federated object comes first, and what is written is what it has for the member, with KubeFed's own account, onto the revision
// that was seen there and onto no other. So KubeFed, whenever its turn comes, finds what it was about to write. Whatever fails here is
// KubeFed's work as before: nothing is tried for ever, and nothing is told of it but by what is read back.
package direct

// Package pace owns the order of work: which of the objects that have to be written for KubeFed may be written now.
//
// KubeFed writes some 20 objects a second into each member, first come, first served, and has no order of its own. So
// whatever is not urgent is written only while KubeFed owes the members little, and a revocation that comes meanwhile
// finds a short queue. What KubeFed owes is read from its status and from the members, so a restart loses nothing.
//
// Each member has room of its own: a member that lags delays only what it alone needs. The package imports neither policies nor
// members, writes nothing, and takes the time as an argument.
package pace

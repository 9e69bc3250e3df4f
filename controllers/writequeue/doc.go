// Package writequeue decides in which order objects are written for KubeFed, and when each may be written.
//
// KubeFed writes about 20 objects a second into each member, first in, first out, and has no priorities of its own. The queue
// therefore lets grants and bulk changes be written only while few objects wait for KubeFed, so that a revocation that arrives
// meanwhile finds a short queue. How many objects KubeFed has not propagated yet is read from its status and from the members,
// so that a restart loses nothing.
//
// Urgent writes do not depend on KubeFed's queue alone: while KubeFed is behind, package memberwriter writes them into the members.
//
// Each member has a capacity of its own: a slow member delays only what has to be written into it. The package imports neither
// policies nor members, performs no I/O, and takes the time as an argument.
package writequeue

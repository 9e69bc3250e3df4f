// Package approval contains the tickets: their states, who must decide, the effects of decisions, and how an approved
// ticket becomes a statement or an object in the host cluster and is followed until it is in force. Transitions are pure
// functions of a ticket. Service, Worker and Follower apply them with a Store and the interfaces in ports.go. Statement returns the
// statement that an approved item becomes; package policy decides what it allows. The package
// may import names of package policy and the catalog, but never HTTP, SQL or a Kubernetes client.
package approval

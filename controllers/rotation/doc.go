// Package rotation renews the tokens with which the members' engines and the adapter access the members, and notifies KubeFed, which
// does not watch Secrets, of every new token, whoever wrote it.
//
// Each account renews its own token, so no account can create another one's. The package writes the two Secrets of a
// member and one annotation of its KubeFedCluster, and nothing in a member. A token that does not expire stays as it
// is; one that the member does not let the account renew stays, too, and is reported.
package rotation

// Package rotation keeps the tokens young with which KubeFed and the adapter reach the members, and tells KubeFed, which does
// not watch Secrets, of every new one, whoever wrote it.
//
// Each account renews itself with its own token, so no account can make itself another one's. The package writes the two
// Secrets of a member and one annotation of its KubeFedCluster, and nothing in a member. A token that has no end, or that
// the member does not let the account renew, is left as it is and told of.
package rotation

// Package views contains what several features of the portal read and show in the same way: people and names of the catalog, access
// with its tickets, states of members, connections, and the rules of who may see them. It must not import features.
package views

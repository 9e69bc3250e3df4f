// Package nodetest tests real nodes as a user runs them: it starts the program acp-nodes, makes connections between pods, and compares
// the machine before with the machine afterwards. Its tests need root.
package nodetest

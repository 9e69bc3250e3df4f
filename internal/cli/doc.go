// Package cli owns the commands of kubectl-acp: what they read, print and return as exit code. It only asks: meaning is
// internal/policy's, translation the enforcers', and reading objects internal/manifest's. It changes no cluster.
package cli

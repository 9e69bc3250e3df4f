// Package cli implements the commands of kubectl-acp: their input, output and exit codes. The meaning of policies is in
// internal/policy, the translation in the enforcers, and the reading of objects in internal/manifest.
package cli

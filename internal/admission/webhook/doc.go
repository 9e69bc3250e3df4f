// Package webhook serves the rules of internal/admission to an API server: it gathers the objects that a rule needs,
// evaluates the rule, and answers the review. It reloads its certificate, and contains no rule of its own.
package webhook

// Package webhook serves internal/admission's rules to an API server: it gathers what a rule needs, asks, and answers.
// It keeps its certificate fresh, and it holds no rule of its own.
package webhook

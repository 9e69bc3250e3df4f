// Package rules compiles the CEL expressions of approval policies, reports their errors with positions, and evaluates them over a
// request within bounds of length and cost. It is pure and does not depend on tickets or people.
//
// The language is CEL as in the API server, without the macros that build lists, so that no value can be larger than the request.
// The cost of every evaluation is bounded.
package rules

// Package rules owns the expressions of approval policies: it compiles them, says what is wrong with them and where, and
// evaluates them over a request within bounds of length and cost. It is pure, and knows neither tickets nor people.
//
// The language is CEL as the API server has it, without the macros that build lists: what is left cannot make a value
// that is larger than the request, and every evaluation ends at a bound of its cost.
package rules

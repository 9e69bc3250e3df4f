// Command bench measures the policy core, and other policy engines with the same questions in the same run. It prints
// lines "bench NAME VALUE UNIT" to standard output, and the parameters of the measurement to standard error.
//
// It is a module of its own, so that the product does not depend on the other engines.
package main

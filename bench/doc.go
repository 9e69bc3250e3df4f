// Command bench measures the policy core, and other policy engines on the same questions in the same run. It prints
// lines "bench NAME VALUE UNIT", and what it asked on standard error.
//
// It is a module of its own, so that the weight of the other engines stays out of the product.
package main

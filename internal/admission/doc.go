// Package admission contains the rules about an object that depend on other objects: names without a class, classes
// that overlap or are in use, resources that would be deleted while they are closed. It also reports what is valid but
// questionable.
//
// The package is pure; the package webhook below it serves the rules. Security does not depend on it: compilation
// refuses what it misses, so the webhook fails open. For the same reason it never prevents the removal of something: an
// error that existed before the change, in a part that the change leaves alone, is only a warning.
package admission

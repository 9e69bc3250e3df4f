// Package exporter reads the output of Hubble's exporter line by line, from a file that is rotated or from a stream. It does not
// parse the lines.
package exporter

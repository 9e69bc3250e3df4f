// Package exporter owns the way of lines from what Hubble's exporter writes, a file that is rotated or a stream, to whoever
// understands them. It knows files and lines, and nothing of what is in a line.
package exporter

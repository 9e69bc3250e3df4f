package main

import "encoding/binary"

// hello is what clickhouse-go asks a server first.
const hello = "SELECT displayName(), version(), revision(), timezone()"

// helloBlock answers it in the revision of the Native format that the driver offers, and says that the server's own is the
// first one, which is what the engine writes without a server around it: blocks without a header of their own.
func helloBlock(version string) []byte {
	b := []byte{1, 0, 2, 0xff, 0xff, 0xff, 0xff, 0} // block info: no overflow, no bucket
	text := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	column := func(name, kind string) {
		text(name)
		text(kind)
		b = append(b, 0) // no serialization of its own
	}
	b = append(b, 4, 1) // columns, rows
	column("displayName()", "String")
	text("acp-clickhouse")
	column("version()", "String")
	text(version)
	column("revision()", "UInt32")
	b = append(b, 0, 0, 0, 0)
	column("timezone()", "String")
	text("UTC")
	return b
}

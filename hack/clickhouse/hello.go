package main

import "encoding/binary"

// hello is the first query that clickhouse-go sends to a server.
const hello = "SELECT displayName(), version(), revision(), timezone()"

// helloBlock returns the response in the revision of the Native format that the driver offers. It reports the first revision as the
// server's own, because the engine without a server writes blocks without a header.
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

import type { Connection } from "../api/types";

/** hash is FNV-1a. Two rows of one list will hardly share a hash, and if they do, one of them opens in place of the other. */
function hash(text: string): string {
  let value = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) value = Math.imul(value ^ byte, 0x01000193) >>> 0;
  return value.toString(36);
}

/** connectionKey returns a key of one row of the connections, short enough for a URL. */
export function connectionKey(c: Connection): string {
  const name = ({ name, title }: Connection["subject"]) => name || title;
  return hash([name(c.subject), name(c.resource), c.sourceCluster, c.cluster, c.action, c.port, c.protocol, c.decision, c.verdict, c.policy, c.sid].join("|"));
}

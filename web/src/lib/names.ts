/** Resource names: `trnv1:rsc:<org>:<service>:<type>:<id>`, where the id may itself hold colons. */

/**
 * shortName returns the short form of a resource name, `redis / bobs-cluster`. For an application it is the id alone, because the service adds no
 * information.
 */
export function shortName(name: string): string {
  const parts = name.split(":");
  if (parts.length < 6 || parts[0] !== "trnv1" || parts[1] !== "rsc") return name;
  const service = parts[3] ?? "";
  const id = parts.slice(5).join(":");
  if (service === "iam") return id.replace("/", " / ");
  return `${service} / ${id}`;
}

/** initials returns the first letters of a person's first and last name. */
export function initials(displayName: string): string {
  const words = displayName.trim().split(/\s+/).filter(Boolean);
  const first = [...(words[0] ?? "?")][0] ?? "?";
  const last = words.length > 1 ? ([...(words[words.length - 1] ?? "")][0] ?? "") : "";
  return (first + last).toUpperCase();
}

/** localPath returns the path if it is one of this site, otherwise the path of the first page. Only such a path may be opened after login. */
export function localPath(value: string | null): string {
  if (value === null || !value.startsWith("/") || value.startsWith("//") || value.includes("\\")) return "/";
  return value;
}

/** randomKey returns a random idempotency key. */
export function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Resource names: `trnv1:rsc:<org>:<service>:<type>:<id>`, where the id may itself hold colons. */

/** `redis / bobs-cluster`; for an application its id alone, because the service says nothing there. */
export function shortName(name: string): string {
  const parts = name.split(":");
  if (parts.length < 6 || parts[0] !== "trnv1" || parts[1] !== "rsc") return name;
  const service = parts[3] ?? "";
  const id = parts.slice(5).join(":");
  if (service === "iam") return id.replace("/", " / ");
  return `${service} / ${id}`;
}

export function initials(displayName: string): string {
  const words = displayName.trim().split(/\s+/).filter(Boolean);
  const first = [...(words[0] ?? "?")][0] ?? "?";
  const last = words.length > 1 ? ([...(words[words.length - 1] ?? "")][0] ?? "") : "";
  return (first + last).toUpperCase();
}

/** Only a path of this site may be returned to after login. */
export function localPath(value: string | null): string {
  if (value === null || !value.startsWith("/") || value.startsWith("//") || value.includes("\\")) return "/";
  return value;
}

/** A key that makes a retried submission the same submission. */
export function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

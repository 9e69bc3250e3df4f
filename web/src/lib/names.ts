import type { CatalogRef } from "../api/types";

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

/** displayName returns the title that the catalog has for a resource name, or the short form of the name if it has none. */
export function displayName(name: string, refs: readonly CatalogRef[] = []): string {
  const title = refs.find((each) => each.name === name)?.title;
  return title !== undefined && title !== name ? title : shortName(name);
}

/** TextPart is a part of a text. `name` is the resource name if the part is one. */
export interface TextPart {
  text: string;
  name?: string;
}

/** A resource name in a text: printable ASCII characters except the comma, which separates names in lists. No space separates a name from Chinese text. */
const nameInText = /trnv1:rsc:[!-+\--~]+/g;
/** Punctuation of the text behind a name. */
const punctuation = /[.:;)"']+$/;

/** textParts splits a text into its resource names, in their display form, and what is between them. */
export function textParts(text: string, refs: readonly CatalogRef[] = []): TextPart[] {
  const out: TextPart[] = [];
  let end = 0;
  for (const match of text.matchAll(nameInText)) {
    const name = match[0].replace(punctuation, "");
    const shown = displayName(name, refs);
    if (shown === name) continue;
    if (match.index > end) out.push({ text: text.slice(end, match.index) });
    out.push({ text: shown, name });
    end = match.index + name.length;
  }
  if (end < text.length) out.push({ text: text.slice(end) });
  return out;
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

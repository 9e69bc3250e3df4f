/**
 * Sentences that the server wrote, in the person's language. They come in English with names in them, so they
 * are recognised by their form; one that is not known is shown as it came, which is better than nothing. Pure.
 */
import { saidInChinese } from "../i18n/said.zh";

interface Form {
  pattern: RegExp;
  translation: string;
}

const escape = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** The more that is fixed in a form, the earlier it is tried: `waiting for the adapter` before `waiting for %s`. */
const forms: Form[] = Object.entries(saidInChinese)
  .sort(([a], [b]) => b.replaceAll("%s", "").length - a.replaceAll("%s", "").length)
  // The server begins a sentence with a capital, whatever the part was.
  .map(([form, translation]) => ({ pattern: new RegExp(`^${form.split("%s").map(escape).join("(.*?)")}$`, "is"), translation }));

const unquoted = (value: string) => value.replace(/^"(.*)"$/s, "$1");

function translate(text: string): string | undefined {
  for (const { pattern, translation } of forms) {
    const found = pattern.exec(text);
    // What was put in may be such a sentence itself.
    if (found) return translation.replace(/\{\{(\d)\}\}/g, (_, group: string) => translate(found[Number(group)] ?? "") ?? unquoted(found[Number(group)] ?? ""));
  }
  return undefined;
}

/** The server joins parts to one sentence: `A; b.` A form of its own may hold a semicolon too, so it is the second guess. */
function translateParts(text: string): string | undefined {
  const sentence = text.endsWith(".");
  const parts = (sentence ? text.slice(0, -1) : text).split("; ").map(translate);
  return parts.every((part) => part !== undefined) ? `${parts.join("；")}${sentence ? "。" : ""}` : undefined;
}

export function said(text: string, language: string): string {
  if (!language.startsWith("zh")) return text;
  return translateParts(text) ?? translate(text) ?? text;
}

/** Lists of names as text in the language of the page. Pure. */

/** ListStyle selects the conjunction of a list and its length. */
export type ListStyle = Pick<Intl.ListFormatOptions, "type" | "style">;

/** ListPart is an element of a list, by its position, or the text between two elements. */
export type ListPart = { index: number; text: string } | { index: undefined; text: string };

const cjk = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]$/u;
/** Half-width brackets end and begin names, too: `Billing (777)`. */
const latin = /^[\p{Script=Latin}\p{Nd}()[\]]$/u;

/** needsSpace reports whether a Chinese, Japanese or Korean character is next to a Latin letter, a digit or a half-width bracket, which are separated by a space. */
function needsSpace(before: string, after: string): boolean {
  const [left, right] = [[...before].at(-1) ?? "", [...after][0] ?? ""];
  return (cjk.test(left) && latin.test(right)) || (latin.test(left) && cjk.test(right));
}

/**
 * listParts returns the elements of a list and what is between them. `Intl.ListFormat` joins `m1和m2`; here it is `m1 和 m2`. The elements are names, so nothing
 * is inserted within them.
 */
export function listParts(texts: readonly string[], language: string, options: ListStyle = {}): ListPart[] {
  // The list is formatted with the positions of its elements, by which each of them is found again.
  const parts = new Intl.ListFormat(language, { type: "conjunction", ...options }).formatToParts(texts.map((_text, index) => String(index)));
  const all = parts.map(({ type, value }): ListPart => (type === "literal" ? { index: undefined, text: value } : { index: Number(value), text: texts[Number(value)] ?? "" }));
  return all.map((part, at) => {
    if (part.index !== undefined) return part;
    const [before, after] = [all[at - 1]?.text ?? "", all[at + 1]?.text ?? ""];
    return { index: undefined, text: `${needsSpace(before, part.text) ? " " : ""}${part.text}${needsSpace(part.text, after) ? " " : ""}` };
  });
}

/** enumeration returns a list without a conjunction: `m1, m2`, or `m1、m2`. With a limit, it has the first elements and the number of the others: `m1, m2 +3`. */
export function enumeration(texts: readonly string[], language: string, limit = texts.length): string {
  const others = texts.length - limit;
  return `${listText(texts.slice(0, limit), language, { style: "narrow" })}${others > 0 ? ` +${others}` : ""}`;
}

/** listText returns a list as text: `m1, m2 and m3`, or `m1、m2 和 m3`. */
export function listText(texts: readonly string[], language: string, options?: ListStyle): string {
  return listParts(texts, language, options).map(({ text }) => text).join("");
}

/** The names beside the nodes of a map: shortened to their space, and never one over the other. Pure, except for the context that measures texts. */

/**
 * cutMiddle shortens a text to a width: its beginning and its end stay, because names often differ only at the end. `widthOf` measures a text in the unit of
 * the width.
 */
export function cutMiddle(text: string, width: number, widthOf: (text: string) => number): string {
  if (widthOf(text) <= width) return text;
  const characters = [...text];
  const keeping = (count: number) => {
    const head = characters.slice(0, Math.ceil(count / 2)).join("").trimEnd();
    const tail = characters.slice(characters.length - Math.floor(count / 2)).join("").trimStart();
    return `${head}…${tail}`;
  };
  let [low, high] = [0, characters.length - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (widthOf(keeping(middle)) <= width) low = middle;
    else high = middle - 1;
  }
  return keeping(low);
}

/** mostKept is the number of shortened texts that are cached. */
const mostKept = 5_000;

/** nameFitter returns a function that shortens texts to a width in pixels, in the font of the context. It caches the results. */
export function nameFitter() {
  const kept = new Map<string, string>();
  return (context: CanvasRenderingContext2D, text: string, width: number): string => {
    const key = `${context.font} ${Math.round(width)} ${text}`;
    const found = kept.get(key);
    if (found !== undefined) return found;
    const out = cutMiddle(text, width, (each) => context.measureText(each).width);
    if (kept.size > mostKept) kept.clear();
    kept.set(key, out);
    return out;
  };
}

/** NameFitter shortens a text to a width in pixels. */
export type NameFitter = ReturnType<typeof nameFitter>;

/** hoverText returns the text that the pointer shows on a name: the title in full, and the exact name if it is another one. */
export const hoverText = (title: string, name: string): string => (name === "" || name === "*" || name === title ? title : `${title}\n${name}`);

/** reserve takes a height for a name, and reports whether no other name is closer than the spacing. `taken` is sorted. */
export function reserve(taken: number[], y: number, spacing: number): boolean {
  let [low, high] = [0, taken.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((taken[middle] ?? 0) < y) low = middle + 1;
    else high = middle;
  }
  if ((taken[low] ?? Infinity) - y < spacing || y - (taken[low - 1] ?? -Infinity) < spacing) return false;
  taken.splice(low, 0, y);
  return true;
}

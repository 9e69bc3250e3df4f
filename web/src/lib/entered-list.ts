/** Rules for lists of words that people type or paste. Pure. */

/** separators separate the words of a list. Names, ids and addresses contain none of them. */
export const separators = [",", ";", " ", "\t", "\n"];

/** Entered is a list that a person entered. */
export interface Entered {
  values: string[];
  /** The words that were entered more than once, as often as they were repeated. `values` contains each of them once. */
  duplicates: string[];
  /** The words beyond the maximum number of values. `values` does not contain them. */
  surplus: string[];
}

/** enteredList returns the entered words without surrounding spaces. Words with the same key are duplicates, and `most` is the maximum number of values. */
export function enteredList(words: string[], keyOf: (word: string) => string = (word) => word, most = Number.POSITIVE_INFINITY): Entered {
  const entered: Entered = { values: [], duplicates: [], surplus: [] };
  const keys = new Set<string>();
  for (const word of words.map((each) => each.trim())) {
    if (word === "") continue;
    const key = keyOf(word);
    if (keys.has(key)) entered.duplicates.push(word);
    else if (entered.values.length >= most) entered.surplus.push(word);
    else {
      keys.add(key);
      entered.values.push(word);
    }
  }
  return entered;
}

/** addressKey is equal for the spellings of an address that differ in case, or in the length of a prefix that contains only one address. */
export const addressKey = (address: string): string => {
  const text = address.toLowerCase();
  return text.replace(text.includes(":") ? /\/128$/ : /\/32$/, "");
};

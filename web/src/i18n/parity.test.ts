import { describe, expect, it } from "vitest";
import { en } from "./en";
import { zh } from "./zh";

type Tree = { [key: string]: string | Tree };

function flatten(tree: Tree, path = ""): Map<string, string> {
  const out = new Map<string, string>();
  for (const [key, value] of Object.entries(tree)) {
    const here = path === "" ? key : `${path}.${key}`;
    if (typeof value === "string") out.set(here, value);
    else flatten(value, here).forEach((text, inner) => out.set(inner, text));
  }
  return out;
}

/** Chinese has one plural form, English two: `_one` exists only beside `_other`. */
const withoutOne = (keys: Iterable<string>) => [...keys].filter((key) => !key.endsWith("_one")).sort();

const placeholders = (text: string) => [...text.matchAll(/\{\{[\w, ]+\}\}|<\/?\w+\/?>/g)].map((m) => m[0]).sort();

describe("the catalogues", () => {
  const english = flatten(en);
  const chinese = flatten(zh);

  it("have the same keys", () => {
    expect(withoutOne(chinese.keys())).toEqual(withoutOne(english.keys()));
  });

  it("use the same placeholders in each text", () => {
    for (const [key, text] of english) {
      if (key.endsWith("_one")) continue;
      expect({ key, marks: placeholders(chinese.get(key) ?? "") }).toEqual({ key, marks: placeholders(text) });
    }
  });

  it("leave no text empty or untranslated", () => {
    for (const [key, text] of english) {
      if (key.endsWith("_one")) continue;
      const translated = chinese.get(key);
      expect({ key, empty: !translated?.trim() || !text.trim() }).toEqual({ key, empty: false });
      // One word may be the same in both, and a sign between values; a sentence may not.
      const hasWords = /\p{L}/u.test(text.replace(/\{\{[^}]*\}\}/g, ""));
      if (text.includes(" ") && hasWords && !text.includes("<k>")) expect({ key, same: translated === text }).toEqual({ key, same: false });
    }
  });

  it("have an English plural for every singular", () => {
    for (const key of english.keys()) {
      if (key.endsWith("_one")) expect(english.has(key.replace(/_one$/, "_other"))).toBe(true);
    }
  });
});

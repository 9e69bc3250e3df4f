import { createContext } from "react";

/** SectionEntry is one section in the index of its page. */
export interface SectionEntry {
  anchor: string;
  title: string;
}

/** SectionIndexContext contains the function that adds a section to the index of the page, and returns the function that removes it again. A page without an index ignores it. */
export const SectionIndexContext = createContext<(entry: SectionEntry) => () => void>(() => () => undefined);

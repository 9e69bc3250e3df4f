import { useCallback, useEffect, useRef, useState, useSyncExternalStore } from "react";
import type { MouseEvent, ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Link, useLocation } from "react-router";
import { useEmbedded } from "../lib/embed";
import { SectionIndexContext } from "../lib/section-index";
import type { SectionEntry } from "../lib/section-index";
import classes from "./SectionIndex.module.css";

/** fewest is the number of sections from which a page has an index. */
const fewest = 4;
/** readingLine is the distance in pixels from the top of the window at which a section counts as the one that is read. It is below the sticky bars. */
const readingLine = 140;

function subscribe(onChange: () => void) {
  window.addEventListener("scroll", onChange, { passive: true });
  window.addEventListener("resize", onChange);
  return () => {
    window.removeEventListener("scroll", onChange);
    window.removeEventListener("resize", onChange);
  };
}

/** readSection returns the last section that begins above the reading line. At the end of the page it is the last section, whose heading may never get there. */
function readSection(entries: SectionEntry[]): string | undefined {
  const { scrollHeight, clientHeight } = document.documentElement;
  if (window.scrollY > 0 && window.scrollY + clientHeight >= scrollHeight - 2) return entries.at(-1)?.anchor;
  const above = entries.findLast(({ anchor }) => (document.getElementById(anchor)?.getBoundingClientRect().top ?? Infinity) <= readingLine);
  return (above ?? entries[0])?.anchor;
}

/**
 * useCurrentSection returns the section that is read, and a function to call when the reader follows the link of a section. That section is the current one until
 * the reader scrolls on: near the end of the page its heading may stay below the reading line.
 */
function useCurrentSection(entries: SectionEntry[]) {
  const read = useSyncExternalStore(subscribe, () => readSection(entries));
  const [followed, setFollowed] = useState<{ anchor: string }>();
  useEffect(() => {
    if (!followed) return undefined;
    // The first event is that of the jump to the section.
    let jumped = false;
    const release = () => {
      if (jumped) setFollowed(undefined);
      jumped = true;
    };
    window.addEventListener("scroll", release, { passive: true });
    return () => window.removeEventListener("scroll", release);
  }, [followed]);
  return { current: followed?.anchor ?? read, follow: (anchor: string) => setFollowed({ anchor }) };
}

function Index({ entries }: { entries: SectionEntry[] }) {
  const { t } = useTranslation();
  const { search } = useLocation();
  const { current, follow } = useCurrentSection(entries);
  const nav = useRef<HTMLElement>(null);
  useEffect(() => {
    // In a window of medium width, the index is one line that scrolls sideways.
    const link = nav.current?.querySelector<HTMLElement>("[aria-current]");
    if (nav.current && link) nav.current.scrollLeft = link.offsetLeft - (nav.current.clientWidth - link.offsetWidth) / 2;
  }, [current]);
  const onFollow = (event: MouseEvent, anchor: string) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    follow(anchor);
    // The router scrolls to the section, and the keyboard goes on there.
    document.getElementById(anchor)?.querySelector("h2")?.focus({ preventScroll: true });
  };
  return (
    <nav ref={nav} className={classes.index} aria-label={t("nav.onThisPage")} data-testid="section-index">
      <ul>
        {entries.map(({ anchor, title }) => (
          <li key={anchor}>
            <Link to={{ search, hash: anchor }} aria-current={anchor === current ? "location" : undefined} onClick={(event) => onFollow(event, anchor)}>
              {title}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}

/** inOrder returns the sections in the order of the page. Sections that wait for data are added after those that follow them. */
function inOrder(entries: SectionEntry[]): SectionEntry[] {
  const places = [...document.querySelectorAll("section[id]")].map(({ id }) => id);
  return entries.toSorted((a, b) => places.indexOf(a.anchor) - places.indexOf(b.anchor));
}

/**
 * SectionIndex shows a sticky index of the sections of a long page: those inside that have an anchor. It is beside them in a wide window, above them in a narrower
 * one, and hidden in a narrow one and in a frame of another site.
 */
export function SectionIndex({ children }: { children: ReactNode }) {
  const embedded = useEmbedded();
  const [entries, setEntries] = useState<SectionEntry[]>([]);
  const add = useCallback((entry: SectionEntry) => {
    setEntries((before) => inOrder([...before, entry]));
    return () => setEntries((before) => before.filter((each) => each !== entry));
  }, []);
  const shown = !embedded && entries.length >= fewest;
  return (
    <SectionIndexContext value={add}>
      <div className={shown ? classes.indexed : undefined}>
        {shown && <Index entries={entries} />}
        <div className={classes.sections}>{children}</div>
      </div>
    </SectionIndexContext>
  );
}

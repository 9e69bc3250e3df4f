/** The difference of two texts line by line. Pure; loaded lazily with DiffView. */
import { diffArrays } from "diff";

/** DiffLine is one line of a text with its number, which begins at 1. */
export interface DiffLine {
  number: number;
  text: string;
}

/** Pair is one row of the split view; one side is absent where a line was added or removed. */
export interface Pair {
  left?: DiffLine;
  right?: DiffLine;
  same: boolean;
}

/** Run is a sequence of pairs. Unchanged runs far from a change can be folded. */
export interface Run {
  kind: "changed" | "context" | "folded";
  pairs: Pair[];
}

const toLines = (text: string): string[] => (text === "" ? [] : text.replace(/\n$/, "").split("\n"));

/** pairsOf returns the lines of two texts side by side. Removed lines are paired with the added lines that follow them. */
export function pairsOf(before: string, after: string): Pair[] {
  const pairs: Pair[] = [];
  let left = 0;
  let right = 0;
  // Removed lines are kept to be paired with the added lines that follow.
  let removed: DiffLine[] = [];
  const flush = () => {
    for (const line of removed) pairs.push({ left: line, same: false });
    removed = [];
  };
  for (const change of diffArrays(toLines(before), toLines(after))) {
    for (const text of change.value) {
      if (change.removed) removed.push({ number: ++left, text });
      else if (change.added) {
        const beside = removed.shift();
        pairs.push({ ...(beside ? { left: beside } : {}), right: { number: ++right, text }, same: false });
      } else {
        flush();
        pairs.push({ left: { number: ++left, text }, right: { number: ++right, text }, same: true });
      }
    }
  }
  flush();
  return pairs;
}

/**
 * runsOf groups the pairs into runs, and folds unchanged pairs that are more than `context` lines away from a change. Fewer than `worth` lines are not
 * folded.
 */
export function runsOf(pairs: Pair[], context = 3, worth = 4): Run[] {
  const near = new Set<number>();
  pairs.forEach((pair, index) => {
    if (!pair.same) for (let i = index - context; i <= index + context; i++) near.add(i);
  });
  const runs: Run[] = [];
  pairs.forEach((pair, index) => {
    const kind = !pair.same ? "changed" : near.has(index) ? "context" : "folded";
    const last = runs.at(-1);
    if (last?.kind === kind) last.pairs.push(pair);
    else runs.push({ kind, pairs: [pair] });
  });
  return runs.map((run) => (run.kind === "folded" && run.pairs.length < worth ? { ...run, kind: "context" } : run));
}

/** Count is the number of added and removed lines. */
export interface Count {
  added: number;
  removed: number;
}

/** countOf returns the number of added and removed lines. */
export function countOf(pairs: Pair[]): Count {
  const changed = pairs.filter((pair) => !pair.same);
  return { added: changed.filter((pair) => pair.right).length, removed: changed.filter((pair) => pair.left).length };
}

/** unified returns the lines of a run one below the other: the removed ones first, then the added ones. */
export function unified(run: Run): { sign: "-" | "+" | " "; line: DiffLine; left?: number; right?: number }[] {
  if (run.kind !== "changed") {
    return run.pairs.flatMap(({ left, right }) => (left && right ? [{ sign: " " as const, line: right, left: left.number, right: right.number }] : []));
  }
  return [
    ...run.pairs.flatMap(({ left }) => (left ? [{ sign: "-" as const, line: left, left: left.number }] : [])),
    ...run.pairs.flatMap(({ right }) => (right ? [{ sign: "+" as const, line: right, right: right.number }] : [])),
  ];
}

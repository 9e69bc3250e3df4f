/** The difference of two texts line by line. Pure; loaded lazily with DiffView. */
import { diffArrays } from "diff";

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

/** Folds what is unchanged and further than so many lines from a change; a fold of few lines is not worth it. */
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

export interface Count {
  added: number;
  removed: number;
}

export function countOf(pairs: Pair[]): Count {
  const changed = pairs.filter((pair) => !pair.same);
  return { added: changed.filter((pair) => pair.right).length, removed: changed.filter((pair) => pair.left).length };
}

/** The same, one below the other: what was removed first, then what was added. */
export function unified(run: Run): { sign: "-" | "+" | " "; line: DiffLine; left?: number; right?: number }[] {
  if (run.kind !== "changed") {
    return run.pairs.flatMap(({ left, right }) => (left && right ? [{ sign: " " as const, line: right, left: left.number, right: right.number }] : []));
  }
  return [
    ...run.pairs.flatMap(({ left }) => (left ? [{ sign: "-" as const, line: left, left: left.number }] : [])),
    ...run.pairs.flatMap(({ right }) => (right ? [{ sign: "+" as const, line: right, right: right.number }] : [])),
  ];
}

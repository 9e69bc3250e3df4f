import { describe, expect, it } from "vitest";
import { countOf, pairsOf, runsOf, unified } from "./diff";

const outline = (before: string, after: string) => pairsOf(before, after).map(({ left, right, same }) => `${left ? `${left.number}:${left.text}` : "·"} ${same ? "=" : "|"} ${right ? `${right.number}:${right.text}` : "·"}`);

describe("a diff", () => {
  const cases: { reason: string; before: string; after: string; want: string[] }[] = [
    { reason: "the same text has no change", before: "a\nb\n", after: "a\nb", want: ["1:a = 1:a", "2:b = 2:b"] },
    { reason: "a changed line stands beside its old self", before: "a\nb\nc", after: "a\nB\nc", want: ["1:a = 1:a", "2:b | 2:B", "3:c = 3:c"] },
    { reason: "what is only removed has nothing beside it", before: "a\nb\nc", after: "a\nc", want: ["1:a = 1:a", "2:b | ·", "3:c = 2:c"] },
    { reason: "a new object is all added", before: "", after: "a\nb\n", want: ["· | 1:a", "· | 2:b"] },
    { reason: "a removed one all removed", before: "a\n", after: "", want: ["1:a | ·"] },
  ];
  for (const { reason, before, after, want } of cases) it(reason, () => expect(outline(before, after)).toEqual(want));

  const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => `l${from + i}`).join("\n");

  it("folds what is far from any change, and only if that hides enough", () => {
    const runs = runsOf(pairsOf(numbers(1, 30), numbers(1, 30).replace("l15", "x")));
    expect(runs.map((run) => [run.kind, run.pairs.length])).toEqual([["folded", 11], ["context", 3], ["changed", 1], ["context", 3], ["folded", 12]]);
    expect(runsOf(pairsOf(numbers(1, 6), numbers(1, 6).replace("l6", "x"))).map((run) => run.kind)).toEqual(["context", "context", "changed"]);
  });

  it("puts what was removed before what was added, one below the other", () => {
    const [run] = runsOf(pairsOf("a\nb", "A\nB\nC"));
    expect(run && unified(run).map(({ sign, line }) => sign + line.text)).toEqual(["-a", "-b", "+A", "+B", "+C"]);
    expect(countOf(pairsOf("a\nb", "A\nB\nC"))).toEqual({ added: 3, removed: 2 });
  });
});

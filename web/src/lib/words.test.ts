import { describe, expect, it } from "vitest";
import { displayName, initials, localPath, shortName, textParts } from "./names";
import { elapsed, preciseTime, relativeTime, wholeUnits } from "./time";

describe("shortName", () => {
  const cases = [
    { reason: "service and id", name: "trnv1:rsc:trip-com:redis:clusters:bobs-cluster", want: "redis / bobs-cluster" },
    { reason: "an application is its id", name: "trnv1:rsc:trip-com:iam:sa:app/888", want: "app / 888" },
    { reason: "colons belong to the id", name: "trnv1:rsc:trip-com:net:cidr:fd00::/8", want: "net / fd00::/8" },
    { reason: "what is not a name stays", name: "10.5.0.9", want: "10.5.0.9" },
  ];
  for (const { reason, name, want } of cases) it(reason, () => expect(shortName(name)).toBe(want));
});

describe("displayName", () => {
  const name = "trnv1:rsc:trip-com:redis:clusters:bobs-cluster";
  const cases = [
    { reason: "the title in the catalog", refs: [{ name, title: "Bob’s cluster" }], want: "Bob’s cluster" },
    { reason: "the short form if the catalog has none", refs: [{ name, title: name }], want: "redis / bobs-cluster" },
    { reason: "the short form without references", refs: [], want: "redis / bobs-cluster" },
  ];
  for (const { reason, refs, want } of cases) it(reason, () => expect(displayName(name, refs)).toBe(want));
});

describe("textParts", () => {
  const app = "trnv1:rsc:trip-com:iam:sa:app/888", cluster = "trnv1:rsc:trip-com:redis:clusters:bobs-cluster";
  const refs = [{ name: cluster, title: "Bob’s cluster" }];
  const cases = [
    { reason: "names, and the punctuation behind them", text: `allow ${app}: redis:connect on ${cluster}.`, want: [{ text: "allow " }, { text: "app / 888", name: app }, { text: ": redis:connect on " }, { text: "Bob’s cluster", name: cluster }, { text: "." }] },
    { reason: "names between Chinese characters", text: `允许${app}、${cluster}`, want: [{ text: "允许" }, { text: "app / 888", name: app }, { text: "、" }, { text: "Bob’s cluster", name: cluster }] },
    { reason: "a pattern", text: "trnv1:rsc:trip-com:redis:clusters:*", want: [{ text: "redis / *", name: "trnv1:rsc:trip-com:redis:clusters:*" }] },
    { reason: "a name that has no short form stays", text: "trnv1:rsc:*:redis:*", want: [{ text: "trnv1:rsc:*:redis:*" }] },
    { reason: "no name", text: "nothing", want: [{ text: "nothing" }] },
  ];
  for (const { reason, text, want } of cases) it(reason, () => expect(textParts(text, refs)).toEqual(want));
});

describe("localPath", () => {
  const cases = [
    { reason: "a page of ours", value: "/tickets/T-1?x=1", want: "/tickets/T-1?x=1" },
    { reason: "nothing", value: null, want: "/" },
    { reason: "another site", value: "https://evil.example/", want: "/" },
    { reason: "another site without a scheme", value: "//evil.example/", want: "/" },
    { reason: "a backslash that browsers read as a slash", value: "/\\evil.example/", want: "/" },
  ];
  for (const { reason, value, want } of cases) it(reason, () => expect(localPath(value)).toBe(want));
});

describe("initials", () => {
  const cases = [
    { name: "Alice Zhang", want: "AZ" },
    { name: "bob", want: "B" },
    { name: "王小明", want: "王" },
    { name: " ", want: "?" },
  ];
  for (const { name, want } of cases) it(`of “${name}”`, () => expect(initials(name)).toBe(want));
});

describe("times", () => {
  const now = new Date("2026-11-20T10:00:00.000Z");
  const before = (ms: number) => relativeTime(new Date(now.getTime() - ms), now, "en");
  it("are shown in the largest unit that fits, rounded down", () => {
    expect([before(0), before(59_999), before(119_000), before(3_600_000), before(86_400_000), before(-29.5 * 86_400_000)]).toEqual([
      "now", "59 seconds ago", "1 minute ago", "1 hour ago", "yesterday", "in 29 days",
    ]);
  });
  it("to the millisecond keep their zeros", () => {
    expect(preciseTime(new Date(2026, 10, 20, 9, 5, 7, 42), "en")).toBe("09:05:07.042");
  });
  it("that something took have a fitting unit", () => {
    expect([87, 1_240, 185_000].map((ms) => elapsed(ms, "en"))).toEqual(["87 ms", "1.24 sec", "3 min"]);
  });
  it("that something lasts have no fraction", () => {
    expect([604_800, 43_200, 300].map(wholeUnits)).toEqual([
      { unit: "days", count: 7 },
      { unit: "hours", count: 12 },
      { unit: "minutes", count: 5 },
    ]);
  });
});

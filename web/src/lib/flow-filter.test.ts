import { describe, expect, it } from "vitest";
import { flowFilterOf, flowQuery, held, isLong, longWindowNames, shortened, windowNames, windowOf, without } from "./flow-filter";

const of = (text: string) => flowFilterOf(new URLSearchParams(text));
const asked = (text: string) => Object.fromEntries(Object.entries(flowQuery(of(text))).filter(([, value]) => value !== undefined));

describe("the filter in the address", () => {
  it.each([
    ["the plain address asks for everything", "", {}],
    ["several values are alternatives", "decision=denied&decision=allowed&cluster=m1&cluster=m2", { decision: ["allowed", "denied"], cluster: ["m1", "m2"] }],
    ["what is said twice counts once", "subject=app-888&subject=app-888", { subject: ["app-888"] }],
    ["what an address cannot mean is left out", "decision=perhaps&verdict=yes&port=none&port=70000&port=6379", { port: [6379] }],
    ["only true is true", "unattributed=1&disagree=true", { disagree: true }],
    ["a statement", "policy=p&sid=t-1-1&q=%20redis%20", { policy: "p", sid: "t-1-1", q: "redis" }],
  ])("%s", (_, text, want) => {
    expect(asked(text)).toEqual(want);
  });
});

describe("the window", () => {
  const now = Date.parse("2026-11-21T10:00:00Z");
  it.each([
    ["counts back from now", "window=1h", { since: "2026-11-21T09:00:00.000Z" }],
    ["is a day without a word", "window=a-year", { since: "2026-11-20T10:00:00.000Z" }],
    ["counts back from its end", "window=1h&until=2026-11-21T08:00:00Z", { since: "2026-11-21T07:00:00.000Z", until: "2026-11-21T08:00:00.000Z" }],
    ["is what was chosen", "since=2026-11-20T00:00:00Z&until=2026-11-20T01:00:00Z", { since: "2026-11-20T00:00:00.000Z", until: "2026-11-20T01:00:00.000Z" }],
    ["has no end before its beginning", "since=2026-11-20T02:00:00Z&until=2026-11-20T01:00:00Z", { since: "2026-11-20T02:00:00.000Z" }],
    ["ignores what is no time", "since=yesterday", { since: "2026-11-20T10:00:00.000Z" }],
  ])("%s", (_, text, want) => {
    expect(windowOf(of(text), now)).toEqual(want);
  });
});

describe("windows of more than 31 days", () => {
  const now = Date.parse("2026-11-21T10:00:00Z");
  const long = (text: string) => flowFilterOf(new URLSearchParams(text), longWindowNames);
  it("are only read where a page has them", () => {
    expect(windowNames).not.toContain("90d");
    expect(of("window=365d").window).toBe("24h");
    expect(long("window=365d").window).toBe("365d");
    expect(windowOf(long("window=365d"), now)).toEqual({ since: "2025-11-21T10:00:00.000Z" });
  });
  it.each([
    ["window=31d", false, { window: "31d" }],
    ["window=90d", true, { window: "31d", since: undefined }],
    ["since=2026-01-01T00:00:00Z", true, { window: "31d", since: undefined, until: undefined }],
    ["since=2026-01-01T00:00:00Z&until=2026-06-01T00:00:00Z", true, { since: "2026-05-01T00:00:00.000Z", until: "2026-06-01T00:00:00.000Z" }],
    ["since=2026-01-01T00:00:00Z&until=2026-01-02T00:00:00Z", false, { since: "2026-01-01T00:00:00.000Z", until: "2026-01-02T00:00:00.000Z" }],
  ])("of %s are shortened for the other pages", (text, isLonger, want) => {
    expect(isLong(long(text), now)).toBe(isLonger);
    expect(shortened(long(text), now)).toMatchObject(want);
  });
});

describe("what the filter holds", () => {
  it("can be taken away value by value", () => {
    const search = new URLSearchParams("subject=a&subject=b&port=0443&sid=s");
    const all = held(flowFilterOf(search));
    expect(all.map(({ key, value }) => `${key}=${value}`)).toEqual(["subject=a", "subject=b", "port=443", "sid=s"]);
    expect(all.map((each) => without(search, each))).toEqual([["b"], ["a"], [], []]);
  });
});

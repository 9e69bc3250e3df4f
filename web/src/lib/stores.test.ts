import { describe, expect, it, vi } from "vitest";
import { recentResources, rememberResources } from "./recent";
import { browserViews, canonical, forgetBrowserView, freeName, nameLimit } from "./saved-views";

const resource = (id: string) => ({ id, title: id, hint: id });

describe("what a browser remembers", () => {
  it("is the last few resources, each once, the newest first", () => {
    for (const id of ["a", "b", "c", "d", "e", "f", "g", "h", "i", "a"]) rememberResources("alice", [resource(id)]);
    expect(recentResources("alice").map(({ id }) => id)).toEqual(["a", "i", "h", "g", "f", "e", "d", "c"]);
  });

  it("belongs to one person", () => {
    rememberResources("alice", [resource("a")]);
    localStorage.setItem("acp-saved-requests:alice", '[{"name":"Mine","search":"?state=failed"}]');
    expect(recentResources("bob")).toEqual([]);
    expect(browserViews("requests", "bob")).toEqual([]);
    expect(browserViews("flows", "alice")).toEqual([]);
  });

  it("is a view of an earlier version until that is removed", () => {
    localStorage.setItem("acp-saved-requests:alice", '[{"name":"Mine","search":"?a=1"},{"name":"Other","search":"?b=1"}]');
    forgetBrowserView("requests", "alice", "Mine");
    expect(browserViews("requests", "alice").map(({ name }) => name)).toEqual(["Other"]);
    forgetBrowserView("requests", "alice", "Other");
    expect(localStorage.getItem("acp-saved-requests:alice")).toBeNull();
  });

  it.each(["not json", "null", '{"person":"alice","items":[null]}', '[{"name":1}]'])("is nothing when it cannot be read: %s", (text) => {
    localStorage.setItem("acp-recent-resources", text);
    localStorage.setItem("acp-saved-requests:alice", text);
    expect(recentResources("alice")).toEqual([]);
    expect(browserViews("requests", "alice")).toEqual([]);
  });

  it("is nothing when it may not be stored", () => {
    vi.spyOn(Storage.prototype, "setItem").mockImplementation(() => {
      throw new Error("blocked");
    });
    expect(() => rememberResources("alice", [resource("a")])).not.toThrow();
  });
});

describe("views", () => {
  it("have equal queries for equal filters", () => {
    expect(canonical("?q=a b&decision=denied&decision=audited")).toBe(canonical("decision=denied&decision=audited&q=a%20b"));
    expect(canonical("?decision=audited&decision=denied")).not.toBe(canonical("decision=denied&decision=audited"));
  });

  it("get a free name that is not too long", () => {
    const long = "长".repeat(nameLimit);
    expect(freeName("Mine", new Set())).toBe("Mine");
    expect(freeName(" Mine ", new Set(["Mine", "Mine (2)"]))).toBe("Mine (3)");
    expect(freeName(`${long}长`, new Set())).toBe(long);
    expect(freeName(long, new Set([long]))).toBe(`${"长".repeat(nameLimit - 4)} (2)`);
  });
});

import { describe, expect, it, vi } from "vitest";
import { recentResources, rememberResources } from "./recent";
import { forgetView, savedViews, saveView } from "./saved-views";

const resource = (id: string) => ({ id, title: id, hint: id });

describe("what a browser remembers", () => {
  it("is the last few resources, each once, the newest first", () => {
    for (const id of ["a", "b", "c", "d", "e", "f", "g", "h", "i", "a"]) rememberResources("alice", [resource(id)]);
    expect(recentResources("alice").map(({ id }) => id)).toEqual(["a", "i", "h", "g", "f", "e", "d", "c"]);
  });

  it("belongs to one person", () => {
    rememberResources("alice", [resource("a")]);
    saveView("requests", "alice", { name: "Mine", search: "?state=failed" });
    expect(recentResources("bob")).toEqual([]);
    expect(savedViews("requests", "bob")).toEqual([]);
  });

  it("has one view of a name, the later one", () => {
    saveView("requests", "alice", { name: "Mine", search: "?a" });
    saveView("requests", "alice", { name: "Other", search: "?b" });
    expect(saveView("requests", "alice", { name: "Mine", search: "?c" }).map(({ search }) => search)).toEqual(["?c", "?b"]);
    expect(forgetView("requests", "alice", "Mine").map(({ name }) => name)).toEqual(["Other"]);
  });

  it.each(["not json", "null", '{"person":"alice","items":[null]}', '[{"name":1}]'])("is nothing when it cannot be read: %s", (text) => {
    localStorage.setItem("acp-recent-resources", text);
    localStorage.setItem("acp-saved-requests:alice", text);
    expect(recentResources("alice")).toEqual([]);
    expect(savedViews("requests", "alice")).toEqual([]);
  });

  it("is nothing when it may not be stored", () => {
    vi.spyOn(Storage.prototype, "setItem").mockImplementation(() => {
      throw new Error("blocked");
    });
    expect(() => rememberResources("alice", [resource("a")])).not.toThrow();
    expect(saveView("requests", "alice", { name: "Mine", search: "?a" })).toHaveLength(1);
  });
});

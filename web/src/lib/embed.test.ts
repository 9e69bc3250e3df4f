import { afterEach, describe, expect, it } from "vitest";
import { isEmbedded, openLinksOutside, readOnly, withoutEmbed } from "./embed";

afterEach(() => {
  document.head.querySelector('meta[name="acp-embedded"]')?.remove();
  document.body.innerHTML = "";
});

describe("isEmbedded", () => {
  it.each([
    ["true", true],
    ["false", false],
    ["__EMBEDDED__", false],
    ["", false],
  ])("follows the server: %s", (content, want) => {
    document.head.insertAdjacentHTML("beforeend", `<meta name="acp-embedded" content="${content}">`);
    expect(isEmbedded()).toBe(want);
  });

  it("is false without the server's word, whatever the address", () => {
    history.replaceState(null, "", "/resources/bobs-cluster?embed=1");
    expect(isEmbedded()).toBe(false);
    history.replaceState(null, "", "/");
  });
});

describe("readOnly", () => {
  it("removes what the person may do, and nothing else", () => {
    const answer = {
      canary: true,
      mine: true,
      actions: ["redis:connect"],
      items: [{ canRevoke: true, ticket: "T-1", can: { approve: true, revoke: false } }, null, 3],
      protection: { canToggle: true, until: undefined },
      waves: { wave: 2, actions: ["pause"] },
    };
    expect(readOnly(answer)).toEqual({
      canary: true,
      mine: true,
      actions: ["redis:connect"],
      items: [{ canRevoke: false, ticket: "T-1", can: { approve: false, revoke: false } }, null, 3],
      protection: { canToggle: false, until: undefined },
      waves: { wave: 2, actions: [] },
    });
    expect(answer.items[0]).toHaveProperty("canRevoke", true);
    expect(readOnly("a text")).toBe("a text");
  });
});

describe("withoutEmbed", () => {
  it("keeps everything but the parameter", () => {
    expect(withoutEmbed("/resources/a?embed=1&past=x#evidence")).toBe("/resources/a?past=x#evidence");
    expect(withoutEmbed("/resources/a?embed=1")).toBe("/resources/a");
  });
});

describe("openLinksOutside", () => {
  it("makes every link open in a new tab, except for downloads and places of this page", async () => {
    document.body.innerHTML = '<a id="in" href="/tickets/T-1">a</a><a id="place" href="#evidence">b</a><a id="file" href="/x.csv" download>c</a><a id="out" href="https://jaeger.example.com" rel="noreferrer">d</a>';
    const end = openLinksOutside();
    document.body.insertAdjacentHTML("beforeend", '<p><a id="later" href="/resources/a?embed=1&past=x">e</a></p>');
    await Promise.resolve();
    const link = (id: string) => document.getElementById(id) as HTMLAnchorElement;
    expect(["in", "place", "file", "out", "later"].map((id) => [link(id).target, link(id).rel])).toEqual([["_blank", "noopener"], ["", ""], ["", ""], ["_blank", "noreferrer noopener"], ["_blank", "noopener"]]);
    expect(link("later").getAttribute("href")).toBe("/resources/a?past=x");
    link("in").href = "/tickets/T-2?embed=1";
    await Promise.resolve();
    expect(link("in").getAttribute("href")).toBe("/tickets/T-2");
    end();
  });
});

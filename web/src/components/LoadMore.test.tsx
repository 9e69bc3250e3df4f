import { useInfiniteQuery } from "@tanstack/react-query";
import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import { useFilters } from "../lib/use-filters";
import { renderPage } from "../testing/render";
import { LoadMore } from "./LoadMore";

/** A list of `last` pages; the page number `broken` cannot be read. */
function List({ last, broken }: { last: number; broken?: number }) {
  const [search, change] = useFilters();
  const q = search.get("q") ?? "";
  const query = useInfiniteQuery({
    // eslint-disable-next-line no-restricted-syntax -- not a list of the application
    queryKey: ["numbers", q],
    queryFn: ({ pageParam }) => (pageParam === broken ? Promise.reject(new Error("away")) : Promise.resolve(pageParam)),
    initialPageParam: 1,
    getNextPageParam: (page) => (page < last ? page + 1 : undefined),
  });
  return (
    <>
      <p data-testid="pages">{query.data?.pages.join(" ")}</p>
      <button type="button" onClick={() => change({ q: "other" })}>filter</button>
      <LoadMore query={query} />
    </>
  );
}

const show = (at: string, last: number, broken?: number) => renderPage(<List last={last} broken={broken} />, { path: "/", at }).router;
const pages = () => screen.getByTestId("pages").textContent;

describe("further pages", () => {
  it("are counted in the address", async () => {
    const user = userEvent.setup();
    const router = show("/?q=x", 3);
    await user.click(await screen.findByTestId("load-more"));
    await waitFor(() => expect(pages()).toBe("1 2"));
    expect(router.state.location.search).toBe("?q=x&pages=2");
    await user.click(screen.getByTestId("load-more"));
    await waitFor(() => expect(pages()).toBe("1 2 3"));
    expect(router.state.location.search).toBe("?q=x&pages=3");
    expect(screen.queryByTestId("load-more")).toBeNull();
  });

  it("are read again when the address is opened", async () => {
    const router = show("/?pages=3", 5);
    await waitFor(() => expect(pages()).toBe("1 2 3"));
    expect(router.state.location.search).toBe("?pages=3");
  });

  it("are read again for an address with several, such as that of a saved view", async () => {
    const router = show("/", 5);
    await waitFor(() => expect(pages()).toBe("1"));
    await router.navigate("/?pages=2");
    await waitFor(() => expect(pages()).toBe("1 2"));
    expect(router.state.location.search).toBe("?pages=2");
  });

  it.each([
    { at: "/?pages=9", reason: "fewer pages than the address says", want: "1 2", search: "?pages=2" },
    { at: "/?pages=x", reason: "no number", want: "1", search: "?pages=x" },
    { at: "/?pages=-2", reason: "no number of pages", want: "1", search: "?pages=-2" },
  ])("are as many as there are: $reason", async ({ at, want, search }) => {
    const router = show(at, 2);
    await waitFor(() => expect(pages()).toBe(want));
    await waitFor(() => expect(router.state.location.search).toBe(search));
  });

  it("are not tried for ever when one cannot be read", async () => {
    const router = show("/?pages=3", 5, 2);
    await waitFor(() => expect(router.state.location.search).toBe(""));
    expect(pages()).toBe("1");
    expect(screen.getByTestId("load-more")).toBeEnabled();
    expect(screen.getByTestId("error-state")).toHaveTextContent("The next page could not be loaded");
  });

  it("are not missing without a word when one cannot be read", async () => {
    show("/", 5, 2);
    expect(screen.queryByTestId("error-state")).toBeNull();
    await userEvent.setup().click(await screen.findByTestId("load-more"));
    expect(await screen.findByTestId("error-state")).toHaveTextContent("The next page could not be loaded");
    expect(screen.getByTestId("load-more")).toBeEnabled();
  });

  it("begin anew with other filters", async () => {
    const user = userEvent.setup();
    const router = show("/?pages=2", 3);
    await waitFor(() => expect(pages()).toBe("1 2"));
    await user.click(screen.getByRole("button", { name: "filter" }));
    await waitFor(() => expect(router.state.location.search).toBe("?q=other"));
    expect(pages()).toBe("1");
  });
});

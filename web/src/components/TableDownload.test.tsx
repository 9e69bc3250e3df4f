import { useInfiniteQuery } from "@tanstack/react-query";
import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useRef } from "react";
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { MockInstance } from "vitest";
import { ApiError } from "../api/client";
import * as csvModule from "../lib/csv";
import type { CsvTable } from "../lib/csv";
import { useFilters } from "../lib/use-filters";
import { renderPage } from "../testing/render";
import { mostRows, TableDownload } from "./TableDownload";

let saved: MockInstance<typeof csvModule.saveCSV>;
const csv: CsvTable<number> = { file: "numbers", columns: { number: (row) => row } };

interface ListProps {
  last: number;
  perPage?: number;
  /** The error with which a page is refused the first time. */
  refuse?: { page: number; error: Error };
}

/** List is a list of numbers of which the server returns a page at a time. */
function List({ last, perPage = 2, refuse }: ListProps) {
  const [search, change] = useFilters();
  const q = search.get("q") ?? "";
  const refused = useRef(false);
  const query = useInfiniteQuery({
    // eslint-disable-next-line no-restricted-syntax -- not a list of the application
    queryKey: ["numbers", q],
    queryFn: ({ pageParam }) => {
      if (refuse?.page === pageParam && !refused.current) {
        refused.current = true;
        return Promise.reject(refuse.error);
      }
      return Promise.resolve({ items: Array.from({ length: perPage }, (_, i) => (pageParam - 1) * perPage + i) });
    },
    initialPageParam: 1,
    getNextPageParam: (_page, pages) => (pages.length < last ? pages.length + 1 : undefined),
  });
  if (!query.data) return null;
  return (
    <>
      <button type="button" onClick={() => change({ q: "other" })}>filter</button>
      <TableDownload csv={csv} rows={query.data.pages.flatMap(({ items }) => items)} query={query} />
    </>
  );
}

const show = (props: ListProps) => renderPage(<List {...props} />, { path: "/", at: "/" });

describe("the download of a table", () => {
  beforeEach(() => {
    saved = vi.spyOn(csvModule, "saveCSV").mockReturnValue();
  });

  it("saves the rows at once if all were read", async () => {
    show({ last: 1 });
    await userEvent.click(await screen.findByTestId("csv"));
    expect(saved).toHaveBeenCalledExactlyOnceWith(csv, [0, 1]);
  });

  it("is not offered for a table without rows", () => {
    renderPage(<TableDownload csv={csv} rows={[]} />, { path: "/", at: "/" });
    expect(screen.queryByTestId("csv")).toBeNull();
  });

  it("first reads the rows that are still on the server", async () => {
    show({ last: 4 });
    await userEvent.click(await screen.findByTestId("csv"));
    expect(screen.getByTestId("csv-progress")).toBeInTheDocument();
    await waitFor(() => expect(saved).toHaveBeenCalledExactlyOnceWith(csv, [0, 1, 2, 3, 4, 5, 6, 7]));
    expect(await screen.findByTestId("csv")).toBeInTheDocument();
    expect(screen.queryByTestId("csv-cut")).toBeNull();
  });

  it("says when there are more rows than a file may have", async () => {
    show({ last: 5, perPage: mostRows / 2 + 1 });
    await userEvent.click(await screen.findByTestId("csv"));
    expect(await screen.findByTestId("csv-cut")).toHaveTextContent("10,000");
    expect(saved.mock.calls[0]?.[1]).toHaveLength(mostRows);
  });

  it("saves nothing when it is stopped", async () => {
    show({ last: 1_000 });
    await userEvent.click(await screen.findByTestId("csv"));
    await userEvent.click(screen.getByTestId("csv-stop"));
    expect(await screen.findByTestId("csv")).toBeInTheDocument();
    expect(saved).not.toHaveBeenCalled();
  });

  it("saves nothing when the filter changes, because the rows would be of two lists", async () => {
    show({ last: 1_000 });
    await userEvent.click(await screen.findByTestId("csv"));
    await userEvent.click(screen.getByText("filter"));
    expect(await screen.findByTestId("csv")).toBeInTheDocument();
    expect(saved).not.toHaveBeenCalled();
  });

  it("saves nothing when a page cannot be read, and tries again when asked", async () => {
    show({ last: 3, refuse: { page: 2, error: new ApiError("internal", 500, "broken") } });
    await userEvent.click(await screen.findByTestId("csv"));
    const retry = await screen.findByRole("button", { name: "Try again" });
    expect(saved).not.toHaveBeenCalled();
    await userEvent.click(retry);
    await waitFor(() => expect(saved).toHaveBeenCalledExactlyOnceWith(csv, [0, 1, 2, 3, 4, 5]));
  });

  it("waits when the server limits the rate", async () => {
    show({ last: 3, refuse: { page: 3, error: new ApiError("rate-limited", 429, "too many requests") } });
    await userEvent.click(await screen.findByTestId("csv"));
    await waitFor(() => expect(saved).toHaveBeenCalledExactlyOnceWith(csv, [0, 1, 2, 3, 4, 5]), { timeout: 5_000 });
  });
});

import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import { ApiError } from "../api/client";
import { renderPage, verbatim } from "../testing/render";
import { ErrorState, Loaded } from "./Feedback";

const refused = (status: number, code: string, detail?: string) =>
  new ApiError(code, status, code, { type: "about:blank", title: code, status, code, requestId: "req-1", message: verbatim(detail ?? "") });

const show = (error: ApiError) => renderPage(<ErrorState error={error} onRetry={() => undefined} />, { path: "/", at: "/" });

describe("an error", () => {
  it.each([
    { reason: "not theirs to request", error: refused(403, "forbidden", "Only an owner of app/888 can request its access: ask Alice Zhang."), want: "Only an owner of app/888 can request its access: ask Alice Zhang." },
    { reason: "not theirs to see", error: refused(403, "forbidden"), want: "Trying again does not help: ask one of them." },
    { reason: "not there", error: refused(404, "not-found"), want: "Check the address" },
    { reason: "wrong", error: refused(400, "invalid", "No such action."), want: "Correct it, then send it again." },
    { reason: "requested already", error: refused(409, "duplicate", "A ticket under way already requests this access."), want: "already requests this access" },
    { reason: "nobody could approve", error: refused(422, "no-approver", "Name an approver."), want: "Name an approver." },
  ])("that a retry cannot change says what to do instead: $reason", ({ error, want }) => {
    show(error);
    expect(screen.getByTestId("error-state")).toHaveTextContent(want);
    expect(screen.queryByRole("button", { name: "Try again" })).toBeNull();
    expect(screen.queryByText(/Id to report/)).toBeNull();
  });

  it.each([
    { reason: "the server's fault", error: refused(500, "internal") },
    { reason: "away for now", error: refused(503, "unavailable") },
    { reason: "too often", error: refused(429, "rate-limited") },
    { reason: "not the portal's answer", error: refused(400, "internal") },
    { reason: "changed meanwhile", error: refused(409, "stale") },
  ])("that may pass offers to try again, with the id to report: $reason", ({ error }) => {
    show(error);
    expect(screen.getByRole("button", { name: "Try again" })).toBeVisible();
    expect(screen.getByText("Id to report: req-1")).toBeVisible();
  });

  it("that a new login solves offers it, and returns to the page", () => {
    renderPage(<ErrorState error={refused(403, "login-too-old")} />, { path: "/tickets/:id", at: "/tickets/T-1?x=1" });
    expect(screen.getByTestId("error-state")).toHaveTextContent("needs a recent sign-in");
    expect(screen.getByRole("link", { name: "Sign in again" })).toHaveAttribute("href", "/auth/login?fresh=true&returnTo=%2Ftickets%2FT-1%3Fx%3D1");
    expect(screen.queryByRole("button", { name: "Try again" })).toBeNull();
  });

  it("without an answer offers to try again", () => {
    show(new ApiError("network", 0, "no answer"));
    expect(screen.getByRole("button", { name: "Try again" })).toBeVisible();
  });
});

describe("data that were read", () => {
  /** answers contains the answers in the order of the calls; the last one is repeated. */
  const show = (...answers: (string | ApiError)[]) => {
    let at = 0;
    function View({ retry }: { retry: number }) {
      // eslint-disable-next-line no-restricted-syntax -- not an object of the application
      const query = useQuery({ queryKey: ["word"], retry, retryDelay: 1, queryFn: () => { const answer = answers[Math.min(at++, answers.length - 1)]; return typeof answer === "string" ? Promise.resolve(answer) : Promise.reject(answer ?? new Error("no answer")); } });
      return <><button type="button" onClick={() => void query.refetch()}>read</button><Loaded query={query}>{(word) => <p data-testid="word">{word}</p>}</Loaded></>;
    }
    return (retry = 0) => renderPage(<View retry={retry} />, { path: "/", at: "/" });
  };

  it("stay while they cannot be read again, with a notice until they are", async () => {
    show("first", refused(503, "unavailable"), refused(503, "unavailable"), "second")();
    expect(await screen.findByTestId("word")).toHaveTextContent("first");
    expect(screen.queryByTestId("outdated")).toBeNull();
    await userEvent.click(screen.getByRole("button", { name: "read" }));
    expect(await screen.findByTestId("outdated")).toHaveTextContent(/could not be read since .*\d:\d\d/);
    expect(screen.getByTestId("word")).toHaveTextContent("first");
    await userEvent.click(screen.getByRole("button", { name: "Try again" }));
    expect(screen.getByTestId("outdated")).toBeVisible();
    await userEvent.click(screen.getByRole("button", { name: "Try again" }));
    await waitFor(() => expect(screen.queryByTestId("outdated")).toBeNull());
    expect(screen.getByTestId("word")).toHaveTextContent("second");
  });

  it("are not called outdated by a failure after which a retry succeeds", async () => {
    const { cache } = show("first", refused(503, "unavailable"), "second")(1);
    await screen.findByTestId("word");
    const seen: boolean[] = [];
    const stop = cache.getQueryCache().subscribe(() => seen.push(screen.queryByTestId("outdated") !== null));
    await userEvent.click(screen.getByRole("button", { name: "read" }));
    await waitFor(() => expect(screen.getByTestId("word")).toHaveTextContent("second"));
    stop();
    expect(seen).not.toContain(true);
  });

  it("have the reason of an error that a retry cannot change", async () => {
    show("first", refused(404, "not-found"))();
    await screen.findByTestId("word");
    await userEvent.click(screen.getByRole("button", { name: "read" }));
    expect(await screen.findByTestId("outdated")).toHaveTextContent("It does not exist, or you may not see it.");
    expect(screen.queryByRole("button", { name: "Try again" })).toBeNull();
  });

  it("say once that they are outdated if they are shown within others that are, too", () => {
    const failed = (word: string) => ({ data: word, error: refused(503, "unavailable"), isPending: false, dataUpdatedAt: 1, refetch: () => undefined });
    const read = { ...failed("outer"), error: null };
    const nested = (outer: typeof read | ReturnType<typeof failed>) => <Loaded query={outer}>{() => <Loaded query={failed("inner")}>{(word) => <p data-testid="word">{word}</p>}</Loaded>}</Loaded>;
    const { unmount } = renderPage(nested(failed("outer")), { path: "/", at: "/" });
    expect(screen.getByTestId("word")).toHaveTextContent("inner");
    expect(screen.getAllByTestId("outdated")).toHaveLength(1);
    unmount();
    renderPage(nested(read), { path: "/", at: "/" });
    expect(screen.getAllByTestId("outdated")).toHaveLength(1);
  });

  it("are not outdated if only a further page cannot be read", async () => {
    function List() {
      // eslint-disable-next-line no-restricted-syntax -- not a list of the application
      const query = useInfiniteQuery({ queryKey: ["words"], initialPageParam: 1, getNextPageParam: (page: number) => page + 1, queryFn: ({ pageParam }) => (pageParam > 1 ? Promise.reject(new Error("away")) : Promise.resolve(pageParam)) });
      return <><button type="button" onClick={() => void query.fetchNextPage()}>more</button><Loaded query={query}>{({ pages }) => <p data-testid="word">{pages.join()} {String(query.isFetchNextPageError)}</p>}</Loaded></>;
    }
    renderPage(<List />, { path: "/", at: "/" });
    await userEvent.click(await screen.findByRole("button", { name: "more" }));
    await waitFor(() => expect(screen.getByTestId("word")).toHaveTextContent("1 true"));
    expect(screen.queryByTestId("outdated")).toBeNull();
  });
});

import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import { me } from "../testing/fixtures";
import { renderPage, serve, unanswered } from "../testing/render";
import { NewReviewPage } from "./NewReviewPage";

const preview = {
  accesses: 2, permanent: 1, reviewers: 1, unreviewed: 0, rules: { "group:data": 2 }, sensitivities: {},
  examples: [{ scope: { effect: "Allow", subjects: ["*"], resources: ["trnv1:rsc:o:redis:clusters:*"] }, since: "2026-01-20T08:00:00Z", reviewers: [] }],
};

function start(answer: (body: unknown) => { body: unknown } | ReturnType<typeof unanswered> = () => ({ body: preview })) {
  const calls = serve({
    "GET /me": () => ({ body: me({ roles: ["requester", "security"] }) }),
    "GET /classes": () => ({ body: { items: [] } }),
    "GET /groups/data": () => ({ body: { id: "data", displayName: "Data platform", members: 3 } }),
    "GET /groups": () => ({ body: { items: [{ id: "data", displayName: "Data platform", members: 3 }, { id: "security", displayName: "Security", members: 1 }] } }),
    "POST /reviews/preview": ({ body }) => answer(body),
    "POST /reviews": () => ({ status: 201, body: { id: "R-3", name: "Caches" } }),
  });
  renderPage(<NewReviewPage />, { path: "/reviews/new", at: "/reviews/new" });
  return calls;
}

const reviewers = (calls: { method: string; path: string; body?: unknown }[]) => (calls.findLast(({ method, path }) => method === "POST" && path === "/reviews")?.body as { reviewers: string[] } | undefined)?.reviewers;

describe("the form of a new access review", () => {
  it("names the groups of its preview", async () => {
    start();
    expect(await screen.findByText("Group Data platform", {}, { timeout: 20_000 })).toHaveAttribute("title", "data");
  });

  it("takes several rules, also of groups, in their order", async () => {
    const calls = start();
    await userEvent.type(await screen.findByTestId("review-name"), "Caches");
    await userEvent.click(screen.getByTestId("add-rule"));
    await userEvent.click(screen.getByTestId("create-review"));
    expect(await screen.findByText("Select a group.")).toBeVisible();
    expect(reviewers(calls)).toBeUndefined();
    await userEvent.click(screen.getByTestId("review-group-2"));
    await userEvent.click(await screen.findByRole("option", { name: /Data platform/ }));
    await userEvent.click(screen.getByTestId("remove-rule-0"));
    await userEvent.click(screen.getByTestId("create-review"));
    await waitFor(() => expect(reviewers(calls)).toEqual(["application-leader", "group:data"]));
  });

  it("offers at most ten rules, and the last one cannot be removed", async () => {
    start();
    await screen.findByTestId("review-rules");
    for (let count = 2; count < 10; count++) fireEvent.click(screen.getByTestId("add-rule"));
    expect(screen.queryByTestId("add-rule")).toBeNull();
    expect(screen.getByText("A review has at most 10 rules.")).toBeVisible();
    for (let count = 10; count > 1; count--) fireEvent.click(screen.getByTestId("remove-rule-0"));
    expect(screen.queryByTestId("remove-rule-0")).toBeNull();
  });

  it("does not show the number of accesses of another scope", async () => {
    start((body) => ((body as { scope: { olderThanDays?: number } }).scope.olderThanDays ? unanswered() : { body: preview }));
    expect(await screen.findByTestId("preview-accesses")).toHaveTextContent("2");
    fireEvent.change(screen.getByTestId("review-olderThan"), { target: { value: "90" } });
    expect(screen.queryByTestId("preview-accesses")).toBeNull();
    expect(within(screen.getByTestId("review-preview")).getByTestId("skeleton")).toBeVisible();
  });

  it("shows statements among the examples of the preview", async () => {
    start();
    expect(await screen.findByTestId("statement")).toHaveTextContent("Lets anyone reach redis / *.");
    expect(within(screen.getByTestId("review-preview")).getByText(/Group data/)).toBeVisible();
  });
});

import { screen } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import { ApiError } from "../api/client";
import { renderPage, verbatim } from "../testing/render";
import { ErrorState } from "./Feedback";

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

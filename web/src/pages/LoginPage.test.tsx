import { screen } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import { renderPage } from "../testing/render";
import { LoginPage } from "./LoginPage";

const open = (search: string) => renderPage(<LoginPage />, { path: "/login", at: `/login${search}` });

describe("login", () => {
  it("returns to where the person was", () => {
    open("?returnTo=%2Ftickets%2FT-1%3Fx%3D1");
    expect(screen.getByTestId("login-button")).toHaveAttribute("href", "/auth/login?returnTo=%2Ftickets%2FT-1%3Fx%3D1");
  });

  it("never returns to another site", () => {
    open("?returnTo=%2F%2Fevil.example");
    expect(screen.getByTestId("login-button")).toHaveAttribute("href", "/auth/login?returnTo=%2F");
  });

  it("tries a new login again as one", () => {
    open("?error=not-fresh&returnTo=%2Ftickets%2FT-1");
    expect(screen.getByTestId("login-button")).toHaveAttribute("href", "/auth/login?fresh=true&returnTo=%2Ftickets%2FT-1");
  });

  it("says nothing about an error when there was none", () => {
    open("");
    expect(screen.queryByTestId("login-error")).toBeNull();
  });

  const cases = [
    { code: "denied", want: /cancelled or refused/ },
    { code: "expired", want: /session has ended/ },
    { code: "invalid", want: /could not be verified/ },
    { code: "unknown-person", want: /not in ACP’s catalog/ },
    { code: "provider-unavailable", want: /does not answer/ },
    { code: "provider-unset", want: /not configured/ },
    { code: "not-fresh", want: /did not confirm that you signed in again/ },
    { code: "signed-out", want: /You are signed out/ },
    { code: "new-code", want: /“new-code”/ },
  ];
  for (const { code, want } of cases) {
    it(`says what to do about ${code}`, () => {
      open(`?error=${code}`);
      expect(screen.getByTestId("login-error")).toHaveTextContent(want);
    });
  }
});

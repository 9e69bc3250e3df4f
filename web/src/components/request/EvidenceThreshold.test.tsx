import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { describe, expect, it } from "vitest";
import type { EvidenceScore, Role } from "../../api/types";
import { me } from "../../testing/fixtures";
import { problem, renderPage, serve, verbatim } from "../../testing/render";
import type { Answer } from "../../testing/render";
import { EvidenceThreshold } from "./EvidenceThreshold";

const score = (value: number): EvidenceScore => ({ value, threshold: 70, enough: value >= 70, windowSeconds: 1_209_600, parts: [{ name: "observed", points: 12, of: 40, missing: verbatim("Wait until the window is full.") }] });

function Form() {
  const [value, setValue] = useState<string>();
  return (
    <>
      <EvidenceThreshold resource="bobs-cluster" value={value} onChange={setValue} />
      <p data-testid="value">{String(value)}</p>
    </>
  );
}

function start(roles: Role[], of: EvidenceScore | Answer) {
  serve({ "GET /me": () => ({ body: me({ roles }) }), "GET /resources/bobs-cluster/evidence": () => ("body" in of ? of : { body: of }) });
  renderPage(<Form />, { path: "/", at: "/" });
}

describe("before Enforce", () => {
  it("says what is missing, and whom to ask", async () => {
    start(["resource-owner"], score(31));
    const threshold = await screen.findByTestId("threshold");
    expect(threshold).toHaveTextContent("The evidence is 31, and Enforce needs 70.");
    expect(threshold).toHaveTextContent("Wait until the window is full.");
    expect(threshold).toHaveTextContent("ask a security administrator");
    expect(screen.queryByTestId("override-check")).toBeNull();
  });

  it("lets a security administrator override it, with a reason", async () => {
    start(["security"], score(31));
    await userEvent.click(await screen.findByTestId("override-check"));
    expect(screen.getByText("Enter a reason.")).toBeVisible();
    await userEvent.type(screen.getByTestId("override-reason"), "Monday");
    expect(screen.getByTestId("value")).toHaveTextContent("Monday");
    await userEvent.click(screen.getByTestId("override-check"));
    expect(screen.getByTestId("value")).toHaveTextContent("undefined");
  });

  it("reports that the evidence could not be read", async () => {
    start(["security"], problem(503, "unavailable"));
    expect(await screen.findByText("It is not known whether there is enough evidence.")).toBeVisible();
    expect(screen.getByRole("button", { name: "Try again" })).toBeVisible();
  });

  it("shows nothing to people who may not read the evidence", async () => {
    start(["requester"], problem(403, "forbidden"));
    await waitFor(() => expect(screen.queryByTestId("skeleton")).toBeNull());
    expect(screen.queryByTestId("error-state")).toBeNull();
  });

  it("offers no override where none is needed", async () => {
    start(["security"], score(82));
    expect(await screen.findByTestId("threshold")).toHaveAttribute("data-value", "enough");
    expect(screen.queryByTestId("override-check")).toBeNull();
  });
});

import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, it } from "vitest";
import type { Person, Step } from "../api/types";
import { chooseLanguage } from "../i18n";
import { bob, carol, step } from "../testing/fixtures";
import { renderPage } from "../testing/render";
import { Deciders } from "./Deciders";

const crowd: Person[] = Array.from({ length: 18 }, (_, i) => ({ id: `p${i}`, displayName: `Person ${i}` }));
const show = (...steps: Step[]) => renderPage(<Deciders steps={steps} />, { path: "/", at: "/" });

afterEach(() => chooseLanguage("en"));

describe("who decides", () => {
  it("names the first of many people, and the others on request", async () => {
    show(step("security", "waiting", crowd, { approversTotal: 20 }));
    const line = within(screen.getByTestId("preview-step-security"));
    expect(line.getByText("Person 5")).toBeVisible();
    expect(line.queryByText("Person 6")).toBeNull();
    expect(line.getByTestId("more-people")).toHaveTextContent("and 14 more");
    await userEvent.click(line.getByTestId("more-people"));
    expect(line.getByText("Person 17")).toBeVisible();
    // The portal lists no more of them.
    expect(line.getByTestId("more-people")).toHaveTextContent("and 2 more");
    expect(line.queryByRole("button", { name: /more/ })).toBeNull();
  });

  it("does not hide a single name", () => {
    show(step("security", "waiting", crowd.slice(0, 7)));
    expect(screen.getByText("Person 6")).toBeVisible();
    expect(screen.queryByTestId("more-people")).toBeNull();
  });

  it("says at every step what happens without a decision", () => {
    show(
      step("leader", "waiting", [carol], { timeoutSeconds: 259200, onTimeout: "Escalate", escalateTo: [bob], escalateTotal: 3, remindSeconds: 86400 }),
      step("owner", "waiting", [bob], { timeoutSeconds: 86400, onTimeout: "Deny" }),
      step("security", "waiting", [carol]),
    );
    const leader = within(screen.getByTestId("preview-step-leader"));
    expect(leader.getByTestId("timeout-leader")).toHaveTextContent(/Without a decision after 3 days, more people can decide:.*Bob.*and 2 more/);
    expect(leader.getByTestId("reminders-leader")).toHaveTextContent("The approvers are reminded after 1 day, and then at intervals that double up to a week. The first reminder after 30 days is the last one.");
    expect(screen.getByTestId("timeout-owner")).toHaveTextContent("Without a decision after 1 day, the request is rejected.");
    expect(screen.queryByTestId("timeout-security")).toBeNull();
  });

  it("says once what is the same at all steps", async () => {
    show(
      step("leader", "waiting", [carol], { timeoutSeconds: 259200, onTimeout: "Deny", remindSeconds: 86400 }),
      step("owner", "waiting", [bob], { timeoutSeconds: 259200, onTimeout: "Deny", remindSeconds: 86400 }),
      step("security", "waiting", [bob], { auto: true }),
    );
    expect(screen.getByTestId("shared-rules")).toHaveTextContent("At every step: Without a decision after 3 days, the request is rejected. The approvers are reminded after 1 day, ");
    expect(screen.getAllByText("are reminded", { exact: false })).toHaveLength(1);
    expect(screen.queryByTestId("timeout-leader")).toBeNull();
    expect(screen.queryByTestId("reminders-owner")).toBeNull();
    await chooseLanguage("zh");
    expect(await screen.findByText("每个步骤：")).toBeVisible();
  });

  it("says at the steps what differs, also only by the people", () => {
    show(
      step("leader", "waiting", [carol], { timeoutSeconds: 86400, onTimeout: "Escalate", escalateTo: [bob], remindSeconds: 3600 }),
      step("owner", "waiting", [bob], { timeoutSeconds: 86400, onTimeout: "Escalate", escalateTo: [carol], remindSeconds: 3600 }),
    );
    expect(screen.getByTestId("shared-rules")).toHaveTextContent(/^At every step: The approvers are reminded after 1 hour/);
    expect(within(screen.getByTestId("timeout-leader")).getByText("Bob Li")).toBeVisible();
    expect(within(screen.getByTestId("timeout-owner")).getByText("Carol Wu")).toBeVisible();
  });

  it("says who is on call, or why nobody is", async () => {
    const unknown = { code: "on-call.no-answer", params: { schedule: "shop" }, text: "It is not known who is on call in shop: its source does not answer." };
    show(
      step("leader", "waiting", [bob, carol], { onCall: { schedule: "shop", tier: 1, people: [bob], fallback: false } }),
      step("owner", "waiting", [bob, carol], { onCall: { schedule: "shop", tier: 1, people: [], fallback: false, message: unknown } }),
      step("security", "waiting", [bob, carol], { onCall: { schedule: "shop", tier: 2, people: [bob, carol], fallback: true, message: unknown } }),
    );
    expect(screen.getByTestId("on-call-leader")).toHaveTextContent(/Only approvers who are on call in shop \(tier 1\) can decide\..*On call now:.*Bob/);
    expect(screen.getByTestId("on-call-owner")).toHaveTextContent(/its source does not answer\. The step waits\./);
    expect(screen.getByTestId("on-call-security")).toHaveTextContent(/its source does not answer\. Therefore every approver can decide\./);
    await chooseLanguage("zh");
    expect(await screen.findByTestId("on-call-owner")).toHaveTextContent("无法得知 shop 的值班人");
  });

  it("says when a request is denied whose schedule does not exist any more", async () => {
    const gone = { code: "on-call.not-configured", params: { schedule: "shop" }, text: "No on-call schedule shop is configured." };
    const deniedAt = new Date(Date.now() + 5 * 86_400_000).toISOString();
    show(step("owner", "current", [bob], { onCall: { schedule: "shop", tier: 1, people: [], fallback: false, message: gone, deniedAt } }));
    expect(screen.getByTestId("on-call-owner")).toHaveTextContent(/No on-call schedule shop is configured\. The step waits\..*Unless the schedule exists again, the request is denied/);
    await chooseLanguage("zh");
    expect(await screen.findByTestId("denied-owner")).toHaveTextContent("如果值班表仍不存在，届时申请将被拒绝");
  });

  it("tells the people on call from those whom an escalation added", async () => {
    show(step("leader", "current", [bob, carol], { escalated: true, onCall: { schedule: "shop", tier: 1, people: [bob, carol], fallback: false } }));
    expect(screen.getByTestId("on-call-leader")).toHaveTextContent("On call now, or added because there was no decision in time:");
    expect(screen.getByTestId("on-call-leader")).not.toHaveTextContent("On call now:");
    await chooseLanguage("zh");
    expect(await screen.findByText(/因未及时审批而增加的审批人/)).toBeVisible();
  });

  it("says that an escalation adds nobody", () => {
    show(step("leader", "waiting", [bob], { timeoutSeconds: 86400, onTimeout: "Escalate", escalateTo: [], escalateTotal: 0 }));
    expect(screen.getByTestId("timeout-leader")).toHaveTextContent("the policy names nobody who can then decide.");
  });

  it("says nothing about the timeout of an automatic step", () => {
    show(step("owner", "waiting", [bob], { auto: true, timeoutSeconds: 60, onTimeout: "Deny", remindSeconds: 60 }));
    expect(screen.queryByTestId("timeout-owner")).toBeNull();
    expect(screen.queryByTestId("reminders-owner")).toBeNull();
  });
});

import { fireEvent, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import type { Role, Workload } from "../api/types";
import { app888, application, me } from "../testing/fixtures";
import { problem, renderPage, serve, verbatim } from "../testing/render";
import type { Answer, Call } from "../testing/render";
import { WorkloadsPage } from "./WorkloadsPage";

const workload = (over: Partial<Workload> = {}): Workload => ({ id: "vm-1", subject: app888.name, addresses: ["10.0.0.1"], source: "portal", accepted: true, ...over });

interface Over {
  at?: string;
  roles?: Role[];
  items?: Workload[];
  put?: (call: Call) => Answer;
}

function start({ at = "/workloads", roles = ["requester", "application-owner"], items = [workload()], put }: Over = {}) {
  const calls = serve({
    "GET /me": () => ({ body: me({ roles }) }),
    "GET /workloads": () => ({ body: { items } }),
    "GET /applications": () => ({ body: { items: [application()] } }),
    "GET /applications/app-888": () => ({ body: application() }),
    "POST /workloads": put ?? (({ body }) => ({ body: { items: (body as { items: Workload[] }).items.map(({ id }) => ({ id, outcome: "created" })) } })),
    "DELETE /workloads/vm-1": () => ({ status: 204, body: undefined }),
  });
  return { calls, ...renderPage(<WorkloadsPage />, { path: "/workloads", at }) };
}

async function paste(text: string) {
  await userEvent.click(await screen.findByTestId("upload-workloads"));
  await userEvent.click(await screen.findByTestId("upload-content"));
  await userEvent.paste(text);
}

describe("workloads", () => {
  it("reads the filters of the address", async () => {
    const { calls } = start({ at: "/workloads?q=vm&application=app-888&source=cmdb" });
    await screen.findByTestId("workload-vm-1");
    const search = calls.find((call) => call.path === "/workloads")?.search;
    expect([search?.get("q"), search?.get("application"), search?.get("source")]).toEqual(["vm", "app-888", "cmdb"]);
  });

  it("registers one with the name of its application", async () => {
    const { calls } = start();
    await userEvent.click(await screen.findByTestId("add-workload"));
    await userEvent.type(await screen.findByTestId("workload-id"), "vm-2");
    await userEvent.click(screen.getByTestId("workload-application"));
    await userEvent.click(await screen.findByRole("option", { name: new RegExp(app888.title) }));
    await userEvent.type(screen.getByTestId("workload-addresses"), "10.0.0.2{Enter}");
    await userEvent.click(screen.getByTestId("workload-save"));
    await waitFor(() => expect(calls.find((call) => call.method === "POST")?.body).toEqual({ items: [{ id: "vm-2", subject: app888.name, addresses: ["10.0.0.2"] }] }));
    await waitFor(() => expect(screen.queryByTestId("workload-form")).toBeNull());
  });

  it("keeps the form while a newer login is needed", async () => {
    const { unmount } = start({ put: () => problem(403, "login-too-old") });
    await userEvent.click(await screen.findByTestId("add-workload"));
    await userEvent.type(await screen.findByTestId("workload-id"), "vm-2");
    await userEvent.click(screen.getByTestId("workload-application"));
    await userEvent.click(await screen.findByRole("option", { name: new RegExp(app888.title) }));
    await userEvent.type(screen.getByTestId("workload-addresses"), "10.0.0.2{Enter}");
    await userEvent.click(screen.getByTestId("workload-save"));
    expect(await screen.findByTestId("login-again")).toBeVisible();
    unmount();
    const { calls } = start();
    expect(await screen.findByTestId("dialog-restored")).toBeVisible();
    expect(await screen.findByDisplayValue(new RegExp(app888.title))).toBeVisible();
    await userEvent.click(screen.getByTestId("workload-save"));
    await waitFor(() => expect(calls.find((call) => call.method === "POST")?.body).toEqual({ items: [{ id: "vm-2", subject: app888.name, addresses: ["10.0.0.2"] }] }));
    await waitFor(() => expect(sessionStorage).toHaveLength(0));
  });

  it("keeps the form when the server refuses the one", async () => {
    start({ put: () => ({ body: { items: [{ id: "vm-2", outcome: "refused", message: verbatim("the address 10.0.0.2 is taken") }] } }) });
    await userEvent.click(await screen.findByTestId("add-workload"));
    await userEvent.type(await screen.findByTestId("workload-id"), "vm-2");
    await userEvent.click(screen.getByTestId("workload-application"));
    await userEvent.click(await screen.findByRole("option", { name: new RegExp(app888.title) }));
    await userEvent.type(screen.getByTestId("workload-addresses"), "10.0.0.2{Enter}");
    await userEvent.click(screen.getByTestId("workload-save"));
    expect(await screen.findByTestId("workload-refused")).toHaveTextContent("the address 10.0.0.2 is taken");
  });

  it.each([
    { reason: "a bound that the resource's side can lift", needsApproval: true, offered: true },
    { reason: "an address of another application", needsApproval: undefined, offered: false },
  ])("offers to ask the resource's side: $reason", async ({ needsApproval, offered }) => {
    start({ put: () => ({ body: { items: [{ id: "vm-2", outcome: "refused", message: verbatim("10.0.0.0/24 is a range"), needsApproval, application: "app-888" }] } }) });
    await userEvent.click(await screen.findByTestId("add-workload"));
    await userEvent.type(await screen.findByTestId("workload-id"), "vm-2");
    await userEvent.click(screen.getByTestId("workload-application"));
    await userEvent.click(await screen.findByRole("option", { name: new RegExp(app888.title) }));
    await userEvent.type(screen.getByTestId("workload-addresses"), "10.0.0.0/24{Enter}");
    await userEvent.click(screen.getByTestId("workload-save"));
    await screen.findByTestId("workload-refused");
    expect(screen.queryByTestId("ask-owners") !== null).toBe(offered);
  });

  it("offers to request approval for those of many that need it", async () => {
    start({ put: ({ body }) => ({ body: { items: (body as { items: Workload[] }).items.map(({ id }) => (id === "vm-1" ? { id, outcome: "created" } : { id, outcome: "refused", message: verbatim("too many"), needsApproval: true, application: "app-888" })) } }) });
    await paste(JSON.stringify([workload({ id: "vm-1" }), workload({ id: "vm-2" }), workload({ id: "vm-3" })]));
    await userEvent.click(screen.getByTestId("upload-send"));
    expect(await screen.findByTestId("ask-owners")).toHaveTextContent("(2)");
  });

  it("marks what is missing and sends nothing", async () => {
    const { calls } = start();
    await userEvent.click(await screen.findByTestId("add-workload"));
    await userEvent.click(await screen.findByTestId("workload-save"));
    for (const text of ["Choose an application.", "Enter at least one address."]) expect(await screen.findByText(text)).toBeVisible();
    expect(calls.some((call) => call.method === "POST")).toBe(false);
  });

  it("sends many in parts that the server takes, and sums up what came of each", async () => {
    const { calls } = start({ put: ({ body }) => ({ body: { items: (body as { items: Workload[] }).items.map(({ id }) => (id === "vm-7" ? { id, outcome: "refused", message: verbatim("the workload acts as x") } : { id, outcome: "created" })) } }) });
    await paste(JSON.stringify(Array.from({ length: 1_500 }, (_, n) => workload({ id: `vm-${n}` }))));
    expect(await screen.findByText("1500 workloads read")).toBeVisible();
    await userEvent.click(screen.getByTestId("upload-send"));
    expect(await screen.findByTestId("upload-sum")).toHaveTextContent("1,499 new, 0 changed, 0 unchanged, 1 refused");
    expect(calls.filter((call) => call.method === "POST").map((call) => (call.body as { items: unknown[] }).items.length)).toEqual([1_000, 500]);
    // Refused workloads are listed first, regardless of their number.
    expect(screen.getByTestId("result-vm-7")).toBeInTheDocument();
  });

  it("says what is wrong with a file, and offers nothing to send", async () => {
    start();
    await paste("id,name\nvm-1,x\n");
    expect(await screen.findByText("The first line has to name the columns: subject, addresses is missing.")).toBeVisible();
    expect(screen.getByTestId("upload-send")).toBeDisabled();
  });

  it("reports that a part may be registered after an interruption", async () => {
    start({ put: () => problem(503, "unavailable") });
    await paste(JSON.stringify([workload()]));
    await userEvent.click(screen.getByTestId("upload-send"));
    expect(await screen.findByText(/It was interrupted/)).toBeVisible();
  });

  it("keeps the file while a newer login is needed, and calls nothing interrupted", async () => {
    const { unmount } = start({ put: () => problem(403, "login-too-old") });
    await paste(JSON.stringify([workload()]));
    await userEvent.click(screen.getByTestId("upload-send"));
    expect(await screen.findByTestId("login-again")).toBeVisible();
    expect(screen.queryByText(/It was interrupted/)).toBeNull();
    unmount();
    start();
    expect(await screen.findByTestId("dialog-restored")).toBeVisible();
    await userEvent.click(screen.getByTestId("upload-send"));
    expect(await screen.findByTestId("upload-sum")).toHaveTextContent("1 new");
    await waitFor(() => expect(sessionStorage).toHaveLength(0));
  });

  it("says before it is sent that a file is too large to be kept", async () => {
    start();
    await userEvent.click(await screen.findByTestId("upload-workloads"));
    const field = await screen.findByTestId("upload-content");
    fireEvent.change(field, { target: { value: "x".repeat(1_000_000) } });
    expect(screen.queryByTestId("upload-not-kept")).toBeNull();
    fireEvent.change(field, { target: { value: "x".repeat(1_000_001) } });
    expect(screen.getByTestId("upload-not-kept")).toHaveTextContent("choose the file again");
  });

  it("removes one after asking", async () => {
    const { calls } = start();
    await userEvent.click(await screen.findByTestId("remove-vm-1"));
    await userEvent.click(await screen.findByTestId("remove-workload-confirm"));
    await waitFor(() => expect(calls.some((call) => call.method === "DELETE")).toBe(true));
  });

  it.each([
    { reason: "an auditor changes nothing", roles: ["auditor"] as Role[], items: [workload()], add: false, remove: false },
    { reason: "what a platform registered is the platform's", roles: ["security"] as Role[], items: [workload({ source: "cmdb" })], add: true, remove: false },
    { reason: "what stands in the host cluster is changed there", roles: ["security"] as Role[], items: [workload({ source: undefined })], add: true, remove: false },
    { reason: "what people registered", roles: ["security"] as Role[], items: [workload()], add: true, remove: true },
  ])("offers what may be done: $reason", async ({ roles, items, add, remove }) => {
    start({ roles, items });
    await screen.findByTestId("workload-vm-1");
    await waitFor(() => expect([screen.queryByTestId("add-workload") !== null, screen.queryByTestId("remove-vm-1") !== null]).toEqual([add, remove]));
  });
});

describe("a full sync", () => {
  const preview = { token: "t-1", applied: false, added: 1, changed: 0, removed: 30, unchanged: 4, unconfirmed: true, sample: [workload({ id: "vm-old" })], refused: [{ id: "vm-bad", message: verbatim("no class of subjects covers x") }] };

  async function open(roles: Role[] = ["requester", "security"]) {
    const calls = serve({
      "GET /me": () => ({ body: me({ roles }) }),
      "GET /workloads": () => ({ body: { items: [workload()] } }),
      "POST /workloads/sync": ({ body }) => ({ body: { ...preview, applied: (body as { token?: string }).token !== undefined } }),
    });
    renderPage(<WorkloadsPage />, { path: "/workloads", at: "/workloads" });
    await screen.findByTestId("workload-vm-1");
    return calls;
  }

  it("shows what would go, and applies exactly that once it is confirmed", async () => {
    const calls = await open();
    await userEvent.click(screen.getByTestId("sync-workloads"));
    expect(await screen.findByTestId("sync-preview")).toBeDisabled();
    await userEvent.type(screen.getByTestId("sync-source"), "cmdb");
    await userEvent.click(screen.getByTestId("sync-content"));
    await userEvent.paste(`id,subject,addresses\nvm-2,${app888.name},10.0.0.2`);
    await userEvent.click(screen.getByTestId("sync-preview"));
    expect(await screen.findByTestId("sync-sum")).toHaveTextContent("1 new, 0 changed, 30 removed, 4 unchanged");
    expect(screen.getByTestId("sync-goes")).toHaveTextContent("vm-old");
    expect(screen.getByTestId("sync-refused")).toHaveTextContent("vm-bad");
    expect(screen.getByTestId("sync-apply")).toBeDisabled();
    await userEvent.click(screen.getByTestId("sync-sure"));
    await userEvent.click(screen.getByTestId("sync-apply"));
    await waitFor(() => expect(screen.queryByTestId("sync-dialog")).toBeNull());
    const item = { id: "vm-2", subject: app888.name, addresses: ["10.0.0.2"] };
    expect(calls.filter((call) => call.path === "/workloads/sync").map((call) => call.body)).toEqual([
      { source: "cmdb", items: [item], confirm: false },
      { source: "cmdb", items: [item], token: "t-1", confirm: true },
    ]);
  });

  it("forgets what was shown when the source is another one", async () => {
    await open();
    await userEvent.click(screen.getByTestId("sync-workloads"));
    await userEvent.type(await screen.findByTestId("sync-source"), "cmdb");
    await userEvent.click(screen.getByTestId("sync-content"));
    await userEvent.paste(`id,subject,addresses\nvm-2,${app888.name},10.0.0.2`);
    await userEvent.click(screen.getByTestId("sync-preview"));
    await screen.findByTestId("sync-sum");
    await userEvent.type(screen.getByTestId("sync-source"), "2");
    expect(screen.queryByTestId("sync-sum")).toBeNull();
    expect(screen.getByTestId("sync-preview")).toBeEnabled();
  });

  it("is not offered to owners", async () => {
    await open(["requester", "application-owner"]);
    expect(screen.queryByTestId("sync-workloads")).toBeNull();
  });
});

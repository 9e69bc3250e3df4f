import { cleanup, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import type { PreviewItem, TicketPreview } from "../api/types";
import { app888, application, bob, bobsCluster, carol, connection, me, resource, step, ticket } from "../testing/fixtures";
import { problem, renderPage, serve, verbatim } from "../testing/render";
import type { Answer, Call } from "../testing/render";
import { NewRequestPage } from "./NewRequestPage";

const planned: PreviewItem = { position: 0, steps: [step("leader", "waiting", [carol]), step("owner", "waiting", [bob])], existing: [], denied24h: 1284 };
const preview: TicketPreview = { items: [planned] };

const orders = { id: "orders-cache", title: "Orders cache", name: "trnv1:rsc:trip-com:redis:clusters:orders-cache" };

function start(at: string, over: Record<string, (call: Call) => Answer> = {}) {
  const calls = serve({
    "GET /applications": () => ({ body: { items: [application(), application({ id: "app-777", title: "Ledger batch", name: "trnv1:rsc:trip-com:iam:sa:app/777" })] } }),
    "GET /resources": () => ({ body: { items: [resource(orders), resource()] } }),
    "GET /resources/bobs-cluster": () => ({ body: resource() }),
    "GET /resources/orders-cache": () => ({ body: resource({ ...orders, actions: [{ name: "redis:connect", ports: ["6379/TCP"] }, { name: "redis:admin", ports: ["9121/TCP"] }] }) }),
    "GET /applications/app-888": () => ({ body: application() }),
    "GET /applications/app-888/connections": () => ({ body: { items: [connection()], available: true, since: "2026-11-19T10:00:00Z" } }),
    "POST /tickets/preview": () => ({ body: preview }),
    "POST /tickets": () => ({ status: 201, body: ticket({ id: "T-46" }) }),
    ...over,
  });
  return { calls, ...renderPage(<NewRequestPage />, { path: "/requests/new", at }) };
}

const prefilled = `/requests/new?application=${app888.id}&resource=${bobsCluster.id}`;
const posted = (calls: Call[]) => calls.filter((call) => call.method === "POST" && call.path === "/tickets");

describe("a new request", () => {
  it("names every missing field and sends nothing", async () => {
    const { calls } = start("/requests/new");
    await userEvent.click(await screen.findByTestId("submit-request"));
    for (const text of ["Choose an application.", "Choose a resource.", "Enter the reason."]) expect(screen.getByText(text)).toBeVisible();
    expect(posted(calls)).toEqual([]);
  });

  it("takes application and resource from the link, and the only action", async () => {
    start(prefilled);
    expect(await screen.findByRole("checkbox", { name: /redis:connect/ })).toBeChecked();
    await waitFor(() => expect(screen.getByTestId("select-application")).toHaveValue("Payments API"));
    expect(within(screen.getByTestId("basket-bobs-cluster")).getByRole("link", { name: "Bob’s cluster" })).toBeVisible();
  });

  it("shows who decides before anything is submitted", async () => {
    const { calls } = start(prefilled);
    const panel = within(await screen.findByTestId("preview"));
    expect(await panel.findByText("Carol Wu")).toBeVisible();
    expect(panel.getByText("Bob Li")).toBeVisible();
    expect(panel.getByTestId("preview-denied")).toHaveTextContent("1,284 connections were refused");
    expect(posted(calls)).toEqual([]);
  });

  it("puts what was refused lately first", async () => {
    start(`/requests/new?application=${app888.id}`);
    await userEvent.click(await screen.findByTestId("select-resource"));
    await screen.findByText("Refused in the last 24 hours");
    await screen.findByRole("option", { name: /Orders cache/ });
    expect(screen.getAllByRole("option").map((option) => option.textContent)).toEqual(["Bob’s clusterredis / bobs-cluster", "Orders cacheredis / orders-cache"]);
  });

  it("submits once and opens the ticket", async () => {
    const { calls, router } = start(prefilled);
    await screen.findByRole("checkbox", { name: /redis:connect/ });
    await userEvent.click(screen.getByRole("radio", { name: "7 days" }));
    await userEvent.type(screen.getByTestId("request-reason"), "Checkout needs it.");
    await userEvent.click(screen.getByTestId("submit-request"));
    await waitFor(() => expect(router.state.location.pathname).toBe("/tickets/T-46"));
    const [call, ...more] = posted(calls);
    expect(more).toEqual([]);
    expect(call?.body).toEqual({ items: [{ application: "app-888", resource: "bobs-cluster", actions: ["redis:connect"] }], reason: "Checkout needs it.", durationSeconds: 604_800 });
    expect(call?.headers.get("X-ACP-Request")).toBe("1");
    expect(call?.headers.get("Idempotency-Key")).toMatch(/^[0-9a-f]{32}$/);
  });

  it("restricts the access to hours", async () => {
    const { calls, router } = start(prefilled);
    await screen.findByRole("checkbox", { name: /redis:connect/ });
    await userEvent.click(screen.getByRole("switch", { name: /certain hours/ }));
    for (const day of ["Mon", "Tue", "Wed", "Thu", "Fri"]) await userEvent.click(screen.getByRole("checkbox", { name: day }));
    await userEvent.type(screen.getByTestId("request-reason"), "Checkout needs it.");
    await userEvent.click(screen.getByTestId("submit-request"));
    expect(await screen.findByText("Choose for each period the days and two different times.")).toBeVisible();
    expect(posted(calls)).toEqual([]);
    await userEvent.click(screen.getByRole("checkbox", { name: "Sun" }));
    await userEvent.click(screen.getByTestId("submit-request"));
    await waitFor(() => expect(router.state.location.pathname).toBe("/tickets/T-46"));
    expect(posted(calls)[0]?.body).toMatchObject({ items: [{ hours: { periods: [{ days: ["Sun"], from: "09:00", to: "18:00" }] } }] });
  });

  describe("for several applications", () => {
    const ledger = application({ id: "app-777", title: "Ledger batch", name: "trnv1:rsc:trip-com:iam:sa:app/777" });
    const both = {
      "GET /applications/app-777": () => ({ body: ledger }),
      "GET /applications/app-777/connections": () => ({ body: { items: [], available: true, since: "2026-11-19T10:00:00Z" } }),
    };
    const plan = (duplicate?: string) => ({
      "POST /tickets/preview": ({ body }: Call) => {
        const { items } = body as { items: { application: string; resource: string }[] };
        return { body: { items: items.map((item, position) => ({ ...planned, position, steps: item.resource === "orders-cache" ? [step("owner", "waiting", [carol])] : planned.steps, ...(duplicate && position === 1 ? { duplicate } : {}) })) } };
      },
    });

    it("offers more on demand, and requests each resource for each of them", async () => {
      const { calls, router } = start(`${prefilled}&resource=orders-cache&action=redis:connect`, { ...both, ...plan() });
      await userEvent.click(await screen.findByTestId("several-applications"));
      expect(screen.getByTestId("select-applications")).toHaveFocus();
      await userEvent.click(screen.getByTestId("select-applications"));
      await userEvent.click(await screen.findByRole("option", { name: /Ledger batch/ }));
      const panel = within(screen.getByTestId("preview"));
      expect(await panel.findByText("Payments API → Bob’s cluster and Ledger batch → Bob’s cluster")).toBeVisible();
      expect(panel.getByText("Payments API → Orders cache and Ledger batch → Orders cache")).toBeVisible();
      await userEvent.type(screen.getByTestId("request-reason"), "Both need it.");
      await userEvent.click(screen.getByRole("button", { name: "Submit request with 4 items" }));
      await waitFor(() => expect(router.state.location.pathname).toBe("/tickets/T-46"));
      expect(posted(calls).map(({ body }) => (body as { items: unknown }).items)).toEqual([
        [
          { application: "app-888", resource: "bobs-cluster", actions: ["redis:connect"] },
          { application: "app-777", resource: "bobs-cluster", actions: ["redis:connect"] },
          { application: "app-888", resource: "orders-cache", actions: ["redis:connect"] },
          { application: "app-777", resource: "orders-cache", actions: ["redis:connect"] },
        ],
      ]);
    });

    it("takes several from the link, leaves out one that is requested already, and takes it back", async () => {
      const { calls, router } = start(`${prefilled}&application=app-777&application=app-777`, { ...both, ...plan("T-44") });
      const item = within(await screen.findByTestId("preview-item-1"));
      expect(item.getByText("Ledger batch → Bob’s cluster")).toBeVisible();
      await userEvent.click(item.getByRole("button", { name: "Leave it out here" }));
      expect(await screen.findByTestId("left-out-bobs-cluster")).toHaveTextContent("Not for Ledger batch.");
      await userEvent.click(screen.getByTestId("take-back-app-777"));
      expect(screen.queryByTestId("left-out-bobs-cluster")).toBeNull();
      await userEvent.click(within(await screen.findByTestId("preview-item-1")).getByRole("button", { name: "Leave it out here" }));
      await userEvent.type(screen.getByTestId("request-reason"), "x");
      await userEvent.click(screen.getByTestId("submit-request"));
      await waitFor(() => expect(router.state.location.pathname).toBe("/tickets/T-46"));
      expect(posted(calls)[0]?.body).toMatchObject({ items: [{ application: "app-888", resource: "bobs-cluster", actions: ["redis:connect"] }] });
    });

    it("names the application of a refused item", async () => {
      start(`${prefilled}&application=app-777`, { ...both, ...plan(), "POST /tickets": () => problem(422, "invalid", { fields: [{ field: "items[1].actions", message: verbatim("is not allowed for it") }] }) });
      await userEvent.type(await screen.findByTestId("request-reason"), "x");
      await screen.findByRole("checkbox", { name: /redis:connect/, checked: true });
      await userEvent.click(screen.getByTestId("submit-request"));
      expect(await within(screen.getByTestId("basket-bobs-cluster")).findByText("Ledger batch: is not allowed for it")).toBeVisible();
    });

    it("is not offered to who owns one", async () => {
      start("/requests/new", { "GET /applications": () => ({ body: { items: [application()] } }) });
      await screen.findByTestId("select-application");
      expect(screen.queryByTestId("several-applications")).toBeNull();
    });
  });

  it("keeps the key for a retry, and takes another for another request", async () => {
    const { calls } = start(prefilled, { "POST /tickets": () => problem(503, "unavailable") });
    await screen.findByRole("checkbox", { name: /redis:connect/ });
    const reason = screen.getByTestId("request-reason");
    const submit = screen.getByTestId("submit-request");
    await userEvent.type(reason, "one");
    await userEvent.click(submit);
    await screen.findByText(/A part of ACP is not available now/);
    expect(reason).toHaveValue("one");
    await userEvent.click(submit);
    await waitFor(() => expect(posted(calls)).toHaveLength(2));
    await userEvent.type(reason, " more");
    await userEvent.click(submit);
    await waitFor(() => expect(posted(calls)).toHaveLength(3));
    const keys = posted(calls).map((call) => call.headers.get("Idempotency-Key"));
    expect(keys[0]).toBe(keys[1]);
    expect(keys[2]).not.toBe(keys[0]);
  });

  it("shows the server’s word at the field it is about", async () => {
    start(prefilled, { "POST /tickets": () => problem(400, "invalid", { fields: [{ field: "items[0].actions[0]", message: verbatim("redis:connect is not an action of this class any more") }] }) });
    await screen.findByRole("checkbox", { name: /redis:connect/ });
    await userEvent.type(screen.getByTestId("request-reason"), "x");
    await userEvent.click(screen.getByTestId("submit-request"));
    expect(await screen.findByText("redis:connect is not an action of this class any more")).toBeVisible();
  });

  it("restores the input when the page is opened again, and drops it after the submission", async () => {
    start(prefilled);
    await userEvent.click(await screen.findByRole("radio", { name: "7 days" }));
    await userEvent.type(screen.getByTestId("request-reason"), "Half a sentence");
    cleanup();
    const { router } = start(prefilled);
    expect(await screen.findByTestId("request-reason")).toHaveValue("Half a sentence");
    expect(screen.getByRole("radio", { name: "7 days" })).toBeChecked();
    expect(screen.getByTestId("draft-restored")).toBeVisible();
    await screen.findByRole("checkbox", { name: /redis:connect/, checked: true });
    await userEvent.click(screen.getByTestId("submit-request"));
    await waitFor(() => expect(router.state.location.pathname).toBe("/tickets/T-46"));
    cleanup();
    start(prefilled);
    expect(await screen.findByTestId("request-reason")).toHaveValue("");
  });

  it("still ticks the only action when the session ended before the resource was known", async () => {
    start(prefilled, { "GET /resources/bobs-cluster": () => problem(401, "unauthenticated") });
    await userEvent.type(await screen.findByTestId("request-reason"), "x");
    cleanup();
    start(prefilled);
    expect(await screen.findByTestId("request-reason")).toHaveValue("x");
    expect(await screen.findByRole("checkbox", { name: /redis:connect/ })).toBeChecked();
  });

  it.each([
    ["somebody else", prefilled, { "GET /me": () => ({ body: me({ person: bob }) }) }],
    ["another link", "/requests/new?resource=orders-cache", {}],
  ])("keeps what was typed from %s", async (_, at, over) => {
    start(prefilled);
    await userEvent.type(await screen.findByTestId("request-reason"), "Half a sentence");
    cleanup();
    start(at, over);
    expect(await screen.findByTestId("request-reason")).toHaveValue("");
    expect(screen.queryByTestId("draft-restored")).toBeNull();
  });

  it("says what to do to who owns no application", async () => {
    start("/requests/new", { "GET /applications": () => ({ body: { items: [] } }) });
    const state = within(await screen.findByTestId("request-no-application"));
    expect(state.getByRole("link")).toHaveAttribute("href", "/applications?scope=all");
    expect(screen.queryByTestId("request-form")).toBeNull();
  });

  it("shows an auditor that they cannot submit requests", async () => {
    start(prefilled, { "GET /me": () => ({ body: me({ roles: ["auditor"] }) }) });
    expect(await screen.findByTestId("request-auditor")).toBeVisible();
    expect(screen.queryByTestId("request-form")).toBeNull();
  });

  it("links to the ticket that already requests the same", async () => {
    start(prefilled, { "POST /tickets/preview": () => ({ body: { items: [{ ...planned, duplicate: "T-44" }] } }) });
    const notice = within(await screen.findByTestId("preview-duplicate"));
    expect(notice.getByRole("link")).toHaveAttribute("href", "/tickets/T-44");
  });

  it("explains why access to a resource without a class cannot be requested", async () => {
    start(prefilled, { "GET /resources/bobs-cluster": () => ({ body: resource({ class: undefined, actions: [] }) }) });
    expect(await screen.findByText(/No resource class covers this resource/)).toBeVisible();
  });

  it("requests several resources at once, and shows the approvers of each", async () => {
    const { calls, router } = start(prefilled, {
      "POST /tickets/preview": ({ body }) => ({
        body: { items: (body as { items: unknown[] }).items.map((_, position) => ({ ...planned, position, steps: position === 0 ? planned.steps : [step("owner", "waiting", [bob, carol], { quorum: 2 })] })) },
      }),
    });
    await screen.findByRole("checkbox", { name: /redis:connect/ });
    await userEvent.click(screen.getByTestId("select-resource"));
    await userEvent.click(await screen.findByRole("option", { name: /Orders cache/ }));
    const added = within(await screen.findByTestId("basket-orders-cache"));
    await userEvent.type(screen.getByTestId("request-reason"), "Checkout.");
    await userEvent.click(screen.getByTestId("submit-request"));
    expect(added.getByText("Choose at least one action.")).toBeVisible();
    await userEvent.click(await added.findByTestId("action-redis:admin"));
    const panel = within(screen.getByTestId("preview"));
    expect(await panel.findByText(/2 of 2/)).toBeVisible();
    await userEvent.click(screen.getByTestId("submit-request"));
    await waitFor(() => expect(router.state.location.pathname).toBe("/tickets/T-46"));
    expect(posted(calls).map((call) => (call.body as { items: unknown }).items)).toEqual([
      [
        { application: "app-888", resource: "bobs-cluster", actions: ["redis:connect"] },
        { application: "app-888", resource: "orders-cache", actions: ["redis:admin"] },
      ],
    ]);
  });

  it("shows that existing access is extended", async () => {
    start(prefilled, { "POST /tickets/preview": () => ({ body: { items: [{ ...planned, kind: "extend", target: { ticket: "T-12", item: 0 } }] } }) });
    expect(await screen.findByTestId("preview-extends")).toHaveTextContent("T-12");
  });

  it("says that the grant onboards the resource, and in which mode", async () => {
    start(prefilled, { "POST /tickets/preview": () => ({ body: { items: [{ ...planned, onboards: "Enforce" }] } }) });
    const line = await screen.findByTestId("preview-onboards");
    expect(line).toHaveTextContent("The resource is not onboarded yet.");
    expect(line).toHaveTextContent("Clients without access are refused from then on.");
  });

  it("says the cap before anything is sent", async () => {
    const { calls } = start(prefilled, { "POST /tickets/preview": () => ({ body: { ...preview, maxDurationSeconds: 604_800 } }) });
    expect(await screen.findByText("The approval policy allows at most 7 days.")).toBeVisible();
    await userEvent.type(screen.getByTestId("request-reason"), "x");
    await userEvent.click(screen.getByTestId("submit-request"));
    expect(posted(calls)).toEqual([]);
    await userEvent.click(screen.getByTestId("duration-7"));
    await waitFor(() => expect(screen.queryByText("The approval policy allows at most 7 days.")).toBeNull());
  });

  it("does not mention broken glass to whom no policy names", async () => {
    start(prefilled);
    await userEvent.type(await screen.findByTestId("request-reason"), "Down.");
    await screen.findByTestId("preview-denied");
    expect(screen.queryByTestId("break-glass")).toBeNull();
  });

  it("uses break-glass only after the reviewers, the duration and a confirmation", async () => {
    const glass = { items: [{ ...planned, steps: [], review: { ...planned.steps[0], name: "review", approvers: [{ id: "dave", displayName: "Dave Okafor" }] } }], breakGlass: true, maxDurationSeconds: 14_400 };
    const { calls } = start(prefilled, { "POST /tickets/preview": ({ body }) => ({ body: (body as { breakGlass?: boolean }).breakGlass ? glass : { ...preview, breakGlass: true } }) });
    await screen.findByTestId("break-glass");
    expect(screen.getByTestId("break-glass")).toBeDisabled();
    await userEvent.type(screen.getByTestId("request-reason"), "Checkout is down.");
    await userEvent.click(screen.getByTestId("break-glass"));
    const reviewers = within(await screen.findByTestId("glass-reviewers"));
    expect(reviewers.getByText("Dave Okafor")).toBeVisible();
    expect(reviewers.queryByText("Carol Wu"), "who approves otherwise is not asked now").toBeNull();
    expect(within(screen.getByTestId("glass-hours")).queryByText("8 hours"), "more than the policy lets anybody").toBeNull();
    expect(screen.getByTestId("glass-confirm")).toBeDisabled();
    await userEvent.click(screen.getByTestId("glass-sure"));
    await userEvent.click(screen.getByTestId("glass-confirm"));
    await waitFor(() =>
      expect(posted(calls).map((call) => call.body)).toEqual([
        { items: [{ application: "app-888", resource: "bobs-cluster", actions: ["redis:connect"] }], reason: "Checkout is down.", durationSeconds: 3_600, breakGlass: true },
      ]),
    );
  });
});

describe("other requests", () => {
  const send = async (calls: Call[]) => {
    await userEvent.type(await screen.findByTestId("request-reason"), "Because.");
    await userEvent.click(screen.getByTestId("submit-request"));
    await waitFor(() => expect(posted(calls)).toHaveLength(1));
    return posted(calls)[0]?.body;
  };

  it("changes the mode of a resource", async () => {
    const { calls } = start("/requests/new?kind=mode&resource=bobs-cluster");
    await userEvent.click(await screen.findByTestId("submit-request"));
    expect(screen.getByText("Choose a mode.")).toBeVisible();
    await userEvent.click(screen.getByTestId("mode-Enforce"));
    expect(await send(calls)).toEqual({ kind: "mode", items: [{ resource: "bobs-cluster", mode: "Enforce" }], reason: "Because." });
  });

  it("lets members differ", async () => {
    const protection = { mode: "Audit", effectiveMode: "Audit", statements: 1, realized: true, clusters: [{ cluster: "m1", state: "Realized" }, { cluster: "m2", state: "Realized" }] } as const;
    const { calls } = start("/requests/new?kind=mode&resource=bobs-cluster&mode=Enforce", { "GET /resources/bobs-cluster": () => ({ body: resource({ protection: { ...protection, clusters: [...protection.clusters] } }) }) });
    await userEvent.click(await screen.findByText("Other modes in some members"));
    await userEvent.click(screen.getByTestId("cluster-mode-m2"));
    await userEvent.click((await screen.findAllByRole("option", { name: "Audit" })).at(-1) as HTMLElement);
    expect(await send(calls)).toEqual({ kind: "mode", items: [{ resource: "bobs-cluster", mode: "Enforce", clusterModes: { m2: "Audit" } }], reason: "Because." });
  });

  it("onboards in Audit by default, and offboards", async () => {
    const { calls } = start("/requests/new?kind=onboard&resource=bobs-cluster");
    await screen.findByTestId("mode-Audit");
    expect(await send(calls)).toEqual({ kind: "onboard", items: [{ resource: "bobs-cluster", mode: "Audit" }], reason: "Because." });
    cleanup();
    const { calls: other } = start("/requests/new?kind=offboard&resource=bobs-cluster");
    expect(await send(other)).toEqual({ kind: "offboard", items: [{ resource: "bobs-cluster" }], reason: "Because." });
  });

  it("changes a class by its YAML", async () => {
    const yaml = "pattern: a\n";
    const { calls } = start("/requests/new?kind=class&object=ResourceClass&name=redis", {
      "GET /classes": () => ({ body: { items: [{ kind: "ResourceClass", name: "redis", pattern: "a", labelKey: "x", yaml, members: 3 }] } }),
    });
    await waitFor(() => expect(screen.getByTestId("object-spec")).toHaveValue(yaml));
    await userEvent.click(screen.getByTestId("submit-request"));
    expect(screen.getByText("This is its current content. Change something.")).toBeVisible();
    await userEvent.type(screen.getByTestId("object-spec"), "more: b");
    expect(await send(calls)).toEqual({ kind: "class", items: [{ object: { kind: "ResourceClass", name: "redis", verb: "update", spec: `${yaml}more: b` } }], reason: "Because." });
  });

  it("requests the end of a grant", async () => {
    const { calls } = start("/requests/new?kind=revoke&target=T-12%2F0", { "GET /tickets/T-12": () => ({ body: ticket({ id: "T-12", state: "effective" }) }) });
    expect(await screen.findByText(/can then no longer reach Bob’s cluster/)).toBeVisible();
    expect(await send(calls)).toEqual({ kind: "revoke", items: [{ target: { ticket: "T-12", item: 0 } }], reason: "Because." });
  });
});

describe("a request for a workload", () => {
  const owners: TicketPreview = { items: [{ position: 0, kind: "workload", steps: [step("owner:bobs-cluster", "current", [bob], { note: { code: "step-note.owner-of", params: { resources: { code: "names.list", params: { names: ["bobs-cluster"] }, text: "bobs-cluster" } }, text: "An owner of bobs-cluster decides." } })] }] };

  it("takes over what was refused, shows who decides, and sends the addresses", async () => {
    const { calls, router } = start("/", { "POST /tickets/preview": () => ({ body: owners }) });
    await router.navigate("/requests/new?kind=workload", { state: { workloads: [{ application: app888.id, id: "rack-7", addresses: ["10.0.0.0/24"], description: "new rack" }] } });
    expect(await screen.findByTestId("workload-id")).toHaveValue("rack-7");
    expect(await screen.findByTestId("preview-step-owner:bobs-cluster")).toHaveTextContent("owner of bobs-cluster");
    await userEvent.type(screen.getByTestId("request-reason"), "The new rack.");
    await userEvent.click(screen.getByTestId("submit-request"));
    await waitFor(() => expect(router.state.location.pathname).toBe("/tickets/T-46"));
    expect(posted(calls)[0]?.body).toEqual({ kind: "workload", reason: "The new rack.", items: [{ application: "app-888", workload: { id: "rack-7", addresses: ["10.0.0.0/24"], description: "new rack" } }] });
  });

  it("lists several, and requests at most as many as a ticket can have", async () => {
    const { router } = start("/", { "POST /tickets/preview": () => ({ body: owners }) });
    await router.navigate("/requests/new?kind=workload", { state: { workloads: Array.from({ length: 60 }, (_, n) => ({ application: app888.id, id: `rack-${n}`, addresses: [`10.0.${n}.0/24`], description: "" })) } });
    expect(await screen.findByText(/at most 50 workloads/)).toBeVisible();
    expect(screen.getByText("rack-49")).toBeVisible();
    expect(screen.queryByText("rack-50")).toBeNull();
  });

  it("names what is missing and sends nothing", async () => {
    const { calls } = start("/requests/new?kind=workload");
    await userEvent.click(await screen.findByTestId("submit-request"));
    for (const text of ["Choose an application.", "Enter at least one address."]) expect(await screen.findByText(text)).toBeVisible();
    expect(posted(calls)).toEqual([]);
  });
});

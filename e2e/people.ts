import { expect, type Browser, type BrowserContext, type Cookie, type Locator, type Page } from '@playwright/test';
import { ready } from './fleet.js';

/** How long the fleet may take for what was asked of it, in milliseconds, also on a busy machine. */
export const fleetTimeout = 120_000;

/** A person of the demo with a separate browser. */
export interface Person {
  name: string;
  context: BrowserContext;
  page: Page;
}

/** The cookies of those who have logged in, by name. */
const sessions = new Map<string, Cookie[]>();

/** Whether somebody has logged in during this run of tests. */
export function hasLoggedIn(name: string): boolean {
  return sessions.has(name);
}

/** The cookies of somebody who has logged in; none if nobody did under this name. */
export function sessionOf(name: string): Cookie[] {
  return sessions.get(name) ?? [];
}

/** How a person uses the portal; the browsers of the tests prefer English. */
export interface Preferences {
  colorScheme?: 'light' | 'dark';
  language?: 'en' | 'zh';
}

/**
 * Logs in the way people do: the portal's button, the provider's form, back to the portal. Who has logged in before continues with the
 * same session in a new context, because a login loads four pages; unless that session has ended, as it does when its person logs in again.
 * The page of somebody who continues is empty: each test opens what it needs.
 */
export async function logIn(browser: Browser, name: string, { language, ...options }: Preferences = {}): Promise<Person> {
  const context = await browser.newContext({ baseURL: ready().portalURL, viewport: { width: 1280, height: 860 }, ...options });
  if (language) await context.addInitScript((chosen) => localStorage.setItem('acp-language', chosen), language);
  const page = await context.newPage();
  failOnPageErrors(page, name);
  if (hasLoggedIn(name)) {
    await context.addCookies(sessionOf(name));
    if ((await context.request.get('/api/v1/me')).ok()) return { name, context, page };
  }
  await page.goto('/');
  await page.getByTestId('login-button').click({ timeout: 180_000 }); // a browser that starts while all processors compile
  await fillLogin(page, name, 'demo');
  await expect(page.getByTestId('user-menu')).toBeVisible({ timeout: 180_000 });
  sessions.set(name, await context.cookies(ready().portalURL));
  return { name, context, page };
}

export async function fillLogin(page: Page, name: string, password: string): Promise<void> {
  await page.locator('#username').fill(name);
  await page.locator('#password').fill(password);
  await page.getByRole('button', { name: 'Log in' }).click();
}

/** Whatever the page throws, or the content security policy refuses, fails the test that sees it. */
function failOnPageErrors(page: Page, name: string): void {
  page.on('pageerror', (error) => {
    throw new Error(`${name}'s page threw: ${error.message}`);
  });
  page.on('console', (message) => {
    if (/content security policy/i.test(message.text())) throw new Error(`${name}'s page broke its policy: ${message.text()}`);
  });
}

export interface NewRequest {
  application: string;
  resource: string;
  reason: string;
}

/** Fills the request page, which has to name an approver, and submits it; returns the ticket's id. */
export async function requestAccess({ page }: Person, request: NewRequest, approver = 'Bob Tanaka'): Promise<string> {
  await page.goto(`/requests/new?application=${request.application}&resource=${request.resource}`);
  await page.getByTestId('request-reason').fill(request.reason);
  await expect(page.getByTestId('preview')).toContainText(approver);
  await page.getByTestId('submit-request').click();
  await page.waitForURL(/\/tickets\/T-\d+$/);
  return page.url().split('/').pop() ?? '';
}

/** Opens a form of the request page, fills what is its own, says why, and submits; returns the ticket's id. */
export async function ask({ page }: Person, search: string, reason: string, fill: (page: Page) => Promise<void> = async () => {}): Promise<string> {
  await page.goto(`/requests/new?${search}`);
  await fill(page);
  await page.getByTestId('request-reason').fill(reason);
  await page.getByTestId('submit-request').click();
  await page.waitForURL(/\/tickets\/T-\d+$/);
  return page.url().split('/').pop() ?? '';
}

export async function approve({ page }: Person, ticket: string, comment = ''): Promise<void> {
  await page.goto(`/tickets/${ticket}`);
  if (comment) await page.getByTestId('decision-comment').fill(comment);
  await page.getByTestId('approve-button').click();
  await expect(page.getByTestId('approve-button')).toHaveCount(0);
}

interface Deciding {
  version: number;
  items: { steps: { state: string; approvers: { id: string }[] }[] }[];
}

async function read(reader: Person, ticket: string): Promise<Deciding> {
  const response = await reader.page.request.get(`/api/v1/tickets/${ticket}`);
  expect(response.ok(), await response.text()).toBe(true);
  return (await response.json()) as Deciding;
}

/** The people who may decide the current step of a ticket with one item; none if no step waits. */
export async function nextApprovers(reader: Person, ticket: string): Promise<string[]> {
  const { items } = await read(reader, ticket);
  return items[0]?.steps.find(({ state }) => state === 'current')?.approvers.map(({ id }) => id) ?? [];
}

/**
 * Approves every step of every item of a ticket, each step of an item by a different one of its approvers; returns who they were. The first one
 * decides on the page of the ticket, and the others, whose pages are the same, through the API; `onPages`: everybody on the page.
 */
export async function approveEveryStep(browser: Browser, reader: Person, ticket: string, onPages = false): Promise<string[]> {
  const votes = new Map<number, string[]>();
  for (;;) {
    const { version, items } = await read(reader, ticket);
    const waiting = items.flatMap(({ steps }, position) => {
      const approvers = steps.find(({ state }) => state === 'current')?.approvers.map(({ id }) => id);
      return approvers ? [{ position, approvers }] : [];
    });
    const [first] = waiting;
    if (first === undefined) return [...new Set([...votes.values()].flat())];
    const name = first.approvers.find((id) => !votes.get(first.position)?.includes(id));
    if (name === undefined) throw new Error(`nobody is left for a step of ${ticket}, after ${votes.get(first.position)?.join(', ')}`);
    const voter = await logIn(browser, name);
    // Both decide about all items that wait for this person.
    if (onPages || votes.size === 0) await approve(voter, ticket);
    else {
      const headers = { 'X-ACP-Request': '1', Origin: ready().portalURL };
      const response = await voter.page.request.post(`/api/v1/tickets/${ticket}/decision`, { headers, data: { decision: 'approve', version } });
      const text = await response.text();
      if (response.status() === 409 && text.includes('"stale"')) continue; // the ticket has changed since it was read
      expect(response.status(), text).toBe(200);
    }
    await voter.context.close();
    for (const { position, approvers } of waiting) if (approvers.includes(name)) votes.set(position, [...(votes.get(position) ?? []), name]);
  }
}

export async function revoke({ page }: Person, ticket: string, reason: string): Promise<void> {
  await page.goto(`/tickets/${ticket}`);
  await page.getByTestId('revoke-button').click();
  await page.getByTestId('revoke-reason').fill(reason);
  await page.getByTestId('revoke-confirm').click();
}

export function ticketState(page: Page): Locator {
  return page.getByTestId('ticket-state').first();
}

export async function expectState(page: Page, state: string, timeout = fleetTimeout): Promise<void> {
  await expect(ticketState(page)).toHaveAttribute('data-value', state, { timeout });
}

/** What the flow store says of connections to a resource, straight from the API that the pages read. */
export interface Connection {
  subject: { id?: string };
  port: number;
  cluster: string;
  decision: string;
  verdict: string;
  sid?: string;
  ticket?: string;
  lastSeen: string;
}

export async function connections(person: Person, resource: string): Promise<Connection[]> {
  const response = await person.page.request.get(`/api/v1/resources/${resource}/connections`);
  expect(response.ok(), await response.text()).toBe(true);
  const body = (await response.json()) as { items: Connection[] };
  return body.items;
}

/** Waits until both members have seen such a connection with the dataplane's verdict after the instant. */
export async function expectTraffic(
  person: Person,
  resource: string,
  want: { application: string; port: number; verdict: 'forwarded' | 'dropped' },
  after: Date,
): Promise<void> {
  await expect
    .poll(
      async () => {
        const rows = await connections(person, resource);
        const seen = rows.filter(
          (row) =>
            row.subject.id === want.application &&
            row.port === want.port &&
            row.verdict === want.verdict &&
            new Date(row.lastSeen) > after,
        );
        return [...new Set(seen.map((row) => row.cluster))].sort();
      },
      { timeout: fleetTimeout, message: `${want.application} to ${resource}:${want.port} ${want.verdict} after ${after.toISOString()}` },
    )
    .toEqual(['m1', 'm2']);
}

/** The last instant at which such a connection had the verdict; undefined when it never had. */
export async function lastSeen(person: Person, resource: string, application: string, port: number, verdict: string): Promise<Date | undefined> {
  const rows = await connections(person, resource);
  const times = rows
    .filter((row) => row.subject.id === application && row.port === port && row.verdict === verdict)
    .map((row) => new Date(row.lastSeen).getTime());
  return times.length > 0 ? new Date(Math.max(...times)) : undefined;
}

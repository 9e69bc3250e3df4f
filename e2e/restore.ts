import { expect, type APIRequest, type APIRequestContext, type Browser } from '@playwright/test';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { kube } from './cluster.js';
import { ready } from './fleet.js';
import { fleetTimeout, hasLoggedIn, logIn, sessionOf } from './people.js';
import { writing } from './tickets.js';

/** The kinds of the host cluster whose objects tests create, change and delete, by their plural. Access that tickets grant ends by the tickets. */
const kinds = {
  approvalpolicies: 'ApprovalPolicy',
  organizations: 'Organization',
  resourceclasses: 'ResourceClass',
  subjectclasses: 'SubjectClass',
  externalworkloads: 'ExternalWorkload',
  protectedresources: 'ProtectedResource',
};

interface KubeObject {
  metadata: { name: string; resourceVersion?: string; deletionTimestamp?: string };
  spec: unknown;
}

/** The objects of the host cluster, by the plural of their kind and by name. */
type Objects = Record<string, Record<string, KubeObject>>;

function pathOf(plural: string, name?: string): string {
  return `/apis/acp.io/v1alpha1/${plural}${name === undefined ? '' : `/${name}`}`;
}

async function readObjects(): Promise<Objects> {
  const read = async (plural: string): Promise<[string, Record<string, KubeObject>]> => {
    const { items } = (await kube('host', 'GET', pathOf(plural))) as { items: KubeObject[] };
    return [plural, Object.fromEntries(items.map((each) => [each.metadata.name, each]))];
  };
  return Object.fromEntries(await Promise.all(Object.keys(kinds).map(read)));
}

/**
 * The objects and tickets that existed before the first test, and tickets that cannot be ended; restore does not change them. They are kept in a file,
 * because a test that fails ends its worker, and the next worker continues with the same fleet.
 */
interface Baseline {
  objects: Objects;
  tickets: string[];
}

function baselineFile(): string {
  return join(ready().stateDir, 'e2e-baseline.json');
}

function baseline(): Baseline {
  return JSON.parse(readFileSync(baselineFile(), 'utf8')) as Baseline;
}

function writeBaseline(baseline: Baseline): void {
  writeFileSync(baselineFile(), JSON.stringify(baseline));
}

/** Keeps what the fleet has before its first test, for restore; it does nothing before the other tests. */
export async function keepBaseline(): Promise<void> {
  if (!existsSync(baselineFile())) writeBaseline({ objects: await readObjects(), tickets: [] });
}

/** Makes what could not be restored a part of the baseline. */
async function giveUp(dave: APIRequestContext): Promise<void> {
  const live = (await liveTickets(dave)).map(({ id, state }) => `${id} ${state}`);
  writeBaseline({ objects: await readObjects(), tickets: [...baseline().tickets, ...live] });
}

/**
 * Makes the fleet what it was before its first test, whatever a test left there: withdraws requests, revokes access, ends delegations, and writes
 * objects of the host cluster again that differ. What the portal stores besides, such as notices, reviews and saved views, is left.
 */
export async function restore(browser: Browser, request: APIRequest): Promise<void> {
  const dave = await apiOf(browser, request, 'dave');
  try {
    await deleteAccessRequests();
    await endTickets(browser, dave);
    await endDelegations(browser, dave);
    await restoreObjects();
  } catch (error) {
    // This test reports what cannot be restored; the next ones begin with it.
    console.log(`       the fleet is not as it was before the test: ${String(error).slice(0, 2000)}`);
    await giveUp(dave);
  } finally {
    await dave.dispose();
  }
}

/** Returns the API in the name of a person, without a page unless they have to log in. */
async function apiOf(browser: Browser, request: APIRequest, name: string): Promise<APIRequestContext> {
  const open = () => request.newContext({ baseURL: ready().portalURL, storageState: { cookies: sessionOf(name), origins: [] }, extraHTTPHeaders: writing() });
  const api = await open();
  if ((await api.get('/api/v1/me')).ok()) return api;
  await api.dispose();
  const { context } = await logIn(browser, name);
  await context.close();
  return open();
}

async function read<T>(api: APIRequestContext, path: string): Promise<T> {
  const response = await api.get(`/api/v1${path}`);
  expect(response.ok(), await response.text()).toBe(true);
  return (await response.json()) as T;
}

/** Calls the API in the name of a person who has logged in before. */
async function callAs(browser: Browser, name: string, method: 'POST' | 'DELETE', path: string, data?: unknown): Promise<void> {
  const { context } = await logIn(browser, name);
  const response = await context.request.fetch(`/api/v1${path}`, { method, headers: writing(), data });
  if (!response.ok()) console.log(`       ${name} could not restore the fleet: ${method} ${path}: ${response.status()} ${await response.text()}`);
  await context.close();
}

/** Deletes the requests that are objects, which ends their tickets. */
async function deleteAccessRequests(): Promise<void> {
  const { items } = (await kube('host', 'GET', pathOf('accessrequests'))) as { items: { metadata: { name: string; namespace: string } }[] };
  for (const { metadata } of items) await kube('host', 'DELETE', `/apis/acp.io/v1alpha1/namespaces/${metadata.namespace}/accessrequests/${metadata.name}`);
}

interface Ticket {
  id: string;
  kind: string;
  state: string;
  requester: { id: string };
}

/** The kinds of tickets that are in force until they are revoked; the others are done once. */
const lasting = ['grant', 'extend', 'statement'];

/** The tickets, with their states, of which the end was requested. A request that was refused, such as the revocation of a deny, is not repeated. */
const tried = new Set<string>();

async function liveTickets(dave: APIRequestContext): Promise<Ticket[]> {
  const states = ['pending', 'approved', 'applying', 'effective', 'revoking'].map((state) => `state=${state}`).join('&');
  const left = baseline().tickets;
  const found: Ticket[] = [];
  for (let cursor: string | undefined = ''; cursor !== undefined; ) {
    const list: { items: Ticket[]; nextCursor?: string } = await read(dave, `/tickets?view=all&limit=200&${states}${cursor && `&cursor=${encodeURIComponent(cursor)}`}`);
    found.push(...list.items);
    cursor = list.nextCursor;
  }
  return found.filter(({ id, kind, state }) => (state !== 'effective' || lasting.includes(kind)) && !tried.has(`${id} ${state}`) && !left.includes(`${id} ${state}`));
}

async function endTickets(browser: Browser, dave: APIRequestContext): Promise<void> {
  await expect(async () => {
    const live = await liveTickets(dave);
    for (const { id, kind, state, requester } of live) {
      if (state === 'pending' && hasLoggedIn(requester.id)) {
        tried.add(`${id} ${state}`);
        await callAs(browser, requester.id, 'POST', `/tickets/${id}/withdraw`, { reason: 'End of the test' });
      } else if (state === 'effective' && lasting.includes(kind)) {
        tried.add(`${id} ${state}`);
        await callAs(browser, 'dave', 'POST', `/tickets/${id}/revoke`, { reason: 'End of the test' });
      }
    }
    expect((await liveTickets(dave)).map(({ id, state }) => `${id} ${state}`), 'tickets that have not ended').toEqual([]);
  }).toPass({ timeout: fleetTimeout });
}

async function endDelegations(browser: Browser, dave: APIRequestContext): Promise<void> {
  const { items } = await read<{ items: { id: string; active: boolean; from: { id: string } }[] }>(dave, '/delegations?all=true');
  for (const { id, active, from } of items) {
    if (active && hasLoggedIn(from.id)) await callAs(browser, from.id, 'DELETE', `/delegations/${id}`);
  }
}

/** Sets a protected resource to Observe; it reads it again if the adapter or the portal has written meanwhile. */
async function observe(name: string): Promise<void> {
  await expect(async () => {
    const found = (await kube('host', 'GET', pathOf('protectedresources', name))) as (KubeObject & { spec: { resource: string; mode: string } }) | undefined;
    if (!found || (found.spec.mode === 'Observe' && Object.keys(found.spec).length === 2)) return;
    await kube('host', 'PUT', pathOf('protectedresources', name), { ...found, spec: { resource: found.spec.resource, mode: 'Observe' } });
  }).toPass({ timeout: fleetTimeout });
}

async function restoreObjects(): Promise<void> {
  const wanted = baseline().objects;
  const found = await readObjects();
  for (const [plural, kind] of Object.entries(kinds)) {
    for (const [name, { metadata }] of Object.entries(found[plural] ?? {})) {
      if (wanted[plural]?.[name]) continue;
      // A protected resource can be deleted only from Observe, and is there until the members are rid of its policies.
      if (kind === 'ProtectedResource') await observe(name);
      if (!metadata.deletionTimestamp) await kube('host', 'DELETE', pathOf(plural, name));
      await expect.poll(async () => (await kube('host', 'GET', pathOf(plural, name))) !== undefined, { timeout: fleetTimeout, message: `the host still has ${plural}/${name}` }).toBe(false);
    }
    for (const [name, { spec }] of Object.entries(wanted[plural] ?? {})) {
      const now = found[plural]?.[name];
      const object = { apiVersion: 'acp.io/v1alpha1', kind, spec };
      if (!now) await kube('host', 'POST', pathOf(plural), { ...object, metadata: { name } });
      else if (JSON.stringify(now.spec) !== JSON.stringify(spec)) await kube('host', 'PUT', pathOf(plural, name), { ...object, metadata: now.metadata });
    }
  }
}

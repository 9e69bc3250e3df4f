import { expect } from '@playwright/test';
import { kube } from './cluster.js';
import { ready } from './fleet.js';
import { fleetTimeout, type Person } from './people.js';

const policies = '/apis/acp.io/v1alpha1/approvalpolicies';

/** The headers of the portal's own pages, without which it refuses to write. */
export function writing(): Record<string, string> {
  return { 'X-ACP-Request': '1', Origin: ready().portalURL };
}

/** Requests access through the API, because other tests click through the form; returns the ticket's id. */
export async function submit({ page }: Person, application: string, resource: string, durationSeconds?: number): Promise<string> {
  const data = { reason: 'The workflow is tested', items: [{ application, resource, actions: ['redis:connect'] }], durationSeconds };
  const response = await page.request.post('/api/v1/tickets', { headers: writing(), data });
  expect(response.status(), await response.text()).toBe(201);
  return ((await response.json()) as { id: string }).id;
}

/** Withdraws a pending request in the name of its requester. */
export async function withdraw({ page }: Person, ticket: string): Promise<void> {
  const response = await page.request.post(`/api/v1/tickets/${ticket}/withdraw`, { headers: writing(), data: { reason: 'End of the test' } });
  expect(response.status(), await response.text()).toBe(200);
}

/** Runs the body while a policy defines the steps of the requests of an application for a resource; `more` are further fields of its spec. */
export async function withPolicy(reader: Person, name: string, about: { application: string; resource: string }, steps: unknown[], body: () => Promise<void>, more: Record<string, unknown> = {}): Promise<void> {
  const match = `request.application.id == "${about.application}" && request.resource.id == "${about.resource}"`;
  const has = async () => (await reader.page.request.get(`/api/v1/approval-policies/${name}`)).status() === 200;
  await kube('host', 'POST', policies, { apiVersion: 'acp.io/v1alpha1', kind: 'ApprovalPolicy', metadata: { name }, spec: { priority: 1, match, steps, ...more } });
  try {
    await expect.poll(has, { timeout: fleetTimeout, message: `the portal has the policy ${name}` }).toBe(true);
    await body();
  } finally {
    await kube('host', 'DELETE', `${policies}/${name}`);
    await expect.poll(has, { timeout: fleetTimeout, message: `the portal is rid of the policy ${name}` }).toBe(false);
  }
}

/** The version of a ticket, which a decision names. */
export async function version({ page }: Person, ticket: string): Promise<number> {
  const response = await page.request.get(`/api/v1/tickets/${ticket}`);
  return ((await response.json()) as { version: number }).version;
}

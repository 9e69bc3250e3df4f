import { fleetTimeout, logIn, type Person } from './people.js';
import { expect, test } from './test.js';

interface Evidence {
  value: number;
  enough: boolean;
  parts: { name: string; missing?: string }[];
}
interface Proposal {
  lines: { subject: { id?: string; name: string }; state: string }[];
  unattributed?: unknown[];
}

async function get<T>({ page }: Person, path: string): Promise<T> {
  const response = await page.request.get(`/api/v1/${path}`);
  expect(response.ok(), `${path}: ${await response.text()}`).toBe(true);
  return (await response.json()) as T;
}

test('the playground has weeks to look at: one resource can be closed at once, another says why not', async ({ browser }) => {
  const bob = await logIn(browser, 'bob');
  await test.step('deals-cache has evidence enough, and a proposal names its clients, also the weekly and the rare one', async () => {
    const evidence = await get<Evidence>(bob, 'resources/deals-cache/evidence');
    expect(evidence.enough, JSON.stringify(evidence)).toBe(true);
    const proposal = await get<Proposal>(bob, 'resources/deals-cache/proposal');
    const clients = proposal.lines.filter((line) => line.state !== 'covered').map((line) => line.subject.id);
    expect(clients.sort()).toEqual(['app-206', 'app-503', 'app-602', 'app-888', 'app-889']);
  });
  await test.step('orders-cache has not: who is new, who is not known, and who was there before', async () => {
    const { parts } = await get<Evidence>(bob, 'resources/orders-cache/evidence');
    const lacking = parts.filter((part) => part.missing).map((part) => part.name);
    expect(lacking).toEqual(expect.arrayContaining(['newcomers', 'unattributed', 'long-lived']));
  });
  await test.step('so one may be enforced, and the other only by an administrator with a reason', async () => {
    for (const [resource, problem] of [['deals-cache', undefined], ['orders-cache', 'evidence']] as const) {
      const response = await bob.page.request.post('/api/v1/tickets/preview', {
        headers: { 'X-Acp-Request': '1' },
        data: { kind: 'mode', reason: 'It is time', items: [{ resource, mode: 'Enforce' }] },
      });
      expect(response.ok(), await response.text()).toBe(true);
      const { items } = (await response.json()) as { items: { problem?: { code: string } }[] };
      expect(items[0]?.problem?.code, resource).toBe(problem);
    }
  });
  await test.step('a grant of orders-cache has not been used for weeks', async () => {
    const { items } = await get<{ items: { sid: string }[] }>(bob, 'resources/orders-cache/unused');
    expect(items.map((item) => item.sid)).toContain('refunds-uses-orders-cache');
  });
  await test.step('the dataplanes did what the policies said, also before they had the first ones', async () => {
    const since = new Date(Date.now() - 24 * 3_600_000).toISOString();
    const { items } = await get<{ items: unknown[] }>(bob, `flows?resource=bobs-cluster&disagree=true&since=${since}`);
    expect(items.map((item) => JSON.stringify(item))).toEqual([]); // a line each, so that all are in the report
  });
  await test.step('live flows go on where the history ends', async () => {
    const since = new Date(Date.now() - 14 * 24 * 3_600_000).toISOString();
    await expect
      .poll(
        async () => {
          const { items } = await get<{ items: { subject: { id?: string }; firstSeen: string; lastSeen: string }[] }>(bob, `flows?resource=deals-cache&subject=app-101&since=${since}`);
          return items.filter((item) => Date.now() - Date.parse(item.lastSeen) < 60_000 && Date.parse(item.firstSeen) < Date.now() - 10 * 24 * 3_600_000).length;
        },
        { timeout: fleetTimeout, message: 'the same edge, seen two weeks ago and now' },
      )
      .toBeGreaterThan(0);
  });
  await bob.context.close();
});

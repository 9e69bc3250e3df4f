import { logInAs, lookAt, looks, serious, type Place } from './looks.js';
import { approve, expectState, logIn, revoke, type Person } from './people.js';
import { documentShot, shot } from './shots.js';
import { expect, test } from './test.js';

const places: Place[] = [
  { name: 'traffic', path: '/traffic?window=1h' },
  { name: 'traffic-resources', path: '/traffic?window=1h&level=resource' },
  { name: 'traffic-table', path: '/traffic?window=1h&level=resource&view=table' },
  { name: 'traffic-change', path: '/traffic?window=1h&level=application&enforce=orders-cache' },
  { name: 'traffic-empty', path: '/traffic?window=1h&q=nothing-has-this-name' },
];

interface TrafficMap {
  available: boolean;
  nodes: { name: string; id?: string }[];
  links: { from: number; to: number }[];
}

async function read<T>({ page }: Person, path: string): Promise<T> {
  const response = await page.request.get(`/api/v1${path}`);
  expect(response.ok(), await response.text()).toBe(true);
  return (await response.json()) as T;
}

test('the traffic map: from the picture to one line, its numbers, its flows and a change over it', async ({ browser }) => {
  const { page, context } = await logIn(browser, 'dave');
  await page.goto('/');
  await page.getByTestId('nav-trafficMap').click();
  await expect(page.getByTestId('traffic-picture')).toBeVisible();
  await shot(page, 'traffic-teams');

  await test.step('every line can be read with the keyboard alone', async () => {
    await page.goto('/traffic?window=1h&level=resource');
    await expect(page.getByTestId('traffic-kind-refused')).toBeVisible();
    await documentShot(page, 'traffic-map');
    await page.getByTestId('traffic-picture').focus();
    await page.keyboard.press('Home');
    await expect(page.getByTestId('traffic-card')).toBeVisible();
    const first = await page.getByTestId('traffic-spoken').textContent();
    await page.keyboard.press('ArrowDown');
    await expect(page.getByTestId('traffic-spoken')).not.toHaveText(first ?? '');
    await page.keyboard.press('Enter');
    await expect(page.getByTestId('traffic-panel')).toBeVisible();
    await expect(page).toHaveURL(/from=.*to=/);
    await page.reload();
    await expect(page.getByTestId('traffic-panel')).toBeVisible();
    await shot(page, 'traffic-selected');
    expect(await serious(page)).toEqual([]);
  });

  await test.step('the table has the refused connection, which leads to its flows', async () => {
    await page.goto('/traffic?window=1h&level=resource&resource=bobs-cluster&subject=app-889&view=table');
    await expect(page.getByTestId('traffic-row')).toHaveCount(1);
    await expect(page.getByTestId('traffic-row')).toContainText('not granted');
    await page.getByTestId('traffic-open').click();
    await page.getByTestId('traffic-flows').click();
    await expect(page).toHaveURL(/\/flows\?/);
    await expect(page.getByTestId('flow-table').locator('[data-testid=decision-badge][data-value=default-denied]').first()).toBeVisible();
  });

  await test.step('the same rows can be downloaded', async () => {
    await page.goto('/traffic?window=1h&resource=bobs-cluster');
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByTestId('traffic-csv').click()]);
    expect(download.suggestedFilename()).toMatch(/^traffic-map-.*\.csv$/);
  });

  await test.step('what would be cut if a resource were enforced is said in one sentence, and marked', async () => {
    await page.goto('/traffic?window=1h&level=resource&enforce=orders-cache');
    await expect(page.getByTestId('overlay-sentence')).toContainText(/would be cut/);
    await shot(page, 'traffic-overlay');
    await page.getByTestId('traffic-view').getByText('Table').click();
    await expect(page.getByTestId('traffic-row').filter({ hasText: 'would be cut' }).first()).toBeVisible();
    await page.getByTestId('overlay-remove').click();
    await expect(page.getByTestId('traffic-overlay')).toHaveCount(0);
  });

  await context.close();
});

test('an owner lays the proposal for a resource, a drafted policy and a ticket over the map', async ({ browser }) => {
  const bob = await logIn(browser, 'bob');
  const { page, context } = bob;
  await test.step('the proposal, from the page of the resource', async () => {
    await page.goto('/resources/deals-cache');
    await page.getByTestId('proposal-map').click();
    await expect(page).toHaveURL(/proposal=deals-cache/);
    await expect(page.getByTestId('overlay-sentence')).toContainText(/with the proposed grants: .*would be cut/);
    await shot(page, 'traffic-proposal');
    await page.getByTestId('overlay-remove').click();
  });
  await test.step('a deny as a draft, over the period of the map; a mistake in it is named', async () => {
    await page.goto('/traffic?window=7d&level=resource&resource=deals-cache');
    const { nodes } = await read<TrafficMap>(bob, '/flows/map?resource=deals-cache');
    const [resource, application] = ['deals-cache', 'app-888'].map((id) => nodes.find((node) => node.id === id)?.name);
    const draft = `statements: [{sid: deny, effect: Deny, subjects: ["${application}"], actions: ["redis:connect"], resources: ["${resource}"]}]`;
    // The size of the window at a zoom of 200 %: the button is reached by scrolling.
    await page.setViewportSize({ width: 640, height: 430 });
    await page.getByTestId('overlay-open').click();
    await page.getByTestId('overlay-draft').fill('statements: [{sid: 1}]');
    await page.getByTestId('overlay-draft-show').click();
    await page.setViewportSize({ width: 1280, height: 860 });
    await expect(page.getByTestId('traffic-overlay')).toContainText('cannot be read as an AccessControlPolicy');
    await page.getByTestId('overlay-open').click();
    await page.getByTestId('overlay-draft').fill(draft);
    await page.getByTestId('overlay-draft-show').click();
    await expect(page.getByTestId('overlay-sentence')).toContainText('The drafted policy: ');
    await expect(page.getByTestId('overlay-sentence')).toContainText('the map’s period were replayed');
    await shot(page, 'traffic-draft');
    expect(await serious(page)).toEqual([]);
  });
  await test.step('a ticket that does not exist says so', async () => {
    await page.getByTestId('overlay-open').click();
    await page.getByTestId('overlay-ticket').fill('t-9999');
    await page.getByTestId('overlay-ticket').press('Enter');
    await expect(page.getByTestId('traffic-overlay')).toContainText(/T-9999.*does not exist/);
    await shot(page, 'traffic-no-ticket');
  });
  await context.close();
});

test('an owner lays a ticket over the map before it is decided, and its revocation afterwards', async ({ browser }) => {
  const [alice, bob, carol] = await Promise.all([logIn(browser, 'alice'), logIn(browser, 'bob'), logIn(browser, 'carol')]);
  const { page } = bob;
  const data = { reason: 'Checkout keeps its carts there', items: [{ application: 'app-888', resource: 'bobs-cluster', actions: ['redis:connect'] }] };
  const response = await alice.page.request.post('/api/v1/tickets', { headers: { 'X-Acp-Request': '1' }, data });
  expect(response.status(), await response.text()).toBe(201);
  const { id } = (await response.json()) as { id: string };

  await test.step('the ticket would let in what is refused', async () => {
    await page.goto('/traffic?window=1h&level=resource&resource=bobs-cluster&subject=app-888&view=table');
    await page.getByTestId('overlay-open').click();
    await page.getByTestId('overlay-ticket').fill(id.toLowerCase());
    await page.getByTestId('overlay-ticket').press('Enter');
    await expect(page).toHaveURL(new RegExp(`ticket=${id}`));
    await expect(page.getByTestId('overlay-sentence')).toContainText(/[1-9][0-9]* would be newly allowed/);
    await expect(page.getByTestId('traffic-row').filter({ hasText: 'would be newly allowed' }).first()).toBeVisible();
    await expect(page.getByTestId('overlay-sentence').getByRole('link')).toHaveAttribute('href', `/tickets/${id}`);
    await shot(page, 'traffic-ticket');
    expect(await serious(page)).toEqual([]);
  });
  await approve(carol, id);
  await approve(bob, id);
  await expectState(page, 'effective');

  await test.step('its revocation would cut the same connections', async () => {
    await page.goto(`/traffic?window=1h&level=resource&resource=bobs-cluster&subject=app-888&view=table&ticket=${id}`);
    await page.getByTestId('overlay-which').getByText('Its revocation').click();
    await expect(page).toHaveURL(/change=revoke/);
    await page.reload();
    await expect(page.getByTestId('overlay-sentence')).toContainText(`Revoking ${id}`);
    await expect(page.getByTestId('overlay-sentence')).toContainText(/this 1 link would be cut|these [0-9]+ links would be cut/);
    await expect(page.getByTestId('traffic-row').filter({ hasText: 'would be cut' }).first()).toBeVisible();
    await shot(page, 'traffic-revocation');
    await page.getByTestId('overlay-remove').click();
    await expect(page).not.toHaveURL(/change=|ticket=/);
  });
  await revoke(alice, id, 'End of the test');
  await expectState(alice.page, 'revoked');
  await Promise.all([alice, bob, carol].map(({ context }) => context.close()));
});

test('the traffic map of an owner shows what the owner’s things connect to, and nothing else', async ({ browser }) => {
  const [bob, dave] = await Promise.all([logIn(browser, 'bob'), logIn(browser, 'dave')]);
  const mine = new Set<string>();
  for (const kind of ['resources', 'applications']) for (const { name } of (await read<{ items: { name: string }[] }>(bob, `/${kind}?mine=true&limit=200`)).items) mine.add(name);
  const [own, all] = await Promise.all([read<TrafficMap>(bob, '/flows/map'), read<TrafficMap>(dave, '/flows/map')]);
  expect(own.links.length).toBeGreaterThan(0);
  expect(all.links.length).toBeGreaterThan(own.links.length);
  for (const link of own.links) expect([link.from, link.to].some((end) => mine.has(own.nodes[end]?.name ?? ''))).toBe(true);

  await bob.page.goto('/traffic?window=1h&level=resource');
  await expect(bob.page.getByTestId('traffic-picture')).toBeVisible();
  await expect(bob.page.getByRole('main')).toContainText('what you own');
  await expect(bob.page.getByRole('main').getByRole('link', { name: 'Access map' })).toHaveCount(0);
  await shot(bob.page, 'traffic-owner');
  expect(await serious(bob.page)).toEqual([]);
  await Promise.all([bob.context.close(), dave.context.close()]);
});

for (const look of looks) {
  test(`the traffic map in ${look.language}, ${look.colorScheme}: no serious finding of axe, nothing cut off`, async ({ browser }) => {
    const { page, context } = await logInAs(browser, 'dave', look);
    await lookAt(page, places, look);
    await context.close();
  });
}

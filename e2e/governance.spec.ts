import { ready } from './fleet.js';
import { logInAs, lookAt, looks, serious, settled, type Place } from './looks.js';
import { fillLogin, logIn } from './people.js';
import { documentShot, shot } from './shots.js';
import { expect, test } from './test.js';

const places: Place[] = [
  { name: 'inbox', path: '/inbox' },
  { name: 'undelivered', path: '/inbox/undelivered' },
  { name: 'delegations', path: '/delegations?scope=all' },
  { name: 'workloads', path: '/workloads' },
  { name: 'policies', path: '/policies' },
  { name: 'what-if', path: '/policies/what-if' },
  { name: 'classes', path: '/classes' },
  { name: 'catalog', path: '/catalog' },
  { name: 'entities', path: '/catalog/entities' },
  { name: 'ledger', path: '/ledger' },
  { name: 'profile', path: '/profile' },
  { name: 'terms', path: '/terms' },
  { name: 'device', path: '/device' },
  { name: 'past-access', path: '/resources/bobs-cluster?past=2026-01-01T12:00:00Z' },
];

for (const look of looks) {
  test(`every page of governance in ${look.language}, ${look.colorScheme}: no serious finding of axe, nothing cut off`, async ({ browser }) => {
    const { page, context } = await logInAs(browser, 'dave', look);
    await lookAt(page, places, look);
    await context.close();
  });
}

test('who has no right to it is told so, and nothing is shown', async ({ browser }) => {
  const { page, context } = await logIn(browser, 'alice');
  for (const path of ['/ledger', '/catalog', '/catalog/entities']) {
    await page.goto(path);
    await expect(page.getByTestId('not-yours')).toBeVisible();
  }
  await expect(page.getByTestId('nav-ledger')).toHaveCount(0);
  await expect(page.getByTestId('nav-delegations').first()).toBeVisible();
  await context.close();
});

test('who could reach a resource is answered for an instant, with what the records do not cover', async ({ browser }) => {
  const { page, context } = await logIn(browser, 'dave');
  const now = new Date().toISOString();
  await page.goto(`/resources/bobs-cluster?past=${now}`);
  await expect(page.getByTestId('past-mode')).toBeVisible();
  await expect(page.getByTestId('past').getByTestId('history-gaps')).toHaveCount(0);
  await expect(page.getByTestId('past-row-billing-uses-bobs-cluster').getByTestId('past-use'), 'the demo uses it all the time').toHaveAttribute('data-value', 'used');
  await settled(page);
  await documentShot(page, 'past-access', page.getByTestId('past'));
  const table = await page.request.get((await page.getByTestId('past-csv').getAttribute('href')) ?? '');
  expect(table.status()).toBe(200);
  expect(table.headers()['content-type']).toContain('text/csv');
  expect(await table.text()).toMatch(/^\uFEFF?kind,at,mode,/);

  await page.getByTestId('past-at').fill('2026-01-01T12:00');
  await page.getByTestId('past-show').click();
  await expect(page.getByTestId('past').getByTestId('history-gaps')).toBeVisible();
  await expect(page).toHaveURL(/past=2026-01-01T/);
  await context.close();
});

test('an owner sees when an application could reach a resource, and an auditor its modes in the past', async ({ browser }) => {
  const [bob, grace] = await Promise.all([logIn(browser, 'bob'), logIn(browser, 'grace')]);
  await bob.page.goto('/resources/bobs-cluster');
  await expect(bob.page.getByTestId('periods-choose')).toBeVisible();
  // Sections that arrive late move the list of the select, and a click beside it closes the list.
  await settled(bob.page);
  await expect(async () => {
    await bob.page.getByTestId('periods-application').fill('888');
    await bob.page.getByRole('option', { name: /888/ }).first().click({ timeout: 5_000 });
  }).toPass();
  await expect(bob.page.getByTestId('periods').locator('[data-testid^="period-"]').first()).toBeVisible();
  await expect(bob.page.getByTestId('periods-begin')).toBeVisible();
  const periods = await bob.page.request.get((await bob.page.getByTestId('periods-csv').getAttribute('href')) ?? '');
  expect(periods.headers()['content-type']).toContain('text/csv');
  await shot(bob.page, 'periods-owner');
  await grace.page.goto('/resources/bobs-cluster#modes');
  await expect(grace.page.getByTestId('modes').locator('table, [data-testid="modes-empty"]').first()).toBeVisible();
  await expect(grace.page.getByTestId('modes-begin')).toBeVisible();
  await shot(grace.page, 'modes-auditor');
  expect(await serious(grace.page)).toEqual([]);
  await Promise.all([bob.context.close(), grace.context.close()]);
});

test('a table sorts by the column that is pressed, and the address keeps the order', async ({ browser }) => {
  const { page, context } = await logIn(browser, 'dave');
  await page.goto('/classes');
  const header = page.getByRole('columnheader', { name: /Name/ }).first();
  await header.getByRole('button').click();
  await expect(header).toHaveAttribute('aria-sort', /ascending|descending/);
  await expect(page).toHaveURL(/ResourceClass-sort=/);
  const order = await header.getAttribute('aria-sort');
  await page.reload();
  await expect(page.getByRole('columnheader', { name: /Name/ }).first()).toHaveAttribute('aria-sort', order ?? '');
  await context.close();
});

test('a delegation is made, seen by the one who received it, and ended', async ({ browser }) => {
  const alice = await logIn(browser, 'alice');
  await alice.page.goto('/delegations');
  await alice.page.getByTestId('new-delegation').click();
  await alice.page.getByTestId('delegate-to').fill('bob');
  await alice.page.getByRole('option', { name: /Bob Tanaka/ }).click();
  await alice.page.getByTestId('delegate-reason').fill('On leave.');
  await alice.page.getByTestId('delegate-confirm').click();
  await expect(alice.page.getByTestId('delegations-from-me')).toContainText('Bob Tanaka');

  const bob = await logIn(browser, 'bob');
  await bob.page.goto('/inbox');
  await expect(bob.page.getByTestId('notices')).toContainText('Alice');
  await bob.page.goto('/delegations');
  await expect(bob.page.getByTestId('delegations-to-me').getByTestId('delegation-state')).toHaveAttribute('data-value', 'active');

  await alice.page.locator('[data-testid^="end-"]').first().click();
  await alice.page.getByTestId('end-delegation-confirm').click();
  await expect(alice.page.getByTestId('delegations-from-me').getByTestId('delegation-state')).toHaveAttribute('data-value', 'ended');
  await Promise.all([alice.context.close(), bob.context.close()]);
});

test('the input of a delegation is there again after the login that it needed', async ({ browser }) => {
  const { page, context } = await logIn(browser, 'alice');
  await page.route('**/api/v1/delegations', (route) =>
    route.request().method() === 'POST'
      ? route.fulfill({ status: 403, contentType: 'application/problem+json', json: { type: 'about:blank', title: 'login too old', status: 403, code: 'login-too-old', message: { code: 'access.login-too-old', text: '' } } })
      : route.fallback(),
  );
  await page.goto('/delegations');
  await page.getByTestId('new-delegation').click();
  await page.getByTestId('delegate-to').fill('bob');
  await page.getByRole('option', { name: /Bob Tanaka/ }).click();
  await page.getByTestId('delegate-reason').fill('On leave after all.');
  await page.getByTestId('delegate-confirm').click();
  await page.getByTestId('login-again').click();
  await page.unroute('**/api/v1/delegations');
  await fillLogin(page, 'alice', 'demo');

  await expect(page.getByTestId('dialog-restored')).toBeVisible();
  await expect(page.getByTestId('delegate-reason')).toHaveValue('On leave after all.');
  await page.getByTestId('delegate-form').getByRole('button', { name: 'Cancel' }).click();
  await page.reload();
  await expect(page.getByTestId('new-delegation')).toBeVisible();
  await expect(page.getByTestId('delegate-form')).toHaveCount(0);
  await context.close();
});

test('a token is shown once, works, and does not work any more once it is revoked', async ({ browser, playwright }) => {
  const { page, context } = await logIn(browser, 'alice');
  await page.goto('/profile');
  await page.getByTestId('new-token').click();
  await page.getByTestId('token-name').fill('e2e');
  await page.getByTestId('token-make').click();
  const secret = (await page.getByTestId('token-secret').textContent()) ?? '';
  await page.getByTestId('token-done').click();
  expect(await page.content()).not.toContain(secret);
  const program = await playwright.request.newContext({ baseURL: new URL(page.url()).origin, extraHTTPHeaders: { authorization: `Bearer ${secret}` } });
  expect((await program.get('/api/v1/me')).status()).toBe(200);
  await page.locator('[data-testid="tokens"] [data-testid^="revoke-"]').first().click();
  await page.getByTestId('revoke-token-confirm').click();
  await expect(page.locator('[data-testid="tokens"] [data-testid^="revoke-"]')).toHaveCount(0);
  expect((await program.get('/api/v1/me')).status()).toBe(401);
  await program.dispose();
  await context.close();
});

test('a command line is let in by its user, who sees what it asks for', async ({ browser, playwright }) => {
  const { page, context } = await logIn(browser, 'alice');
  const program = await playwright.request.newContext({ baseURL: ready().portalURL });
  const begun = (await (await program.post('/api/v1/auth/device', { data: { client: 'kubectl-acp on e2e' } })).json()) as { deviceCode: string; verificationUriComplete: string };
  await page.goto(begun.verificationUriComplete);
  await page.getByTestId('device-look').click();
  await expect(page.getByTestId('device-asked')).toContainText('kubectl-acp on e2e');
  expect(await serious(page)).toEqual([]);
  await shot(page, 'page-device-asked');
  await page.getByTestId('device-agree').click();
  await expect(page.getByTestId('device-done')).toBeVisible();
  const answer = await program.post('/api/v1/auth/device/token', { data: { deviceCode: begun.deviceCode } });
  expect(answer.status(), await answer.text()).toBe(200);
  await program.dispose();
  await context.close();
});

test('the filters of each page with a filtered table can be kept under a name', async ({ browser }) => {
  const { page, context } = await logIn(browser, 'dave');
  const queries = {
    applications: 'scope=all&q=check', resources: 'scope=all&q=cache', rollout: 'stage=observe', access: 'level=resource', 'access-policies': 'q=orders', reviews: 'sort=due', ledger: 'action=ticket.approved',
  };
  for (const [path, query] of Object.entries(queries)) {
    await test.step(path, async () => {
      await page.goto(`/${path}?${query}`);
      await page.getByTestId('saved-open').click();
      await page.getByTestId('saved-name').fill(`Mine of ${path}`);
      await page.getByTestId('saved-save').click();
      await expect(page.getByTestId('saved-view')).toHaveCount(1);
      await page.goto(`/${path}`);
      await page.getByTestId('saved-open').click();
      await page.getByRole('link', { name: `Mine of ${path}` }).click();
      for (const part of query.split('&')) await expect(page).toHaveURL(new RegExp(part.replace('.', '\\.')));
      await page.getByTestId('saved-open').click();
      await page.getByRole('button', { name: `Delete “Mine of ${path}”` }).click();
      await expect(page.getByTestId('saved-view')).toHaveCount(0);
      await page.keyboard.press('Escape');
    });
  }
  await context.close();
});

test('the ledger is intact, and a what-if names who would decide', async ({ browser }) => {
  const { page, context } = await logIn(browser, 'dave');
  await page.goto('/ledger');
  await page.getByTestId('verify-ledger').click();
  await expect(page.getByTestId('verification')).toHaveAttribute('data-value', 'intact');
  await shot(page, 'page-ledger-verified');
  await documentShot(page, 'ledger');
  await page.goto('/policies/what-if');
  await page.getByTestId('what-if-as').fill('alice');
  await page.getByRole('option', { name: /Alice/ }).click();
  await page.getByTestId('select-application').fill('888');
  await page.getByRole('option', { name: /888/ }).click();
  await page.getByTestId('select-resource').fill('bobs-cluster');
  await page.getByRole('option', { name: /bobs-cluster/ }).click();
  await expect(page.getByTestId('preview')).toContainText('Bob Tanaka');
  await shot(page, 'page-what-if-answer');
  await documentShot(page, 'what-if');
  await context.close();
});

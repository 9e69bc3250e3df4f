import { readFile } from 'node:fs/promises';
import { logInAs, lookAt, looks, overflow, serious, settled } from './looks.js';
import { approve, approveEveryStep, ask, expectState, fleetTimeout, logIn, requestAccess } from './people.js';
import { documentShot, shot } from './shots.js';
import { expect, test, type Page } from './test.js';

interface Line {
  line: number;
  ticket: string;
  state: string;
  outcome?: string;
}

/** The lines of a review that the reader may see; none while they are being collected. */
async function linesOf(page: Page, review: string): Promise<Line[]> {
  const response = await page.request.get(`/api/v1/reviews/${review}/lines?limit=200`);
  return response.ok() ? ((await response.json()) as { items: Line[] }).items : [];
}

test('an access review begins, its reviewer revokes an access, and the auditor reads the report', async ({ browser }) => {
  const [alice, bob, carol, dave] = await Promise.all(['alice', 'bob', 'carol', 'dave'].map((name) => logIn(browser, name)));
  if (!alice || !bob || !carol || !dave) throw new Error('somebody is not logged in');
  const ticket = await requestAccess(alice, { application: 'app-888', resource: 'bobs-cluster', reason: 'To be reviewed' });
  await approve(carol, ticket);
  await approve(bob, ticket);
  await alice.page.goto(`/tickets/${ticket}`);
  await expectState(alice.page, 'effective');

  await dave.page.goto('/reviews/new');
  await dave.page.getByTestId('create-review').click();
  await expect(dave.page.getByText('Give the review a name.')).toBeVisible();
  await dave.page.getByTestId('review-name').fill('Caches of this quarter');
  await expect(dave.page.getByTestId('preview-accesses')).toBeVisible();
  expect(await serious(dave.page)).toEqual([]);
  await dave.page.getByTestId('create-review').click();
  await dave.page.waitForURL(/\/reviews\/R-\d+$/);
  const review = dave.page.url().split('/').pop() ?? '';

  const lines = () => linesOf(bob.page, review);
  await expect.poll(async () => (await lines()).some((each) => each.ticket === ticket), { timeout: fleetTimeout }).toBe(true);
  const line = (await lines()).find((each) => each.ticket === ticket)?.line ?? 0;
  await bob.page.goto(`/reviews/${review}?mine=true`);
  expect(await serious(bob.page)).toEqual([]);
  await documentShot(bob.page, 'review');
  await bob.page.getByTestId(`revoke-${line}`).click();
  await bob.page.getByTestId('decide-confirm').click();
  await expect(bob.page.getByText('Say why.', { exact: true })).toBeVisible();
  await bob.page.getByTestId('decide-comment').fill('Not needed any more');
  await bob.page.getByTestId('decide-confirm').click();
  await expect(bob.page.getByTestId('decide-dialog')).toHaveCount(0);
  await expect.poll(async () => (await lines()).find((each) => each.line === line)?.outcome, { timeout: fleetTimeout }).toBe('revoked');
  await alice.page.goto(`/tickets/${ticket}`);
  await expectState(alice.page, 'revoked');

  await dave.page.goto(`/reviews/${review}`);
  await dave.page.getByTestId('end-review').click();
  await dave.page.getByTestId('end-review-reason').fill('The rest stays as it is');
  await dave.page.getByTestId('end-review-confirm').click();
  const grace = await logIn(browser, 'grace');
  await grace.page.goto(`/reviews/${review}/report`);
  await expect(grace.page.getByTestId(`report-${line}`)).toContainText('Not needed any more');
  expect(await serious(grace.page)).toEqual([]);
  await Promise.all([alice, bob, carol, dave, grace].map(({ context }) => context.close()));
});

test('owners keep, shorten and revoke grants and a statement, alone and together, and the auditor saves the report', async ({ browser }) => {
  const [alice, bob, dave, frank] = await Promise.all(['alice', 'bob', 'dave', 'frank'].map((name) => logIn(browser, name)));
  if (!alice || !bob || !dave || !frank) throw new Error('somebody is not logged in');
  const range = 'trnv1:rsc:trip-com:net:cidr:10.77.0.0/16';
  const tickets = await test.step('three grants and a statement come into force', async () => {
    const requested = [];
    for (const resource of ['bobs-cluster', 'orders-cache', 'deals-cache']) requested.push(await requestAccess(alice, { application: 'app-676', resource, reason: 'Reports' }));
    requested.push(
      await ask(alice, 'kind=statement', 'The reports also run in the office', async (page) => {
        for (const [field, values] of [['subjects', ['app-676', range]], ['actions', ['redis:connect']], ['resources', ['bobs-cluster']]] as const) {
          for (const value of values) {
            await page.getByTestId(`statement-${field}`).fill(value);
            await page.getByTestId(`statement-${field}`).press('Enter');
          }
        }
      }),
    );
    for (const ticket of requested) await approveEveryStep(browser, dave, ticket);
    return requested;
  });
  const [grant, orders, deals, statement] = tickets;
  if (!grant || !orders || !deals || !statement) throw new Error('a ticket is missing');

  const review = await test.step('the security team begins a review whose third rule is a group', async () => {
    const { page } = dave;
    await page.goto('/reviews/new');
    await page.getByTestId('review-name').fill('Reports and offices');
    await page.getByTestId('remove-rule-1').click();
    await page.getByTestId('add-rule').click();
    await page.getByTestId('add-rule').click();
    await page.getByTestId('review-rule-1').click();
    await page.getByRole('option', { name: 'Leader of the application’s team' }).click();
    await page.getByTestId('create-review').click();
    await expect(page.getByText('Select a group.')).toBeVisible();
    await page.getByTestId('review-group-2').fill('storage');
    await page.getByRole('option', { name: /storage/ }).click();
    await expect(page.getByTestId('review-preview').getByTestId('preview-accesses')).toBeVisible();
    await expect(page.getByTestId('review-preview').getByTestId('statement').first()).toBeVisible();
    expect(await serious(page)).toEqual([]);
    await shot(page, 'review-rules');
    await page.getByTestId('create-review').click();
    await page.waitForURL(/\/reviews\/R-\d+$/);
    await expect(page.locator('main')).toContainText('Group Storage');
    return page.url().split('/').pop() ?? '';
  });
  await expect.poll(async () => (await linesOf(bob.page, review)).filter(({ ticket }) => tickets.includes(ticket)).length, { timeout: fleetTimeout }).toBe(4);
  const numbers = new Map((await linesOf(bob.page, review)).map(({ ticket, line }) => [ticket, line]));
  const lineOf = (ticket: string) => numbers.get(ticket) ?? 0;
  const outcomeOf = (ticket: string) => async () => (await linesOf(bob.page, review)).find((each) => each.ticket === ticket)?.outcome;

  await test.step('an owner keeps a grant, and gives the statement an earlier end', async () => {
    const { page } = bob;
    await page.goto(`/reviews/${review}?mine=true`);
    const row = page.getByTestId(`line-${lineOf(statement)}`);
    await expect(row.getByTestId('statement')).toContainText('10.77.0.0/16');
    await expect(row).toContainText(statement);
    expect(await serious(page)).toEqual([]);
    await shot(page, 'review-statement');
    await page.getByTestId(`keep-${lineOf(grant)}`).click();
    await page.getByTestId('decide-confirm').click();
    await expect.poll(outcomeOf(grant)).toBe('kept');
    await page.getByTestId(`shorten-${lineOf(statement)}`).click();
    await page.getByTestId('decide-days').fill('7');
    await page.getByTestId('decide-comment').fill('The office moves');
    await page.getByTestId('decide-confirm').click();
    await expect(page.getByTestId('decide-dialog')).toHaveCount(0);
    await expect.poll(outcomeOf(statement), { timeout: fleetTimeout }).toBe('shortened');
    await alice.page.goto(`/tickets/${statement}`);
    await expect(alice.page.locator('main')).toContainText('The office moves');
    const ticket = (await (await alice.page.request.get(`/api/v1/tickets/${statement}`)).json()) as { items: { expiresAt?: string }[] };
    const days = (new Date(ticket.items[0]?.expiresAt ?? 0).getTime() - Date.now()) / 86_400_000;
    expect(days).toBeGreaterThan(6);
    expect(days).toBeLessThan(7.1);
  });

  await test.step('another owner of the team revokes two at once', async () => {
    const { page } = frank;
    await page.goto(`/reviews/${review}`);
    await expect(page.getByTestId(`line-${lineOf(grant)}`), 'the owner of another resource has no line of it').toHaveCount(0);
    for (const ticket of [orders, deals]) await page.getByTestId(`choose-${lineOf(ticket)}`).click();
    await expect(page.getByTestId('selection')).toContainText('2 selected');
    await page.getByTestId('bulk-revoke').click();
    await page.getByTestId('decide-comment').fill('The caches are moved');
    await shot(page, 'review-bulk');
    await page.getByTestId('decide-confirm').click();
    await expect(page.getByTestId('decide-dialog')).toHaveCount(0);
    for (const ticket of [orders, deals]) {
      await expect.poll(outcomeOf(ticket), { timeout: fleetTimeout }).toBe('revoked');
      await alice.page.goto(`/tickets/${ticket}`);
      await expectState(alice.page, 'revoked');
    }
  });

  await dave.page.goto(`/reviews/${review}`);
  await dave.page.getByTestId('end-review').click();
  await dave.page.getByTestId('end-review-reason').fill('The rest stays as it is');
  await dave.page.getByTestId('end-review-confirm').click();
  await expect(dave.page.getByTestId('review-state')).toHaveAttribute('data-value', 'closed', { timeout: fleetTimeout });

  await test.step('the auditor reads, prints and saves the report, in Chinese and dark', async () => {
    const { page, context } = await logInAs(browser, 'grace', { language: 'zh', colorScheme: 'dark' });
    await page.goto(`/reviews/${review}/report`);
    await settled(page);
    await expect(page.getByTestId(`report-${lineOf(statement)}`)).toContainText('10.77.0.0/16');
    await expect(page.getByTestId(`report-${lineOf(orders)}`)).toContainText('The caches are moved');
    expect(await serious(page)).toEqual([]);
    await shot(page, 'review-report');
    const saved = page.waitForEvent('download');
    await page.getByTestId('report-csv').click();
    const text = await readFile(await (await saved).path(), 'utf8');
    const row = (ticket: string) => text.split('\n').find((each) => each.includes(`,${ticket},`)) ?? '';
    expect(row(statement)).toContain(range);
    expect(row(statement)).toContain('statement');
    expect(row(statement)).toContain('The office moves');
    expect(row(deals)).toContain('revoked');
    expect(row(grant)).toContain('kept');
    await page.emulateMedia({ media: 'print' });
    await expect(page.locator('aside')).toBeHidden();
    expect(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), 'paper is white').toBe('rgb(255, 255, 255)');
    expect(await serious(page)).toEqual([]);
    await expect(page.getByTestId('report-csv')).toBeHidden();
    await shot(page, 'review-report-print');
    await page.setViewportSize({ width: 794, height: 1123 }); // A4
    expect(await overflow(page), 'the printed page is cut off').toBeLessThanOrEqual(0);
    await context.close();
  });
  await Promise.all([alice, bob, dave, frank].map(({ context }) => context.close()));
});

for (const look of looks) {
  test(`the pages of access reviews in ${look.language}, ${look.colorScheme}: no serious finding of axe, nothing cut off`, async ({ browser }) => {
    const { page, context } = await logInAs(browser, 'dave', look);
    await lookAt(page, [{ name: 'reviews', path: '/reviews' }, { name: 'new-review', path: '/reviews/new' }], look);
    await context.close();
  });
}

import { expect, test } from '@playwright/test';
import { logInAs, lookAt, looks, serious } from './looks.js';
import { approve, expectState, fleetTimeout, logIn, requestAccess } from './people.js';
import { documentShot } from './shots.js';

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

  const lines = async () => {
    const response = await bob.page.request.get(`/api/v1/reviews/${review}/lines`);
    if (!response.ok()) return []; // bob sees the review when its lines are collected
    return ((await response.json()) as { items: { line: number; ticket: string; outcome?: string }[] }).items;
  };
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

for (const look of looks) {
  test(`the pages of access reviews in ${look.language}, ${look.colorScheme}: no serious finding of axe, nothing cut off`, async ({ browser }) => {
    const { page, context } = await logInAs(browser, 'dave', look);
    await lookAt(page, [{ name: 'reviews', path: '/reviews' }, { name: 'new-review', path: '/reviews/new' }], look);
    await context.close();
  });
}

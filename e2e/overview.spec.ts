import { logInAs, lookAt, looks, serious, settled, type Place } from './looks.js';
import { fleetTimeout, logIn } from './people.js';
import { documentShot, shot } from './shots.js';
import { expect, test } from './test.js';

const places: Place[] = [
  { name: 'fleet', path: '/fleet' },
  { name: 'member', path: '/fleet/m1' },
  { name: 'access-map', path: '/access?level=resource' },
  { name: 'access-path', path: '/access?from=app-777&to=bobs-cluster' },
  { name: 'access-policies', path: '/access-policies' },
  { name: 'access-policy', path: '/access-policies/billing' },
  { name: 'findings', path: '/findings' },
  { name: 'downgrade', path: '/downgrade' },
  { name: 'organizations', path: '/organizations' },
];

for (const look of looks) {
  test(`the administrator's pages in ${look.language}, ${look.colorScheme}: no serious finding of axe, nothing cut off`, async ({ browser }) => {
    const { page, context } = await logInAs(browser, 'dave', look);
    await lookAt(page, places, look);
    await context.close();
  });
}

test('the whole on one screen: members, who reaches what, and from each to the rest', async ({ browser }) => {
  const { page, context } = await logIn(browser, 'grace');
  await test.step('each member stands as it does', async () => {
    await page.goto('/');
    await page.getByTestId('nav-fleet').click();
    for (const member of ['m1', 'm2']) await expect(page.getByTestId(`member-${member}`)).toContainText('ready');
    await settled(page);
    await documentShot(page, 'fleet');
    await page.getByTestId('member-m1').getByRole('link', { name: 'm1' }).click();
    await expect(page.getByTestId('member-state')).toHaveAttribute('data-value', 'Ready');
  });

  await test.step('a name in the picture narrows the table, and the address says so', async () => {
    await page.getByTestId('nav-accessMap').click();
    await expect(page.getByTestId('graph-picture')).toBeVisible();
    await settled(page);
    await documentShot(page, 'access-map');
    await page.getByTestId('access-level').getByText('Resource').click();
    await page.getByTestId('graph-find').click();
    await page.getByTestId('graph-find').fill('billing');
    await expect(page.getByRole('option', { name: /billing/i }).first()).toBeVisible();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await expect(page).toHaveURL(/subject=/);
    await expect(page.getByTestId('access-focus')).toBeVisible();
    await expect(page.getByTestId('access-table')).toContainText('billing-uses-bobs-cluster');
    const row = page.getByTestId('access-table').getByRole('row').filter({ hasText: 'billing-uses-bobs-cluster' });
    await expect(row.getByTestId('last-use')).toHaveAttribute('data-value', 'used');
    await page.getByRole('button', { name: 'Last used' }).click();
    await expect(page).toHaveURL(/sort=used/);
    await expect(row).toBeVisible();
    await shot(page, 'access-map-last-use');
    await page.reload();
    await expect(page.getByTestId('access-focus')).toBeVisible();
    await page.getByTestId('access-unfocus').click();
    await expect(page).not.toHaveURL(/subject=/);
  });

  await test.step('how one reaches another, as the dataplane decides it', async () => {
    await page.goto('/access?from=app-777&to=bobs-cluster');
    await expect(page.getByTestId('path-decisions').getByTestId('decision-badge').first()).toHaveAttribute('data-value', 'allowed');
    await page.goto('/access?from=app-889&to=bobs-cluster');
    await expect(page.getByTestId('path-decisions').getByTestId('decision-badge').first()).toHaveAttribute('data-value', 'default-denied');
    await expect(page.getByTestId('path-none')).toBeVisible();
    await page.goto('/access?from=app-777&to=bobs-cluster');
    await expect(page.getByTestId('path-edges').first().getByTestId('last-use').first()).toHaveAttribute('data-value', 'used');
  });

  await test.step('what needs attention', async () => {
    await page.getByTestId('nav-findings').click();
    await settled(page);
    await documentShot(page, 'findings');
  });

  await test.step('a policy leads to its statements', async () => {
    await page.goto('/access-policies?q=billing-uses-bobs-cluster');
    await page.getByRole('link', { name: 'billing', exact: true }).click();
    const row = page.getByTestId('statement-billing-uses-bobs-cluster');
    await expect(row.getByTestId('last-use')).toHaveAttribute('data-value', 'used');
    await row.getByTestId('last-use').getByRole('link').click();
    await expect(page.getByTestId('flow-row').first()).toBeVisible();
    await page.getByTestId('flow-open').first().click();
    await page.getByTestId('flow-policy').click();
    await expect(page).toHaveURL('/access-policies/billing');
  });
  await context.close();
});

test('a class is opened at once, seen by an auditor, and closed again', async ({ browser }) => {
  const dave = await logIn(browser, 'dave');
  const grace = await logIn(browser, 'grace');
  await dave.page.goto('/downgrade?scope=class&class=redis');
  await expect(dave.page.getByTestId('extent-enforced')).not.toHaveText('0');
  const enforced = await dave.page.getByTestId('extent-enforced').innerText();
  await dave.page.getByTestId('downgrade-begin').click();
  await dave.page.getByTestId('downgrade-reason').fill('A rehearsal');
  await dave.page.getByTestId('downgrade-typed').fill('redis');
  await shot(dave.page, 'downgrade-dialog');
  await dave.page.getByTestId('downgrade-confirm').click();
  await expect(dave.page.getByTestId('downgrade-dialog')).toHaveCount(0);
  await expect(dave.page.getByTestId('extent-open')).toHaveText(enforced);
  await expect(dave.page.getByTestId('active-downgrades'), 'every member was read back').toContainText(`${enforced} of ${enforced} open`, { timeout: fleetTimeout });
  await shot(dave.page, 'downgrade-active');
  expect(await serious(dave.page)).toEqual([]);

  await grace.page.goto('/downgrade');
  await expect(grace.page.getByTestId('look-only')).toBeVisible();
  await expect(grace.page.getByTestId('active-downgrades')).toContainText('A rehearsal');
  await expect(grace.page.getByTestId('resume-redis')).toHaveCount(0);

  await dave.page.getByTestId('resume-redis').click();
  await dave.page.getByTestId('resume-reason').fill('It is over');
  await dave.page.getByTestId('resume-confirm').click();
  await expect(dave.page.getByTestId('no-downgrade')).toBeVisible();
  await expect(dave.page.getByTestId('extent-open')).toHaveText('0');
  await dave.page.goto('/resources/bobs-cluster');
  await expect(dave.page.getByTestId('resource-mode'), 'the other tests find it enforced').toHaveAttribute('data-value', 'Enforce');
  await dave.context.close();
  await grace.context.close();
});

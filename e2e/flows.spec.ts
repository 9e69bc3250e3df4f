import { readFile } from 'node:fs/promises';
import { logInAs, lookAt, looks, serious, type Place } from './looks.js';
import { approve, expectState, fleetTimeout, logIn } from './people.js';
import { documentShot, shot } from './shots.js';
import { expect, test } from './test.js';

const cache = 'deals-cache';
const places: Place[] = [
  { name: 'flows', path: '/flows' },
  { name: 'disagreements', path: '/flows?disagree=true' },
  { name: 'single-flows', path: '/flows?tab=raw' },
  { name: 'losses', path: '/flows?tab=losses&window=14d' },
  { name: 'rollout', path: '/rollout' },
  { name: 'unused', path: '/unused' },
  { name: 'resource-in-audit', path: `/resources/${cache}` },
];

test('the explorer: filters in the address, from a flow to who approved it, what is missing', async ({ browser }) => {
  const { page, context } = await logIn(browser, 'dave');
  await page.goto('/flows?resource=bobs-cluster&window=1h');
  await expect(page.getByTestId('flow-table')).toBeVisible();
  await expect(page.getByTestId('flow-chart')).toBeVisible();

  await test.step('a total narrows to its rows, and the address says so', async () => {
    await page.getByTestId('total-default-denied').click();
    await expect(page).toHaveURL(/decision=default-denied/);
    await expect(page.getByTestId('flow-row').first()).toBeVisible();
    await expect(page.getByTestId('flow-table').locator('[data-testid=decision-badge]:not([data-value=default-denied])')).toHaveCount(0);
    await page.reload();
    await expect(page.getByTestId('total-default-denied')).toHaveAttribute('aria-pressed', 'true');
    await shot(page, 'flows-explorer');
    await documentShot(page, 'flows');
  });

  await test.step('filters are kept under a name', async () => {
    await page.getByTestId('saved-open').click();
    await page.getByTestId('saved-name').fill('Refused at Bob’s');
    await page.getByTestId('saved-save').click();
    await expect(page.getByRole('link', { name: 'Refused at Bob’s' })).toBeVisible();
    await page.keyboard.press('Escape');
    await page.goto('/flows');
    await page.getByTestId('saved-open').click();
    await page.getByRole('link', { name: 'Refused at Bob’s' }).click();
    await expect(page).toHaveURL(/decision=default-denied/);
  });

  await test.step('a saved view is shared by its link; another person opens and keeps it, until the sharing ends', async () => {
    await page.goto('/flows');
    await page.getByTestId('saved-open').click();
    const row = page.getByTestId('saved-view').filter({ hasText: 'Refused at Bob’s' });
    await row.getByTestId('saved-copy').click();
    await expect(row.getByTestId('saved-shared')).toBeVisible();
    const link = (await row.getByTestId('saved-shared').getAttribute('href')) ?? '';
    expect(link).toMatch(/^\/views\/[A-Z2-7]{26}$/);
    await shot(page, 'flows-saved-shared');
    expect(await serious(page)).toEqual([]);

    const bob = await logIn(browser, 'bob');
    await bob.page.goto(link);
    await expect(bob.page).toHaveURL(/\/flows\?.*decision=default-denied/);
    await expect(bob.page.getByTestId('shared-view')).toContainText('“Refused at Bob’s”, shared by Dave Okafor');
    await shot(bob.page, 'flows-shared-view');
    expect(await serious(bob.page)).toEqual([]);
    await bob.page.getByTestId('shared-keep').click();
    await expect(bob.page.getByTestId('shared-keep')).toHaveCount(0);
    await bob.page.goto('/flows');
    await bob.page.getByTestId('saved-open').click();
    await expect(bob.page.getByRole('link', { name: 'Refused at Bob’s' })).toBeVisible();

    await row.getByTestId('saved-unshare').click();
    await expect(row.getByTestId('saved-shared')).toHaveCount(0);
    await bob.page.goto(link);
    await expect(bob.page.getByTestId('shared-view-missing')).toBeVisible();
    await shot(bob.page, 'flows-shared-missing');
    await bob.context.close();
  });

  await test.step('a row opens the statement that decided, with the keyboard alone', async () => {
    await page.goto('/flows?resource=bobs-cluster&subject=app-777&decision=allowed&window=1h');
    await page.getByTestId('flow-open').first().focus();
    await page.keyboard.press('Enter');
    await expect(page.getByTestId('chain-statement')).toContainText('billing-uses-bobs-cluster');
    await expect(page).toHaveURL(/row=/);
    await shot(page, 'flows-drawer');
    expect(await serious(page)).toEqual([]);
    await page.goto('/flows?resource=bobs-cluster&subject=app-889&decision=default-denied&window=1h');
    await page.getByTestId('flow-open').first().click();
    await expect(page.getByTestId('chain-statement')).toContainText('No statement allows it');
    await page.getByTestId('narrow-raw').click();
    await expect(page.getByTestId('raw-row').first()).toBeVisible();
  });

  await test.step('what is missing, by day and member', async () => {
    await page.goto('/flows?window=14d');
    await page.getByTestId('loss-banner').getByRole('link').click();
    await expect(page.getByTestId('coverage')).toContainText('m1');
    await expect(page.getByTestId('loss-row').first()).toBeVisible();
    await shot(page, 'flows-losses');
  });

  await context.close();
});

test('the last use of an access leads to its connections, and a table is saved with the rows of all pages', async ({ browser }) => {
  const { page, context } = await logIn(browser, 'dave');

  await test.step('from an access to its connections, and from there to the statement', async () => {
    await page.goto('/resources/bobs-cluster');
    const row = page.getByTestId('access-row-billing-uses-bobs-cluster');
    await expect(row.getByRole('link').filter({ has: page.locator('time') })).toHaveAttribute('href', /subject=app-777&resource=bobs-cluster/);
    await row.scrollIntoViewIfNeeded();
    await shot(page, 'access-last-use');
    await row.getByRole('link').filter({ has: page.locator('time') }).click();
    await expect(page.getByTestId('flow-row').first()).toContainText('allowed', { ignoreCase: true });
  });

  await test.step('the resources, of which the page shows the first ones', async () => {
    await page.goto('/resources?scope=all');
    const rows = page.getByTestId(/^resource-row-/);
    await expect(page.getByTestId('load-more')).toBeVisible();
    const shown = await rows.count();
    const [file] = await Promise.all([page.waitForEvent('download'), page.getByTestId('csv').click()]);
    expect(file.suggestedFilename()).toBe('resources.csv');
    await expect(page.getByTestId('load-more')).toHaveCount(0);
    const lines = (await readFile(await file.path(), 'utf8')).trimEnd().split('\r\n');
    expect(lines[0]).toBe('\uFEFFid,name,title,description,class,environment,sensitivity,mode,members,owners,refused in 24 hours');
    expect(lines.length - 1).toBeGreaterThan(shown);
    expect(lines.length - 1).toBe(await rows.count());
    await shot(page, 'table-download');
  });

  await context.close();
});

for (const look of looks) {
  test(`the pages of flows in ${look.language}, ${look.colorScheme}: no serious finding of axe, nothing cut off`, async ({ browser }) => {
    const { page, context } = await logInAs(browser, 'dave', look);
    await lookAt(page, places, look);
    await context.close();
  });
}

test('closing a resource: who was seen may stay, their owners are told, it is enforced, and opened for an hour', async ({ browser }) => {
  const [bob, frank] = await Promise.all([logIn(browser, 'bob'), logIn(browser, 'frank')]);
  const { page } = bob;

  const adopted = await test.step('Bob chooses from the proposal, and Frank agrees', async () => {
    await page.goto(`/resources/${cache}`);
    await expect(page.getByTestId('evidence-score')).toBeVisible();
    await page.getByTestId('choose-all').check();
    await shot(page, 'closing-1-proposal');
    await page.getByTestId('adopt').click();
    await page.getByTestId('adopt-reason').fill('They use it every day');
    await expect(page.getByTestId('adopt-dialog')).toContainText('Frank');
    await page.getByTestId('adopt-confirm').click();
    await page.waitForURL(/\/tickets\/T-\d+$/);
    const ticket = page.url().split('/').pop() ?? '';
    await frank.page.goto(`/tickets/${ticket}`);
    await expect(frank.page.getByTestId('adopt-note')).toBeVisible();
    await expect(frank.page.getByTestId('ticket-impact')).toBeVisible();
    await shot(frank.page, 'closing-2-approval');
    await approve(frank, ticket);
    await expectState(page, 'effective');
    return ticket;
  });

  await test.step('the board shows what it lacks; the owners of the clients are told', async () => {
    await page.goto('/rollout');
    await expect(page.getByTestId('column-refine').getByTestId(`card-${cache}`)).toBeVisible();
    await page.getByTestId(`select-${cache}`).check();
    await page.getByTestId('bulk-announce').click();
    await page.getByTestId('announce-message').fill('It closes today. Ask now if you still need it.');
    await page.getByTestId('announce-confirm').click();
    await expect(page.getByTestId(`result-${cache}`)).toHaveAttribute('data-value', 'ok');
    await page.getByTestId('results-close').click();
    await expect(page.getByTestId('column-announced').getByTestId(`card-${cache}`)).toBeVisible();
    await shot(page, 'closing-3-announced');
    await documentShot(page, 'rollout-board');
  });

  await test.step('it is enforced: the request says who would be cut off, and Frank agrees', async () => {
    await page.getByTestId(`select-${cache}`).check();
    await page.getByTestId('bulk-advance').click();
    await page.getByTestId('advance-enforce').check();
    await expect(page.getByTestId('impact-short')).toBeVisible();
    await page.getByTestId('advance-reason').fill('Everybody who was seen is allowed');
    await shot(page, 'closing-4-advance');
    await page.getByTestId('advance-confirm').click();
    await expect(page.getByTestId(`result-${cache}`)).toHaveAttribute('data-value', 'ok');
    const ticket = (await page.getByTestId(`result-${cache}`).getByRole('link').textContent()) ?? '';
    await frank.page.goto(`/tickets/${ticket}`);
    await frank.page.getByTestId('tab-impact').click();
    await expect(frank.page.getByTestId('impact-denied')).toBeVisible();
    await shot(frank.page, 'closing-5-impact');
    await frank.page.getByTestId('approve-button').click();
    await expectState(frank.page, 'effective');
    await page.goto('/rollout');
    await expect(page.getByTestId('column-enforce').getByTestId(`card-${cache}`)).toBeVisible();
  });

  await test.step('for an hour everything passes, and it is said who wanted it so; then it is ended', async () => {
    await page.goto(`/resources/${cache}`);
    await expect(page.getByTestId('resource-mode')).toHaveAttribute('data-value', 'Enforce');
    await page.getByTestId('audit-begin').click();
    await page.getByTestId('audit-reason').fill('A job is cut off');
    await page.getByTestId('audit-confirm').click();
    await expect(page.getByTestId('temporary-audit')).toContainText('A job is cut off');
    await expect(page.getByTestId('temporary-audit')).toContainText('Bob');
    await expect(page.getByTestId('resource-mode')).toHaveAttribute('data-value', 'Audit');
    await shot(page, 'closing-6-audit');
    await page.getByTestId('audit-end').click();
    await page.getByTestId('audit-end-reason').fill('The job is fixed');
    await page.getByTestId('audit-end-confirm').click();
    await expect(page.getByTestId('temporary-audit')).toHaveCount(0);
    await expect(page.getByTestId('resource-mode')).toHaveAttribute('data-value', 'Enforce');
  });

  await test.step('what was adopted stands among the grants, with the reason', async () => {
    await expect(page.getByTestId('access-table')).toContainText(adopted);
    await expect(page.getByTestId('access-table').getByTestId('reason').filter({ hasText: 'They use it every day' }).first()).toBeVisible();
  });

  let connections = '';
  await test.step('from an item of its ticket to the connections, and from one of them back to the ticket', async () => {
    await page.goto(`/tickets/${adopted}`);
    const flows = page.getByTestId(/^(item-flows-0|ticket-flows)$/);
    await flows.scrollIntoViewIfNeeded();
    await shot(page, 'ticket-items-flows');
    await flows.click();
    await expect(page).toHaveURL(new RegExp(`/flows\\?subject=.*resource=${cache}&action=`));
    await expect(page.getByTestId('flow-row').first()).toBeVisible();
    connections = `${page.url()}&decision=allowed`;
    await page.goto(connections);
    await expect(async () => {
      await page.reload();
      await expect(page.getByTestId('flow-row').first()).toBeVisible({ timeout: 5_000 });
    }, 'the statement of the ticket decides connections').toPass({ timeout: fleetTimeout });
    await page.getByTestId('flow-open').first().click();
    await expect(page.getByTestId('flow-statement'), 'an owner may not see the pages of policies').toHaveCount(0);
    await page.getByTestId('chain-ticket').getByRole('link', { name: adopted }).click();
    await expect(page).toHaveURL(`/tickets/${adopted}`);
  });

  await test.step('for the security team also to the statement and its policy, which say when it was used and why it is there', async () => {
    const dave = await logIn(browser, 'dave');
    await dave.page.goto(connections); // of this application alone: others may have connected later
    await dave.page.getByTestId('flow-open').first().click();
    await shot(dave.page, 'flow-drawer-links');
    expect(await serious(dave.page)).toEqual([]);
    await dave.page.getByTestId('flow-statement').click();
    await expect(dave.page).toHaveURL(/\/access-policies\/.*\?sid=t-/);
    const row = dave.page.getByTestId(/^statement-t-/);
    await expect(row).toHaveCount(1);
    await expect(row.getByTestId('last-use')).toHaveAttribute('data-value', 'used');
    await expect(row.getByTestId('reason')).toHaveText('They use it every day');
    await shot(dave.page, 'policy-statement');
    await row.getByRole('link', { name: adopted, exact: true }).click();
    await dave.page.getByTestId(/^(item-flows-0|ticket-flows)$/).click();
    await expect(dave.page.getByTestId('flow-row').first()).toBeVisible();
    await dave.context.close();
  });
});

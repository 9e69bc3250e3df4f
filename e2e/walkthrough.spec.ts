import { serious } from './looks.js';
import { approve, expectState, expectTraffic, logIn } from './people.js';
import { documentShot, shot } from './shots.js';
import { expect, test } from './test.js';

const database = 'orders-db';

/** The clicks of docs/walkthrough.md: each begins where the one before ended, and no address is typed. */
test('a newcomer takes a resource from Observe to Enforce by what the portal says', async ({ browser }) => {
  const [bob, frank, farid, dave, nadia] = await Promise.all(['bob', 'frank', 'farid', 'dave', 'nadia'].map((name) => logIn(browser, name)));
  if (!bob || !frank || !farid || !dave || !nadia) throw new Error('not everybody is there');
  const { page } = bob;
  const ticket = () => page.url().split('/').pop() ?? '';

  await test.step('Home shows what their resources need next, and leads to the board', async () => {
    await page.goto('/');
    await page.getByTestId('nav-home').click();
    await expect(page.getByTestId('closing').getByRole('listitem').first()).toBeVisible();
    await page.getByTestId('closing').getByRole('link', { name: 'Rollout' }).click();
    await page.getByTestId('column-observe').getByTestId(`card-${database}`).getByTestId('card-hint').getByRole('link').click();
    await expect(page.getByTestId('rollout-way').locator('[aria-current=step]')).toHaveAttribute('data-value', 'observe');
    await shot(page, 'walk-1-observe');
  });

  const audit = await test.step('they request Audit, and see who decides before they submit it', async () => {
    await page.getByTestId('next-advance').click();
    await expect(page.getByTestId('advance-dialog').getByTestId('preview-step-owner')).toContainText('Frank Duarte');
    await page.getByTestId('advance-reason').fill('We close our databases one by one');
    await shot(page, 'walk-2-ask');
    expect(await serious(page)).toEqual([]);
    await page.getByTestId('advance-confirm').click();
    await page.getByTestId('results-open').click();
    await expectState(page, 'pending');
    return ticket();
  });

  await test.step('meanwhile the page of the resource says that it waits', async () => {
    await page.getByTestId('nav-rollout').click();
    await page.getByTestId(`card-${database}`).getByRole('link', { name: 'Orders', exact: true }).click();
    await expect(page.getByTestId('next-waits')).toContainText(audit);
    await expect(page.getByTestId('next-advance')).toHaveCount(0);
    await page.getByTestId('next-waits').getByRole('link').click();
  });

  await test.step('two agree, and the ticket leads on to the next step', async () => {
    await approve(frank, audit);
    await approve(dave, audit);
    await expectState(page, 'effective');
    await page.getByTestId('next-step-of').click();
    await expect(page.getByTestId('rollout-way').locator('[aria-current=step]')).toHaveAttribute('data-value', 'refine');
  });

  const adopted = await test.step('who was seen may stay, for as long as the approval policy allows', async () => {
    await page.getByTestId('next-look').click();
    await page.getByTestId('choose-all').check();
    await page.getByTestId('adopt').click();
    await expect(page.getByTestId('adopt-dialog')).toContainText('at most 180 days');
    await page.getByTestId('adopt-dialog').getByText('90 days').click();
    await expect(page.getByTestId('adopt-dialog').getByTestId('preview-step-security')).toContainText('Nadia Haddad');
    await page.getByTestId('adopt-reason').fill('They use it every day');
    await shot(page, 'walk-3-adopt');
    await page.getByTestId('adopt-confirm').click();
    await page.waitForURL(/\/tickets\/T-\d+$/);
    return ticket();
  });

  await test.step('four agree, each for one step; who has agreed is not named for another one', async () => {
    await approve(frank, adopted);
    await expect(page.getByTestId('timeline').getByText('Farid Haddad').first()).toBeVisible();
    await expect(page.getByTestId('timeline').getByTestId('person-frank'), 'as leader, and not again as owner').toHaveCount(1);
    for (const person of [farid, dave, nadia]) await approve(person, adopted);
    await expectState(page, 'effective');
    await page.getByTestId('next-step-of').click();
  });

  await test.step('the owners of the clients are told', async () => {
    await page.getByTestId('next-announce').click();
    await page.getByTestId('announce-message').fill('Orders is closed today. Ask now if you still need it.');
    await page.getByTestId('announce-confirm').click();
    await page.getByTestId('results-close').click();
    await expect(page.getByTestId('rollout-way').locator('[aria-current=step]')).toHaveAttribute('data-value', 'announced');
  });

  await test.step('the replay says that nobody would be cut off; it is enforced', async () => {
    await page.getByTestId('next-advance').click();
    await expect(page.getByTestId('replayed-mode')).toContainText('Cuts off no client that was seen');
    await page.getByTestId('advance-reason').fill('Everybody who was seen is allowed');
    await shot(page, 'walk-4-enforce');
    await documentShot(page, 'rollout');
    await page.getByTestId('advance-confirm').click();
    await page.getByTestId('results-open').click();
    await page.waitForURL(/\/tickets\/T-\d+$/);
    await expectState(page, 'pending');
    const enforced = ticket();
    await approve(frank, enforced);
    await approve(dave, enforced);
    await expectState(page, 'effective');
    await page.getByTestId('next-step-of').click();
    await expect(page.getByTestId('resource-mode')).toHaveAttribute('data-value', 'Enforce');
    await expect(page.getByTestId('rollout-way').locator('[aria-current=step]')).toHaveAttribute('data-value', 'enforce');
    await shot(page, 'walk-5-enforced');
  });

  await test.step('and its clients go on', async () => {
    await expectTraffic(bob, database, { application: 'app-888', port: 3306, verdict: 'forwarded' }, new Date());
  });
  for (const { context } of [bob, frank, farid, dave, nadia]) await context.close();
});

import { logIn } from './people.js';
import { shot } from './shots.js';
import { expect, test } from './test.js';

const cache = 'orders-cache';
const why = 'The scanner reads orders, it cannot wait';

test('what is not known well enough is not enforced, but by an administrator, and the ledger says why', async ({ browser }) => {
  const bob = await logIn(browser, 'bob');
  const frank = await logIn(browser, 'frank');
  const dave = await logIn(browser, 'dave');

  await test.step('its page says how far it is, what is missing, and what is next', async () => {
    const { page } = bob;
    await page.goto(`/resources/${cache}`);
    await expect(page.getByTestId('rollout-way').locator('[aria-current=step]')).toHaveAttribute('data-value', 'initial');
    await expect(page.getByTestId('next-hint')).toHaveAttribute('data-value', 'review');
    await page.getByTestId('next-look').click();
    await expect(page).toHaveURL(/#proposal$/);
    await expect(page.getByTestId('evidence-enough')).toHaveAttribute('data-value', 'missing');
    await expect(page.getByTestId('evidence-enough')).toContainText('a part has no points');
    await shot(page, 'refused-1-resource');
  });

  await test.step('its owner asks all the same, and is told what is missing', async () => {
    const { page } = bob;
    await page.goto(`/rollout?q=${cache}`);
    await page.getByTestId(`select-${cache}`).check();
    await page.getByTestId('bulk-advance').click();
    await page.getByTestId('advance-enforce').check();
    await expect(page.getByTestId('advance-lacking')).toContainText('Orders cache');
    await expect(page.getByTestId('override-check')).toHaveCount(0);
    await expect(page.getByTestId('short-denied')).toBeVisible();
    await page.getByTestId('advance-reason').fill('It is time');
    await shot(page, 'refused-2-owner');
    await page.getByTestId('advance-confirm').click();
    await expect(page.getByTestId(`result-${cache}`)).not.toHaveAttribute('data-value', 'ok');
    await expect(page.getByTestId(`result-${cache}`)).toContainText('has a part without any point');
  });

  const ticket = await test.step('an administrator overrides it, with a reason of its own', async () => {
    const { page } = dave;
    await page.goto(`/rollout?q=${cache}`);
    await page.getByTestId(`select-${cache}`).check();
    await page.getByTestId('bulk-advance').click();
    await page.getByTestId('advance-enforce').check();
    await page.getByTestId('override-check').check();
    await page.getByTestId('override-reason').fill(why);
    await page.getByTestId('advance-reason').fill('It is time');
    await shot(page, 'refused-3-override');
    await page.getByTestId('advance-confirm').click();
    await expect(page.getByTestId(`result-${cache}`)).toHaveAttribute('data-value', 'ok');
    return (await page.getByTestId(`result-${cache}`).getByRole('link').textContent()) ?? '';
  });

  await test.step('who decides reads the reason, and may still say no', async () => {
    const { page } = frank;
    await page.goto(`/tickets/${ticket}`);
    await expect(page.locator('main')).toContainText(why);
    await page.getByTestId('decision-comment').fill('Register the machine first');
    await page.getByTestId('reject-button').click();
    await expect(page.getByTestId('ticket-state').first()).toHaveAttribute('data-value', 'rejected');
    await shot(page, 'refused-4-ticket');
  });

  await test.step('the ledger has who, why, and what was known', async () => {
    const { page } = dave;
    await page.goto(`/ledger?object=${ticket}`);
    await page.getByTestId(/^line-\d+$/).last().click();
    await expect(page.getByTestId('ledger-line')).toContainText(why);
    await expect(page.getByTestId('ledger-line')).toContainText('a part without any point');
    await shot(page, 'refused-5-ledger');
  });

  await test.step('what is not onboarded yet says whom Audit would report, and whom Enforce would cut off', async () => {
    const { page } = bob;
    await page.goto('/resources/orders-db');
    await page.getByTestId('next-advance').click();
    await expect(page.getByTestId('replayed-onboard').getByTestId('short-reported')).toContainText('Checkout (888)');
    await page.getByTestId('advance-enforce').check();
    await expect(page.getByTestId('replayed-onboard').getByTestId('short-denied')).toContainText('Checkout (888)');
    await shot(page, 'refused-6-onboard');
  });

  for (const { context } of [bob, frank, dave]) await context.close();
});

import { logInAs, looks, overflow, serious, settled } from './looks.js';
import { logIn, type Person } from './people.js';
import { shot } from './shots.js';
import { expect, test } from './test.js';

interface Line {
  subject: { id?: string; title: string };
  owners?: { kind: 'person' | 'group'; id: string }[];
  newSinceReview?: boolean;
  canNotify?: boolean;
}

const path = '/resources/orders-cache';
const week = 7 * 24 * 3_600_000;

async function lines({ page }: Person): Promise<Line[]> {
  const response = await page.request.get(`/api/v1${path}/proposal`);
  expect(response.ok(), await response.text()).toBe(true);
  return ((await response.json()) as { lines: Line[] }).lines;
}

/** Records that the clients were reviewed a week ago, which only the API can. */
async function reviewedAWeekAgo({ page }: Person): Promise<void> {
  const response = await page.request.put(`/api/v1${path}/proposal/review`, {
    headers: { 'X-Acp-Request': '1' },
    data: { reviewed: true, until: new Date(Date.now() - week).toISOString() },
  });
  expect(response.ok(), await response.text()).toBe(true);
}

test('an owner reviews what is new, tells the owner of an unwanted client, and nothing is new afterwards', async ({ browser }) => {
  const bob = await logIn(browser, 'bob');
  await reviewedAWeekAgo(bob);
  const unwanted = (await lines(bob)).find((line) => line.newSinceReview && line.canNotify && line.owners?.some(({ kind, id }) => kind === 'person' && id !== 'bob'));
  const owner = unwanted?.owners?.find(({ kind, id }) => kind === 'person' && id !== 'bob')?.id;
  if (!unwanted?.subject.id || !owner) throw new Error('orders-cache has no new client with an owner');

  await test.step('the new client is marked, and can be shown alone', async () => {
    await bob.page.goto(`${path}#proposal`);
    await settled(bob.page);
    const table = bob.page.getByTestId('proposal-table').first();
    await expect(table.getByTestId('new-since-review').first()).toBeVisible();
    await bob.page.getByTestId('only-new').focus();
    await bob.page.keyboard.press('Space');
    await expect(table.getByTestId('proposal-line').filter({ hasNot: bob.page.getByTestId('new-since-review') })).toHaveCount(0);
  });

  await test.step('its owner is told why it is not wanted', async () => {
    await bob.page.getByTestId(`notify-${unwanted.subject.id}`).first().focus();
    await bob.page.keyboard.press('Enter');
    await bob.page.getByTestId('client-notice-reason').fill('We do not know this program');
    await bob.page.getByTestId('client-notice-confirm').click();
    await expect(bob.page.getByTestId('client-notice').first()).toContainText('Bob');
    await expect(bob.page.getByTestId(`notify-${unwanted.subject.id}`)).toHaveCount(0);
  });

  await test.step('who owns the application finds the notice in the inbox', async () => {
    const person = await logIn(browser, owner);
    await expect
      .poll(async () => (await (await person.page.request.get('/api/v1/me/inbox')).text()).includes('We do not know this program'), { timeout: 60_000 })
      .toBe(true);
    await person.page.goto('/inbox');
    await settled(person.page);
    await expect(person.page.getByText('does not want to grant this access').first()).toBeVisible();
    await person.context.close();
  });

  await test.step('after a review with a date, nothing is new', async () => {
    await bob.page.getByTestId('mark-reviewed').click();
    const next = new Date(Date.now() + 3 * week).toISOString().slice(0, 16);
    await bob.page.getByTestId('next-review').fill(next);
    await bob.page.getByTestId('reviewed-confirm').click();
    await expect(bob.page.getByTestId('proposal-nothing-new')).toBeVisible();
    await expect(bob.page.getByTestId('proposal-review')).toContainText('Next review');
    await bob.page.getByTestId('only-new').click();
    await expect(bob.page.getByTestId('new-since-review')).toHaveCount(0);
  });
  await bob.context.close();
});

for (const look of looks) {
  test(`the proposal with a review, in ${look.language} and ${look.colorScheme}`, async ({ browser }) => {
    const bob = await logInAs(browser, 'bob', look);
    await reviewedAWeekAgo(bob);
    for (const width of [1280, 390]) {
      await bob.page.setViewportSize({ width, height: 860 });
      await bob.page.goto(`${path}#proposal`);
      await settled(bob.page);
      await expect(bob.page.getByTestId('proposal-review')).toBeVisible();
      expect.soft(await overflow(bob.page), `scrolls sideways at ${width}`).toBeLessThanOrEqual(0);
      await shot(bob.page, `refine-${look.language}-${look.colorScheme}${width === 390 ? '-390' : ''}`);
    }
    await bob.page.setViewportSize({ width: 1280, height: 860 });
    expect.soft(await serious(bob.page)).toEqual([]);
    await bob.page.getByTestId('mark-reviewed').click();
    await expect(bob.page.getByTestId('reviewed-dialog')).toBeVisible();
    expect.soft(await serious(bob.page), 'dialog').toEqual([]);
    await shot(bob.page, `refine-dialog-${look.language}-${look.colorScheme}`);
    await bob.context.close();
  });
}

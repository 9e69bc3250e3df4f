import { logInAs, looks, overflow, serious, settled } from './looks.js';
import { approve, ask, fleetTimeout, logIn, nextApprovers, revoke } from './people.js';
import { documentShot, shot } from './shots.js';
import { expect, test, type Page } from './test.js';

/** Adds a resource with an action to the form of an access package, by the keyboard. */
async function addResource(page: Page, position: number, title: string, action: string): Promise<void> {
  await page.getByTestId(`package-resource-${position}`).fill(title);
  await page.getByRole('option', { name: `${title} redis` }).click(); // not its staging
  await page.getByTestId(`package-actions-${position}`).focus(); // it has no size
  await page.keyboard.press('ArrowDown');
  await page.getByRole('option', { name: action }).click();
  await page.keyboard.press('Escape');
}

test('a version of an access package is given to existing holders, if its approvers decide so, and what it gave is taken back', async ({ browser }) => {
  const [alice, bob, carol, frank, nora, pavel] = await Promise.all([
    logIn(browser, 'alice'),
    logIn(browser, 'bob'),
    logIn(browser, 'carol'),
    logIn(browser, 'frank'),
    logIn(browser, 'nora'),
    logIn(browser, 'pavel'),
  ]);

  await test.step('Bob publishes a package of his team, which his leader and the owner of the resource approve', async () => {
    const ticket = await ask(bob, 'kind=package', 'What every booking needs', async (page) => {
      await page.getByTestId('package-name').fill('journeys');
      await page.getByTestId('package-title').fill('Journeys');
      await page.getByTestId('package-team').click();
      await page.getByRole('option', { name: 'Storage' }).click();
      await addResource(page, 0, 'Flight cache', 'redis:connect');
      await expect(page.getByTestId('preview')).toContainText('Nora Lindgren');
      await expect(page.getByTestId('package-reach-give')).toHaveCount(0); // nobody holds it
    });
    await approve(frank, ticket);
    await approve(nora, ticket);
  });

  await test.step('Alice requests it for an application', async () => {
    await expect.poll(async () => (await alice.page.request.get('/api/v1/packages/journeys')).status(), { timeout: fleetTimeout }).toBe(200);
    const ticket = await ask(alice, 'package=journeys', 'The new checkout', async (page) => {
      await page.getByTestId('package-application').click();
      await page.getByRole('option', { name: 'Checkout (888)' }).click();
      await expect(page.getByTestId('preview')).toContainText('Nora Lindgren');
    });
    await approve(carol, ticket);
    await approve(nora, ticket);
    await bob.page.goto('/packages/journeys');
    await expect(bob.page.getByTestId('holder-app-888')).toBeVisible({ timeout: fleetTimeout });
  });

  const second = await test.step('Bob requests a version with a further resource, which existing holders are given', async () => {
    return ask(bob, 'kind=package&name=journeys', 'Seats, too', async (page) => {
      await page.getByTestId('package-add-part').click();
      await addResource(page, 1, 'Seat locks', 'redis:connect');
      await page.getByTestId('package-reach-keep').focus();
      await page.keyboard.press('ArrowDown');
      await expect(page.getByTestId('package-reach-give')).toBeChecked();
      await expect(page.getByTestId('preview')).toContainText('Pavel');
      await shot(page, 'packages-form');
    });
  });

  await test.step('the approvers see which application gets what', async () => {
    await frank.page.goto(`/tickets/${second}`); // the sentence is for those who decide now
    await expect(frank.page.locator('main')).toContainText('1 application that holds the package is given it');
    await expect(frank.page.getByTestId('facts-packaged').getByRole('listitem').filter({ hasText: 'Seat locks' })).toContainText('added');
    await expect(frank.page.getByTestId('facts-holders')).toContainText('Checkout (888)');
    await expect(frank.page.getByTestId('facts-holders')).toContainText('gets Seat locks');
    await shot(frank.page, 'packages-decision');
    await approve(frank, second);
    await approve(nora, second);
    await approve(pavel, second);
  });

  await test.step('the holder gets the access without a further decision, and nothing else changes', async () => {
    await bob.page.goto('/packages/journeys');
    await expect(bob.page.getByTestId('version-2')).toContainText('were given the version · 1 application · 1 done', { timeout: fleetTimeout });
    await expect(bob.page.getByTestId('version-1')).toContainText('keep what they have');
    await expect(bob.page.getByTestId('update-app-888')).toContainText('Done');
    await documentShot(bob.page, 'package');
    const link = bob.page.getByTestId('update-app-888').getByRole('link', { name: /^T-\d+$/ });
    const given = (await link.textContent()) ?? '';
    await alice.page.goto(`/tickets/${given}`);
    await expect(alice.page.locator('main')).toContainText(second);
    await shot(alice.page, 'packages-given');
    await bob.page.goto('/packages/journeys');
    await expect(bob.page.getByTestId('holder-app-888')).toContainText('2', { timeout: fleetTimeout });
  });

  for (const look of looks) {
    await test.step(`the update of holders in ${look.language}, ${look.colorScheme}: no serious finding of axe, nothing cut off`, async () => {
      const { page, context } = await logInAs(browser, 'bob', look);
      const places = [
        { name: 'page', path: '/packages/journeys', shows: 'package-update' },
        { name: 'form', path: '/requests/new?kind=package&name=journeys', shows: 'package-reach-give' },
      ];
      for (const { name, path, shows } of places) {
        for (const width of [1280, 390]) {
          await page.setViewportSize({ width, height: 1000 });
          await page.goto(path);
          await settled(page);
          await expect(page.getByTestId(shows)).toBeAttached();
          expect.soft(await serious(page), `${name} at ${width}`).toEqual([]);
          expect.soft(await overflow(page), `${name} at ${width}`).toBeLessThanOrEqual(0);
          await shot(page, `packages-${name}-${look.language}-${look.colorScheme}-${width}`);
        }
      }
      await context.close();
    });
  }

  await test.step('what the package gave is taken back, and the package is archived', async () => {
    const response = await alice.page.request.get('/api/v1/packages/journeys/holders');
    const { items } = (await response.json()) as { items: { tickets: string[] }[] };
    for (const ticket of items.flatMap(({ tickets }) => tickets)) {
      await alice.page.goto(`/tickets/${ticket}`);
      await alice.page.getByTestId('revoke-button').first().click();
      await alice.page.getByTestId('revoke-reason').fill('End of the test');
      await alice.page.getByTestId('revoke-confirm').click();
      await expect(alice.page.getByTestId('revoke-confirm')).toHaveCount(0);
    }
    await bob.page.goto('/packages/journeys');
    await bob.page.getByTestId('archive-package').click();
    await bob.page.getByTestId('archive-confirm').click();
    await expect(bob.page.getByTestId('package-archived')).toBeVisible();
  });
});

test('with the chain of the publisher, the team of the package decides in the place of the owners', async ({ browser }) => {
  const [alice, bob, carol, frank, lucia] = await Promise.all([logIn(browser, 'alice'), logIn(browser, 'bob'), logIn(browser, 'carol'), logIn(browser, 'frank'), logIn(browser, 'lucia')]);
  const version = await ask(bob, 'kind=package', 'Maps for every page', async (page) => {
    await page.getByTestId('package-name').fill('maps');
    await page.getByTestId('package-title').fill('Maps');
    await page.getByTestId('package-team').click();
    await page.getByRole('option', { name: 'Storage' }).click();
    await page.getByTestId('package-chain-publisher').check();
    await addResource(page, 0, 'Map cache', 'redis:connect');
    await expect(page.getByTestId('preview')).toContainText('Lucía Fernández'); // the owner agrees to the version
  });
  await approve(frank, version);
  await approve(lucia, version);
  await expect.poll(async () => (await alice.page.request.get('/api/v1/packages/maps')).status(), { timeout: fleetTimeout }).toBe(200);
  await alice.page.goto('/packages/maps');
  await expect(alice.page.getByTestId('package-chain')).toContainText('Storage');

  const ticket = await ask(alice, 'package=maps', 'The checkout shows a map', async (page) => {
    await page.getByTestId('package-application').click();
    await page.getByRole('option', { name: 'Checkout (888)' }).click();
    await expect(page.getByTestId('preview')).toContainText('Bob Tanaka');
    await expect(page.getByTestId('preview')).not.toContainText('Lucía Fernández');
  });
  await approve(carol, ticket); // her leader
  expect(await nextApprovers(bob, ticket)).toContain('bob');
  expect(await nextApprovers(bob, ticket)).not.toContain('lucia');
  await approve(bob, ticket);
  await test.step('the list of holders has the reason, and when the access was last used', async () => {
    await bob.page.goto('/packages/maps');
    await expect(bob.page.getByTestId('holder-app-888')).toContainText('The checkout shows a map', { timeout: fleetTimeout });
    await expect(bob.page.getByTestId('holder-app-888').getByTestId('last-use')).not.toHaveAttribute('data-value', 'loading');
    await shot(bob.page, 'packages-publisher');
    expect(await serious(bob.page)).toEqual([]);
  });
  await revoke(alice, ticket, 'End of the test');
  await expect(alice.page.getByTestId('revoke-confirm')).toHaveCount(0);
  await bob.page.getByTestId('archive-package').click();
  await bob.page.getByTestId('archive-confirm').click();
  await expect(bob.page.getByTestId('package-archived')).toBeVisible();
  await Promise.all([alice, bob, carol, frank, lucia].map(({ context }) => context.close()));
});

import { logInAs, lookAt, looks, overflow, serious, settled, type Place } from './looks.js';
import { expectState, requestAccess } from './people.js';
import { shot } from './shots.js';
import { expect, test } from './test.js';

const places: Place[] = [
  { name: 'home', path: '/' },
  { name: 'applications', path: '/applications' },
  { name: 'application', path: '/applications/app-888' },
  { name: 'resources', path: '/resources' },
  { name: 'resource', path: '/resources/bobs-cluster' },
  { name: 'requests', path: '/requests' },
  { name: 'request', path: '/requests/new?application=app-888&resource=bobs-cluster' },
  { name: 'basket', path: '/requests/new?application=app-888&resource=bobs-cluster&resource=orders-cache' },
  { name: 'mode', path: '/requests/new?kind=mode&resource=cart-cache&mode=Enforce' },
  { name: 'class', path: '/requests/new?kind=class&object=ResourceClass&name=redis' },
  { name: 'filters', path: '/requests?view=all&expiring=14' },
  { name: 'approvals', path: '/approvals' },
  { name: 'packages', path: '/packages' },
  { name: 'package-form', path: '/requests/new?kind=package' },
];

for (const look of looks) {
  const { language, colorScheme } = look;
  test(`every page in ${language}, ${colorScheme}: no serious finding of axe, nothing cut off`, async ({ browser }) => {
    const alice = await logInAs(browser, 'alice', look);
    const { page } = alice;
    const ticket = await requestAccess(alice, { application: 'app-888', resource: 'bobs-cluster', reason: `To look at it, ${language}, ${colorScheme}` });
    await lookAt(page, [...places, { name: 'ticket', path: `/tickets/${ticket}` }], look);
    await test.step('the change of the ticket', async () => {
      await page.getByTestId('tab-change').click();
      await expect(page.getByTestId('diff-object').first()).toBeVisible();
      expect(await overflow(page), 'the diff scrolls sideways at 390').toBeLessThanOrEqual(0);
      await shot(page, `page-change-${language}-${colorScheme}-390`);
      await page.setViewportSize({ width: 1280, height: 860 });
      expect(await serious(page), 'the diff at 1280').toEqual([]);
      // This is the size of a window of 1280 pixels at a zoom of 200 %.
      await page.setViewportSize({ width: 640, height: 430 });
      expect(await overflow(page), 'the diff scrolls sideways at 200 %').toBeLessThanOrEqual(0);
    });
    await page.setViewportSize({ width: 1280, height: 860 });
    await page.getByTestId('withdraw-button').click();
    await page.getByTestId('withdraw-reason').fill('Seen');
    await page.getByTestId('withdraw-confirm').click();
    await expectState(page, 'withdrawn');
    await alice.context.close();
  });
}

for (const look of looks) {
  test(`the index of a long page leads to its sections, in ${look.language}, ${look.colorScheme}`, async ({ browser }) => {
    const bob = await logInAs(browser, 'bob', look);
    const { page } = bob;
    await page.goto('/resources/bobs-cluster');
    await settled(page);
    const index = page.getByTestId('section-index');
    for (const width of [1280, 1680]) {
      await page.setViewportSize({ width, height: 860 });
      // Unused grants are in the middle of the page, tickets at its end.
      for (const anchor of ['unused', 'tickets']) {
        const link = index.locator(`a[href$="#${anchor}"]`);
        await link.focus();
        await page.keyboard.press('Enter');
        await expect(link).toHaveAttribute('aria-current', 'location');
        const heading = page.locator(`#${anchor} h2`);
        await expect(heading).toBeFocused();
        await expect(heading).toBeInViewport({ ratio: 1 });
      }
      await page.evaluate(() => window.scrollTo(0, 0));
      await expect(index.locator('[aria-current]')).toHaveAttribute('href', /#next-step$/);
      expect(await serious(page), `at ${width}`).toEqual([]);
      expect(await overflow(page), `scrolls sideways at ${width}`).toBeLessThanOrEqual(0);
    }
    await page.setViewportSize({ width: 390, height: 800 });
    await expect(index).toBeHidden();
    await bob.context.close();
  });
}

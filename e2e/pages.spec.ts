import { AxeBuilder } from '@axe-core/playwright';
import { expect, test, type Page } from '@playwright/test';
import { expectState, logIn, requestAccess } from './people.js';
import { shot } from './shots.js';

const pages: { name: string; path: string }[] = [
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
];

for (const colorScheme of ['light', 'dark'] as const) {
  for (const language of ['en', 'zh'] as const) {
    test(`every page in ${language}, ${colorScheme}: no serious finding of axe, nothing cut off`, async ({ browser }) => {
      const alice = await logIn(browser, 'alice', { colorScheme });
      if (language === 'zh') {
        await alice.page.getByTestId('language-menu').click();
        await alice.page.getByTestId('language-zh').click();
        await expect(alice.page.locator('html')).toHaveAttribute('lang', /zh/);
      }
      const ticket = await requestAccess(alice, { application: 'app-888', resource: 'bobs-cluster', reason: `To look at it, ${language}, ${colorScheme}` });
      for (const { name, path } of [...pages, { name: 'ticket', path: `/tickets/${ticket}` }]) {
        await alice.page.setViewportSize({ width: 1280, height: 860 });
        await alice.page.goto(path);
        await settled(alice.page);
        await shot(alice.page, `page-${name}-${language}-${colorScheme}`);
        expect(await serious(alice.page), `${name} at 1280`).toEqual([]);
        await alice.page.setViewportSize({ width: 390, height: 800 });
        await settled(alice.page);
        expect(await overflow(alice.page), `${name} scrolls sideways at 390`).toBeLessThanOrEqual(0);
        if (colorScheme === 'light') await shot(alice.page, `page-${name}-${language}-390`);
      }
      await test.step('the change of the ticket', async () => {
        await alice.page.getByTestId('tab-change').click();
        await expect(alice.page.getByTestId('diff-object').first()).toBeVisible();
        expect(await overflow(alice.page), 'the diff scrolls sideways at 390').toBeLessThanOrEqual(0);
        await shot(alice.page, `page-change-${language}-${colorScheme}-390`);
        await alice.page.setViewportSize({ width: 1280, height: 860 });
        expect(await serious(alice.page), 'the diff at 1280').toEqual([]);
        // What a window of 1280 shows at 200 %.
        await alice.page.setViewportSize({ width: 640, height: 430 });
        expect(await overflow(alice.page), 'the diff scrolls sideways at 200 %').toBeLessThanOrEqual(0);
      });
      await alice.page.setViewportSize({ width: 1280, height: 860 });
      await alice.page.getByTestId('withdraw-button').click();
      await alice.page.getByTestId('withdraw-reason').fill('Seen');
      await alice.page.getByTestId('withdraw-confirm').click();
      await expectState(alice.page, 'withdrawn');
    });
  }
}

async function settled(page: Page): Promise<void> {
  await expect(page.locator('main h1').first()).toBeVisible();
  await expect(page.getByTestId('skeleton')).toHaveCount(0);
}

async function serious(page: Page): Promise<string[]> {
  const results = await new AxeBuilder({ page }).analyze();
  return results.violations
    .filter((violation) => violation.impact === 'serious' || violation.impact === 'critical')
    .map((violation) => `${violation.id}: ${violation.nodes.map((node) => node.target.join(' ')).join(', ')}`);
}

async function overflow(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
}

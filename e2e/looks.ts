import { AxeBuilder } from '@axe-core/playwright';
import { expect, test, type Browser, type Page } from '@playwright/test';
import { logIn, type Person } from './people.js';
import { shot } from './shots.js';

/** The language and the colour scheme of a person. */
export interface Look {
  language: 'en' | 'zh';
  colorScheme: 'light' | 'dark';
}

/** A page of the portal; its name is that of its picture. */
export interface Place {
  name: string;
  path: string;
}

/** Each language and each scheme once: what is wrong with one of them shows in one of the two. */
export const looks: Look[] = [
  { language: 'en', colorScheme: 'light' },
  { language: 'zh', colorScheme: 'dark' },
];

/** Logs in as somebody who has chosen a language and a colour scheme. */
export async function logInAs(browser: Browser, name: string, look: Look): Promise<Person> {
  return logIn(browser, name, look);
}

/** Looks at each place in a wide and in a narrow window: pictures of both, no serious finding of axe, nothing cut off. */
export async function lookAt(page: Page, places: Place[], { language, colorScheme }: Look): Promise<void> {
  test.setTimeout(180_000 + 45_000 * places.length); // axe reads long pages for seconds, on a busy machine for many
  for (const { name, path } of places) {
    const picture = `page-${name}-${language}-${colorScheme}`;
    await page.setViewportSize({ width: 1280, height: 860 });
    await page.goto(path);
    await settled(page);
    await shot(page, picture);
    expect.soft(await serious(page), `${name} at 1280`).toEqual([]);
    await page.setViewportSize({ width: 390, height: 800 });
    await settled(page);
    expect.soft(await overflow(page), `${name} scrolls sideways at 390`).toBeLessThanOrEqual(0);
    await shot(page, `${picture}-390`);
  }
}

/** Waits until the page has its heading and nothing of it is still to come. */
export async function settled(page: Page): Promise<void> {
  await expect(page.locator('main h1').first()).toBeVisible();
  await expect(page.getByTestId('skeleton')).toHaveCount(0);
}

/** What axe calls serious or critical. Its legacy mode leaves out frames of other origins, which no page has, and reads a page in half the time. */
export async function serious(page: Page): Promise<string[]> {
  const results = await new AxeBuilder({ page }).setLegacyMode().options({ resultTypes: ['violations'] }).analyze();
  return results.violations
    .filter((violation) => violation.impact === 'serious' || violation.impact === 'critical')
    .map((violation) => `${violation.id}: ${violation.nodes.map((node) => node.target.join(' ')).join(', ')}`);
}

/** By how many pixels the page is wider than its window. */
export async function overflow(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
}

import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Locator, Page } from '@playwright/test';

const folder = resolve(import.meta.dirname, 'screenshots');

/** Leaves a picture of the page for people to look at; in CI, where nobody does, it takes none: a picture costs a second. */
export async function shot(page: Page, name: string): Promise<void> {
  if (process.env.CI) return;
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true, animations: 'disabled' });
}

/** The height of the header, which covers the top of the page, with some space below it. */
const header = 76;

/**
 * Takes a picture of what fits into the window, from the top of the page or of a part of it, for the documents; `make screenshots` copies these into
 * docs/images.
 */
export async function documentShot(page: Page, name: string, part?: Locator): Promise<void> {
  const path = join(folder, 'documents', `${name}.png`);
  if (part) await part.evaluate((element, space) => window.scrollTo(0, element.getBoundingClientRect().top + window.scrollY - space), header);
  else await page.evaluate(() => window.scrollTo(0, 0));
  await page.screenshot({ path, animations: 'disabled' });
}

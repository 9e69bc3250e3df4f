import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Page } from '@playwright/test';

const folder = resolve(import.meta.dirname, 'screenshots');

/** Leaves a picture of the page for people to look at; in CI, where nobody does, it takes none: a picture costs a second. */
export async function shot(page: Page, name: string): Promise<void> {
  if (process.env.CI) return;
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true, animations: 'disabled' });
}

/** Takes a picture of what fits into the window, for the documents; `make screenshots` copies these into docs/images. */
export async function documentShot(page: Page, name: string): Promise<void> {
  const path = join(folder, 'documents', `${name}.png`);
  await page.evaluate(() => window.scrollTo(0, 0));
  await page.screenshot({ path, animations: 'disabled' });
}

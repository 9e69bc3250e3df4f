import { test as base } from '@playwright/test';
import { keepBaseline, restore } from './restore.js';

export * from '@playwright/test';

/**
 * The test of Playwright, which ends whatever a test began: its pages, which would read again what later tests change until the browser ends, and
 * what it left on the fleet, so that a test that fails makes no later one fail.
 */
export const test = base.extend<{ ending: void }>({
  ending: [
    async ({ browser, playwright }, use) => {
      await keepBaseline();
      await use();
      await Promise.all(browser.contexts().map((context) => context.close()));
      await restore(browser, playwright.request);
    },
    { auto: true, timeout: 300_000 },
  ],
});

import { test as base } from '@playwright/test';
import { keepBaseline, restore } from './restore.js';

export * from '@playwright/test';

/** When the last test may begin, in milliseconds since 1970; CI sets it in seconds. */
const lastStart = Number(process.env.ACP_E2E_UNTIL ?? Infinity) * 1000;

/**
 * The test of Playwright, which ends whatever a test began: its pages, which would read again what later tests change until the browser ends, and
 * what it left on the fleet, so that a test that fails makes no later one fail.
 */
export const test = base.extend<{ ending: void }>({
  ending: [
    async ({ browser, playwright }, use, testInfo) => {
      testInfo.skip(Date.now() > lastStart, 'no time is left');
      await keepBaseline();
      await use();
      await Promise.all(browser.contexts().map((context) => context.close()));
      await restore(browser, playwright.request);
    },
    { auto: true, timeout: 300_000 },
  ],
});

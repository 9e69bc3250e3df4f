import { defineConfig } from '@playwright/test';

/** How many files run at a time, each on the fleet of its worker, which uses up to 3 GB. */
const workers = Number(process.env.ACP_E2E_WORKERS ?? 1);

// No retries: a flaky test is a broken one.
export default defineConfig({
  testDir: '.',
  outputDir: 'test-results',
  workers,
  retries: 0,
  // So many failures have one cause, and each may take minutes.
  maxFailures: process.env.CI ? 8 : 0,
  // A busy machine is several times slower than an idle one (in CI, the tests of all pages took 284 s); a broken page fails as well after a minute.
  timeout: 900_000,
  expect: { timeout: 60_000, toPass: { timeout: 120_000 } },
  forbidOnly: !!process.env.CI,
  globalSetup: './global-setup.ts',
  reporter: [['./reporter.ts']],
  use: {
    viewport: { width: 1280, height: 860 },
    locale: 'en-GB',
    timezoneId: 'Europe/Berlin',
    screenshot: 'only-on-failure',
    // Without these limits, what is missing on a page costs the time of the whole test.
    actionTimeout: 120_000,
    navigationTimeout: 120_000,
    // Without a picture of each frame, which costs much space and processor time; the snapshots of the page show the same. In CI, which
    // keeps no files, nothing is recorded.
    trace: { mode: process.env.CI ? 'off' : 'retain-on-failure', screenshots: false, sources: false },
    launchOptions: {
      executablePath: process.env.CHROMIUM,
      args: [
        '--headless',
        '--no-sandbox',
        '--disable-gpu',
        '--disable-quic',
        '--no-first-run',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
      ],
    },
  },
});

import { defineConfig } from '@playwright/test';

// One worker and no retries: the tests share one fleet, and a flaky test is a broken one.
export default defineConfig({
  testDir: '.',
  outputDir: 'test-results',
  workers: 1,
  retries: 0,
  // A busy machine is several times slower than an idle one (in CI, the tests of all pages took 284 s); a broken page fails as well after a minute.
  timeout: 900_000,
  expect: { timeout: 60_000 },
  forbidOnly: !!process.env.CI,
  globalSetup: './global-setup.ts',
  reporter: [['./reporter.ts']],
  use: {
    viewport: { width: 1280, height: 860 },
    locale: 'en-GB',
    timezoneId: 'Europe/Berlin',
    screenshot: 'only-on-failure',
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

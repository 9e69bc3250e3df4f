import { defineConfig } from '@playwright/test';
import config from './playwright.config.js';

// The same browser on a portal that was installed with Helm, for which no fleet is started. ACP_HOST_RULES maps the host names of the portal
// and of the provider to forwarded ports. Private authorities signed their certificates: people see the warning that docs/install.md describes,
// and the tests that start this browser check the certificates themselves.
export default defineConfig({
  ...config,
  workers: 1,
  testMatch: '*.installed.ts',
  globalSetup: undefined,
  use: {
    ...config.use,
    ignoreHTTPSErrors: true,
    launchOptions: {
      ...config.use?.launchOptions,
      args: [...(config.use?.launchOptions?.args ?? []), `--host-resolver-rules=${process.env.ACP_HOST_RULES ?? ''}`],
    },
  },
});

import { defineConfig } from '@playwright/test';
import config from './playwright.config.js';

// The browser of `make test-cluster`: ACP is installed already, in a real cluster. ACP_E2E_HOSTS leads the browser to it.
export default defineConfig({
  ...config,
  testMatch: '*.installed.ts',
  outputDir: 'test-results-installed',
  globalSetup: undefined,
  use: {
    ...config.use,
    ignoreHTTPSErrors: true, // the chart made the certificate, and docs/install.md says that the browser warns
    launchOptions: {
      ...config.use?.launchOptions,
      args: [...(config.use?.launchOptions?.args ?? []), `--host-resolver-rules=${process.env.ACP_E2E_HOSTS}`],
    },
  },
});

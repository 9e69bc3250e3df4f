import { defineConfig } from '@playwright/test';
import config from './playwright.config.js';

// The same browser on a fleet with a real istiod in each member: ACP_E2E_FLAGS contains --istio.
export default defineConfig({ ...config, workers: 1, testMatch: '*.istio.ts' });

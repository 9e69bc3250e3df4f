import { defineConfig } from '@playwright/test';
import config from './playwright.config.js';

// The same browser without a fleet: what is measured is the page.
export default defineConfig({ ...config, testMatch: '*.bench.ts', globalSetup: undefined, reporter: 'list', use: { ...config.use, screenshot: 'off', trace: 'off' } });

import { defineConfig } from '@playwright/test';
import config from './playwright.config.js';

// The same browser without a fleet: what is measured is the page.
export default defineConfig({ ...config, workers: 1, testMatch: '*.bench.ts', globalSetup: undefined, reporter: 'list', use: { ...config.use, screenshot: 'off', trace: 'off' } });

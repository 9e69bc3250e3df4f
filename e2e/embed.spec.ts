import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { embedder, ready } from './fleet.js';
import { logIn } from './people.js';
import { expect, test, type FrameLocator, type Page } from './test.js';

/** Another origin of the same site, which the portal does not know. */
const stranger = 'http://127.0.0.1:7008';

const servers: Server[] = [];

async function stop(): Promise<void> {
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  }
}

test.afterEach(stop);

/** Opens a page of another origin that shows a page of the portal in a frame. */
async function frame(page: Page, origin: string, path: string): Promise<FrameLocator> {
  const server = createServer((_, response) => {
    response.setHeader('content-type', 'text/html');
    response.end(`<!doctype html><title>Embedder</title><iframe src="${ready().portalURL}${path}" width="1200" height="800"></iframe>`);
  });
  const { hostname, port } = new URL(origin);
  server.listen(Number(port), hostname);
  await once(server, 'listening');
  servers.push(server);
  await page.goto(`${origin}/`);
  return page.frameLocator('iframe');
}

/** Whether the browser refused to show the frame, as it reports on the console. */
function refusals(page: Page): string[] {
  const found: string[] = [];
  page.on('console', (message) => {
    if (/frame-ancestors|X-Frame-Options/.test(message.text())) found.push(message.text());
  });
  return found;
}

test('the page of a resource is shown in a frame of a configured origin, read only', async ({ browser }) => {
  const { context } = await logIn(browser, 'bob');
  const page = await context.newPage();
  const inside = await frame(page, embedder, '/resources/bobs-cluster?embed=1');
  await expect(inside.getByTestId('access')).toBeVisible();
  await expect(inside.getByTestId('protection')).toBeVisible();
  await expect(inside.getByTestId('next-step')).toBeVisible();
  await expect(inside.getByTestId('user-menu')).toHaveCount(0);
  await expect(inside.getByRole('navigation')).toHaveCount(0);
  for (const control of ['audit-begin', 'choose-all', 'next-announce', 'next-advance']) await expect(inside.getByTestId(control)).toHaveCount(0);
  const link = inside.getByTestId('embed-open');
  await expect(link).toHaveAttribute('target', '_blank');
  const opened = context.waitForEvent('page');
  await link.click();
  const tab = await opened;
  await expect(tab.getByTestId('user-menu')).toBeVisible();
  expect(new URL(tab.url()).pathname + new URL(tab.url()).search).toBe('/resources/bobs-cluster');
  await expect(inside.getByTestId('access')).toBeVisible();
  await context.close();
});

test('the page of an application is shown in a frame of a configured origin, read only', async ({ browser }) => {
  const { context } = await logIn(browser, 'alice');
  const page = await context.newPage();
  const inside = await frame(page, embedder, '/applications/app-888?embed=1');
  for (const part of ['access', 'unused', 'tickets']) await expect(inside.getByTestId(part).first()).toBeVisible();
  await expect(inside.getByTestId('user-menu')).toHaveCount(0);
  await expect(inside.getByRole('navigation')).toHaveCount(0);
  await expect(inside.locator('[data-testid^="revoke-"]')).toHaveCount(0);
  await expect(inside.getByTestId('embed-open')).toHaveAttribute('href', '/applications/app-888');
  const ask = inside.getByTestId('request-access').first();
  await expect(ask).toHaveAttribute('target', '_blank');
  const opened = context.waitForEvent('page');
  await ask.click();
  const tab = await opened;
  await expect(tab.getByTestId('request-reason')).toBeVisible();
  expect(new URL(tab.url()).pathname, 'the form is in the portal itself').toBe('/requests/new');
  await expect(inside.getByTestId('access')).toBeVisible();
  await context.close();
});

test('nothing else is shown in a frame', async ({ browser }) => {
  const { context } = await logIn(browser, 'alice');
  for (const [origin, path] of [
    [stranger, '/resources/bobs-cluster?embed=1'],
    [embedder, '/resources/bobs-cluster'],
    [embedder, '/approvals?embed=1'],
    [embedder, '/login?embed=1'],
    [embedder, '/'],
  ] as const) {
    const page = await context.newPage();
    const refused = refusals(page);
    const inside = await frame(page, origin, path);
    await expect.poll(() => refused.length, { message: `${path} in a frame of ${origin}` }).toBeGreaterThan(0);
    await expect(inside.getByRole('main')).toHaveCount(0);
    await page.close();
    await stop();
  }
  await context.close();
});

test('without a session the frame has a link and no login', async ({ browser }) => {
  const context = await browser.newContext();
  const inside = await frame(await context.newPage(), embedder, '/applications/app-888?embed=1');
  await expect(inside.getByTestId('embed-signed-out')).toBeVisible();
  await expect(inside.getByTestId('embed-open')).toHaveAttribute('href', '/applications/app-888');
  await expect(inside.getByTestId('login-button')).toHaveCount(0);
  await context.close();
});

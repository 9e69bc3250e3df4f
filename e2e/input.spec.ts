import { ready } from './fleet.js';
import { settled } from './looks.js';
import { fillLogin, logIn } from './people.js';
import { shot } from './shots.js';
import { expect, test } from './test.js';

test('a wrong password says so and keeps the name', async ({ browser }) => {
  const context = await browser.newContext({ baseURL: ready().portalURL });
  const page = await context.newPage();
  await page.goto('/login');
  await page.getByTestId('login-button').click();
  await fillLogin(page, 'alice', 'wrong');
  await expect(page.getByRole('alert')).toBeVisible();
  await expect(page.locator('#username')).toHaveValue('alice');
  await fillLogin(page, 'alice', 'demo');
  await expect(page.getByTestId('user-menu')).toBeVisible();
});

test('a login that was not begun here is refused with what to do', async ({ browser }) => {
  const context = await browser.newContext({ baseURL: ready().portalURL });
  const page = await context.newPage();
  await page.goto('/auth/callback?state=forged&code=forged');
  await expect(page.getByTestId('login-error')).toBeVisible();
  await shot(page, 'login-refused');
});

test('a page behind the login leads there and back', async ({ browser }) => {
  const context = await browser.newContext({ baseURL: ready().portalURL });
  const page = await context.newPage();
  await page.goto('/resources?q=orders');
  await page.getByTestId('login-button').click();
  await fillLogin(page, 'bob', 'demo');
  await page.waitForURL(/\/resources\?q=orders/);
});

test('an address that is entered does not begin where another page was left', async ({ browser }) => {
  const { page } = await logIn(browser, 'dave');
  await page.setViewportSize({ width: 1280, height: 400 });
  await page.goto('/resources/bobs-cluster');
  await settled(page);
  await page.evaluate(() => window.scrollTo(0, 300));
  expect(await page.evaluate(() => window.scrollY)).toBe(300);
  await page.goto('/reviews/new'); // a form, which is high at once
  await settled(page);
  await page.waitForTimeout(2500); // an earlier position would be restored some time after the page is shown
  expect(await page.evaluate(() => window.scrollY)).toBe(0);
});

test('the language is chosen in the menu, and kept', async ({ browser }) => {
  const { page } = await logIn(browser, 'alice');
  await page.goto('/');
  for (const [language, words] of [['zh', '申请'], ['en', 'Requests']] as const) {
    await page.getByTestId('language-menu').click();
    await page.getByTestId(`language-${language}`).click();
    await expect(page.locator('html')).toHaveAttribute('lang', language);
    await expect(page.getByRole('navigation').first()).toContainText(words);
    await page.reload();
    await expect(page.locator('html')).toHaveAttribute('lang', language);
  }
});

test('an incomplete request is refused at its fields and keeps what was typed', async ({ browser }) => {
  const alice = await logIn(browser, 'alice');
  await alice.page.goto('/requests/new?application=app-888&resource=bobs-cluster');
  await alice.page.getByTestId('submit-request').click();
  await expect(alice.page.getByTestId('request-reason')).toHaveAttribute('aria-invalid', 'true');
  await expect(alice.page).toHaveURL(/requests\/new/);
  await shot(alice.page, 'request-incomplete');
});

test('unknown applications, resources, actions and tickets get a clear error, never another answer', async ({ browser }) => {
  const alice = await logIn(browser, 'alice');
  const headers = { 'X-ACP-Request': '1', Origin: ready().portalURL };
  const ask = (item: Record<string, unknown>) =>
    alice.page.request.post('/api/v1/tickets', { headers, data: { reason: 'because', items: [item] } });
  const cases = [
    { item: { application: 'app-000', resource: 'bobs-cluster', actions: ['redis:connect'] }, field: 'items[0].application' },
    { item: { application: 'app-888', resource: 'nobodys-cluster', actions: ['redis:connect'] }, field: 'items[0].resource' },
    { item: { application: 'app-888', resource: 'bobs-cluster', actions: ['redis:flush'] }, field: 'items[0].actions' },
  ];
  for (const { item, field } of cases) {
    const response = await ask(item);
    const problem = (await response.json()) as { code: string; fields?: { field: string }[] };
    expect({ status: response.status(), code: problem.code }, field).toEqual({ status: 422, code: 'invalid' });
    expect(problem.fields?.some((each) => each.field.startsWith(field)), `names ${field}`).toBe(true);
  }
  const notHis = await ask({ application: 'app-889', resource: 'bobs-cluster', actions: ['redis:connect'] });
  expect(notHis.status(), "somebody else's application").toBe(403);
  expect((await alice.page.request.get('/api/v1/tickets/T-999999')).status()).toBe(404);
  await alice.page.goto('/tickets/T-999999');
  await expect(alice.page.getByTestId('error-state')).toBeVisible();
});

import { logInAs, looks, overflow, serious } from './looks.js';
import { ask, fleetTimeout, logIn } from './people.js';
import { shot } from './shots.js';
import { expect, test, type Page } from './test.js';

const subject = 'trnv1:rsc:trip-com:iam:sa:app/676';
const many = 230;
const machines = (n: number): string => ['id,subject,addresses', ...Array.from({ length: n }, (_, i) => `vm-${String(i).padStart(3, '0')},${subject},172.21.${Math.floor(i / 250)}.${(i % 250) + 1}`)].join('\n');

for (const look of looks) {
  test(`the dialog that replaces a source in ${look.language}, ${look.colorScheme}: no serious finding of axe, nothing cut off`, async ({ browser }) => {
    const { page, context } = await logInAs(browser, 'dave', look);
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 860 });
      await page.goto('/workloads');
      await preview(page, `inventory-${look.language}`, 3);
      await shot(page, `dialog-sync-${look.language}-${width}`);
      expect.soft(await serious(page), `at ${width}`).toEqual([]);
      expect.soft(await overflow(page), `scrolls sideways at ${width}`).toBeLessThanOrEqual(0);
    }
    await context.close();
  });
}

test('an inventory is replaced after a look, and its long table stays quick', async ({ browser }) => {
  const { page, context } = await logIn(browser, 'dave');
  await page.goto('/workloads');
  await preview(page, 'inventory', many);
  await expect(page.getByTestId('sync-sum')).toContainText(`${many} new`);
  await page.getByTestId('sync-apply').click();
  await expect(page.getByTestId('sync-dialog')).toHaveCount(0);

  await page.goto('/workloads?source=inventory');
  const table = page.getByRole('table', { name: 'Workloads' });
  await expect(page.getByTestId('workload-vm-000')).toBeVisible();
  const more = page.getByTestId('load-more');
  while ((await more.count()) > 0) {
    const before = await table.getByRole('row').count();
    await more.click();
    await expect(async () => expect((await more.count()) === 0 || (await table.getByRole('row').count()) > before).toBe(true)).toPass();
  }
  await expect(table).toHaveAttribute('aria-rowcount', String(many + 1));
  expect(await table.getByRole('row').count(), 'only what is near the window is in the page').toBeLessThan(150);
  // Rows are as high as expected until they are drawn, so the end may be further down than it was when the key was pressed.
  await expect(async () => {
    await page.keyboard.press('End');
    await expect(page.getByTestId(`workload-vm-${many - 1}`)).toBeInViewport({ timeout: 1000 });
  }).toPass();
  expect(await serious(page)).toEqual([]);

  await page.goto('/workloads');
  await preview(page, 'inventory', 5);
  await expect(page.getByTestId('sync-sum')).toContainText(`${many - 5} removed`);
  await expect(page.getByTestId('sync-apply'), 'so much goes only when somebody says that the file is complete').toBeDisabled();
  await page.getByTestId('sync-sure').check();
  await page.getByTestId('sync-apply').click();
  await expect(page.getByTestId('sync-dialog')).toHaveCount(0);
  await page.goto('/workloads?source=inventory');
  await expect(page.getByTestId('workload-vm-004')).toBeVisible();
  await expect(page.getByTestId('workload-vm-005')).toHaveCount(0);
  await context.close();
});

test('the bell rings on an open page when there is news', async ({ browser }) => {
  const [alice, carol] = await Promise.all([logIn(browser, 'alice'), logIn(browser, 'carol')]);
  await carol.page.goto('/ledger');
  const bell = carol.page.getByTestId('bell');
  await expect(bell).toBeVisible();
  const before = Number(await bell.getAttribute('data-value'));
  await ask(alice, 'application=app-888&resource=rate-limits', 'Checkout slows down who asks too often', async (page) => {
    await expect(page.getByTestId('preview')).toContainText('Carol Lindqvist');
  });
  await expect.poll(async () => Number(await bell.getAttribute('data-value')), { timeout: fleetTimeout }).toBeGreaterThan(before);
  await Promise.all([alice.context.close(), carol.context.close()]);
});

test("the playground's approval policies are there, and a what-if asks two of security for what is highly sensitive", async ({ browser }) => {
  const { page, context } = await logIn(browser, 'dave');
  await page.goto('/policies');
  for (const name of ['for-trying-out', 'highly-sensitive']) await expect(page.locator('main')).toContainText(name);
  await page.goto('/policies/what-if');
  await page.getByTestId('what-if-as').fill('alice');
  await page.getByRole('option', { name: /Alice/ }).click();
  await page.getByTestId('select-application').fill('888');
  await page.getByRole('option', { name: /888/ }).click();
  await page.getByTestId('select-resource').fill('ledger-db-cache');
  await page.getByRole('option', { name: /ledger-db-cache/ }).click();
  await expect(page.getByTestId('preview-step-security')).toContainText('Nadia Haddad');
  await context.close();
});

async function preview(page: Page, source: string, n: number): Promise<void> {
  await page.getByTestId('sync-workloads').click();
  await page.getByTestId('sync-source').fill(source);
  await page.getByTestId('sync-content').fill(machines(n));
  await page.getByTestId('sync-preview').click();
  await expect(page.getByTestId('sync-sum')).toBeVisible();
}

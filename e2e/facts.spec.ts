import { expect, test } from '@playwright/test';
import { approve, ask, expectState, expectTraffic, logIn, nextApprovers, requestAccess, revoke } from './people.js';
import { logInAs, looks, overflow, serious, settled } from './looks.js';
import { documentShot, shot } from './shots.js';

/** Tests that approvers see the facts of a ticket while they can decide it, and not afterwards. */
test('a leader who owns nothing sees the facts until the decision; an extension shows the use', async ({ browser }) => {
  const [alice, bob, carol] = await Promise.all([logIn(browser, 'alice'), logIn(browser, 'bob'), logIn(browser, 'carol')]);
  const ticket = await requestAccess(alice, { application: 'app-888', resource: 'bobs-cluster', reason: 'Checkout keeps its carts there' });

  await test.step('Carol sees who uses the resource and what the application reaches', async () => {
    await carol.page.goto(`/tickets/${ticket}`);
    const facts = carol.page.getByTestId('ticket-facts');
    for (const part of ['resource', 'clients', 'observed', 'reached', 'earlier']) await expect(facts.getByTestId(`facts-${part}`)).toBeVisible();
    await expect(facts.getByTestId('facts-hidden')).toHaveCount(0);
    await shot(carol.page, 'facts-leader');
    await settled(carol.page);
    await documentShot(carol.page, 'ticket-facts');
    expect((await carol.page.request.get('/api/v1/resources/bobs-cluster/connections')).ok()).toBe(true);
    expect((await carol.page.request.get('/api/v1/applications/app-888/access')).status(), 'the page of the application stays closed').toBe(403);
  });

  await test.step('Alice, who owns the application, sees her side only', async () => {
    await alice.page.goto(`/tickets/${ticket}`);
    await expect(alice.page.getByTestId('facts-reached')).toBeVisible();
    await expect(alice.page.getByTestId('facts-clients')).toHaveCount(0);
    await expect(alice.page.getByTestId('facts-hidden')).toBeVisible();
  });

  await test.step('for all looks: no serious finding of axe, nothing cut off', async () => {
    for (const look of looks) {
      const { page } = await logInAs(browser, 'carol', look);
      await page.goto(`/tickets/${ticket}`);
      await expect(page.getByTestId('facts-clients')).toBeVisible();
      for (const width of [1280, 390]) {
        await page.setViewportSize({ width, height: 1000 });
        expect(await serious(page)).toEqual([]);
        expect(await overflow(page)).toBeLessThanOrEqual(0);
        await shot(page, `facts-${look.language}-${look.colorScheme}-${width}`);
      }
      await page.goto(`/approvals?ticket=${ticket}`);
      await expect(page.getByTestId('facts-clients')).toBeVisible();
    }
  });

  await approve(carol, ticket);
  await test.step('the item waits for Bob', async () => {
    await bob.page.goto(`/tickets/${ticket}`);
    await expect(bob.page.getByTestId('facts-clients')).toBeVisible();
  });
  await approve(bob, ticket);
  await expectState(alice.page, 'effective');
  const effective = new Date();

  await test.step('after the decision the leader sees no facts, and the owner sees them', async () => {
    const after = await carol.page.request.get(`/api/v1/tickets/${ticket}/facts`);
    expect(after.status()).toBe(403);
    await carol.page.goto(`/tickets/${ticket}`);
    await expectState(carol.page, 'effective');
    await expect(carol.page.getByTestId('skeleton')).toHaveCount(0);
    await expect(carol.page.getByTestId('ticket-facts')).toHaveCount(0);
    await bob.page.goto(`/tickets/${ticket}`);
    await expect(bob.page.getByTestId('facts-clients')).toContainText('888');
  });

  await expectTraffic(bob, 'bobs-cluster', { application: 'app-888', port: 6379, verdict: 'forwarded' }, effective);
  const extension = await test.step('Alice asks for more time', async () => {
    await alice.page.goto(`/tickets/${ticket}`);
    await alice.page.getByTestId('extend-button').click();
    await alice.page.getByTestId('extend-dialog').getByText('30 days', { exact: true }).click();
    await alice.page.getByTestId('extend-confirm').click();
    await alice.page.waitForURL((url) => /T-\d+$/.test(url.pathname) && !url.pathname.endsWith(ticket));
    return alice.page.url().split('/').pop() ?? '';
  });
  await test.step('Carol sees since when, how often and from where it was used', async () => {
    await carol.page.goto(`/tickets/${extension}`);
    await expect(carol.page.getByTestId('facts-used')).toContainText('connection');
    await expect(carol.page.getByTestId('facts-use')).toContainText(/m\d to m\d: \d/);
    await expect(carol.page.getByTestId('facts-earlier')).toContainText('Effective');
    await shot(carol.page, 'facts-extension');
  });
  await alice.page.goto(`/tickets/${extension}`);
  await alice.page.getByTestId('withdraw-button').click();
  await alice.page.getByTestId('withdraw-reason').fill('End of the test');
  await alice.page.getByTestId('withdraw-confirm').click();
  await expectState(alice.page, 'withdrawn');
  await revoke(alice, ticket, 'End of the test');
  await expectState(alice.page, 'revoked');
});

test('a ticket about a class shows what it concerns and its impact', async ({ browser }) => {
  const dave = await logIn(browser, 'dave');
  const ticket = await ask(dave, 'kind=class&object=ResourceClass&name=redis', 'Another port for the exporter', async (page) => {
    const spec = page.getByTestId('object-spec');
    await expect(spec).toHaveValue(/6379/);
    const port = '  - port: 6379\n    protocol: TCP\n';
    await spec.fill((await spec.inputValue()).replace(port, `${port}${port.replace('6379', '6380')}`));
    await expect(page.getByTestId('preview').getByTestId('diff-object').first()).toBeVisible();
  });
  const owner = await logIn(browser, (await nextApprovers(dave, ticket))[0] ?? '');
  await owner.page.goto(`/tickets/${ticket}`);
  await expect(owner.page.getByTestId('facts-affected')).toContainText('resource');
  await expect(owner.page.getByTestId('ticket-impact')).toBeVisible();
  await owner.page.getByTestId('tab-impact').click();
  await expect(owner.page.getByTestId('impact').or(owner.page.getByTestId('impact-unavailable'))).toBeVisible();
  await expect(owner.page.getByTestId('impact-map')).toHaveAttribute('href', new RegExp(ticket));
  expect(await serious(owner.page)).toEqual([]);
  await shot(owner.page, 'facts-class');
  await dave.page.goto(`/tickets/${ticket}`);
  await dave.page.getByTestId('withdraw-button').click();
  await dave.page.getByTestId('withdraw-reason').fill('End of the test');
  await dave.page.getByTestId('withdraw-confirm').click();
  await expectState(dave.page, 'withdrawn');
});

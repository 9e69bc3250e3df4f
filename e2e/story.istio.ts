import { expect, test } from '@playwright/test';
import { approve, expectState, expectTraffic, lastSeen, logIn, requestAccess, revoke } from './people.js';
import { shot } from './shots.js';

const resource = 'loyalty-points';
const port = 9090;

test('a resource that Istio enforces: refused, requested, approved, let through, revoked, refused again', async ({ browser }) => {
  const [alice, zainab, carol] = await Promise.all([logIn(browser, 'alice'), logIn(browser, 'zainab'), logIn(browser, 'carol')]);
  await zainab.page.goto(`/resources/${resource}`);
  for (const member of ['m1', 'm2']) await expect(zainab.page.getByTestId(`cluster-state-${member}`)).toHaveAttribute('data-value', 'Realized', { timeout: 60_000 });
  const started = new Date();

  await test.step('requests of 888 are refused, and those of 777 are let through, in both members', async () => {
    await expectTraffic(zainab, resource, { application: 'app-888', port, verdict: 'dropped' }, started);
    await expectTraffic(zainab, resource, { application: 'app-777', port, verdict: 'forwarded' }, started);
    const last = await lastSeen(zainab, resource, 'app-888', port, 'forwarded'); // before the first policies were there
    expect(!last || last.getTime() <= started.getTime() + 2_000, 'nothing is let through once the members have the policies').toBe(true);
    await zainab.page.reload();
    await shot(zainab.page, 'istio-1-resource');
  });

  const ticket = await requestAccess(alice, { application: 'app-888', resource, reason: 'Checkout shows the points' }, 'Zainab Ali');
  await expectState(alice.page, 'pending');
  await approve(carol, ticket);
  await approve(zainab, ticket);
  await expectState(alice.page, 'effective');
  for (const member of ['m1', 'm2']) await expect(alice.page.getByTestId(`cluster-state-${member}`)).toHaveAttribute('data-value', 'Realized');
  await shot(alice.page, 'istio-2-ticket-effective');

  await test.step('requests of 888 are let through', async () => {
    await expectTraffic(zainab, resource, { application: 'app-888', port, verdict: 'forwarded' }, new Date());
    await zainab.page.goto(`/resources/${resource}`);
    await expect(zainab.page.getByTestId('access-table')).toContainText(ticket);
    await shot(zainab.page, 'istio-3-resource-open');
  });

  await test.step('Zainab revokes, and requests of 888 are refused again', async () => {
    await revoke(zainab, ticket, 'Points move to another service');
    await expectState(zainab.page, 'revoked');
    const revoked = new Date();
    await expectTraffic(zainab, resource, { application: 'app-888', port, verdict: 'dropped' }, revoked);
    // Realized means that the members' API servers have the policy. Istiod tells the servers of it about 0.1 s later.
    const last = await lastSeen(zainab, resource, 'app-888', port, 'forwarded');
    expect(last && last.getTime() <= revoked.getTime() + 2_000, 'nothing is let through after the revocation').toBe(true);
    await shot(alice.page, 'istio-4-ticket-revoked');
  });
});

import { ctl } from './fleet.js';
import { approve, expectState, expectTraffic, fleetTimeout, logIn, requestAccess, revoke } from './people.js';
import { shot } from './shots.js';
import { expect, test } from './test.js';

test('a member that is down during the approval: the ticket names it, and becomes effective when it is back', async ({ browser }) => {
  const [alice, bob, carol] = await Promise.all([logIn(browser, 'alice'), logIn(browser, 'bob'), logIn(browser, 'carol')]);
  const ticket = await requestAccess(alice, { application: 'app-888', resource: 'bobs-cluster', reason: 'While m2 sleeps' });
  await approve(carol, ticket);
  await ctl('stop', 'apiserver-m2');
  try {
    await approve(bob, ticket);
    await expect(alice.page.getByTestId('cluster-state-m1')).toHaveAttribute('data-value', 'Realized', { timeout: fleetTimeout });
    await expect(alice.page.getByTestId('cluster-state-m2')).toHaveAttribute('data-value', /Unreachable|Pending/);
    await expect(alice.page.getByTestId('ticket-message')).toContainText('m2', { timeout: fleetTimeout });
    await expectState(alice.page, 'applying');
    await shot(alice.page, 'member-down');
  } finally {
    await ctl('start', 'apiserver-m2');
  }
  await expectState(alice.page, 'effective', 180_000);
  await expect(alice.page.getByTestId('cluster-state-m2')).toHaveAttribute('data-value', 'Realized');
  await expectTraffic(bob, 'bobs-cluster', { application: 'app-888', port: 6379, verdict: 'forwarded' }, new Date());
  await revoke(bob, ticket, 'End of the test');
  await expectState(bob.page, 'revoked', 60_000);
});

test('kill -9 of the portal between approval and application loses nothing', async ({ browser }) => {
  const [alice, bob, carol] = await Promise.all([logIn(browser, 'alice'), logIn(browser, 'bob'), logIn(browser, 'carol')]);
  const ticket = await requestAccess(alice, { application: 'app-888', resource: 'bobs-cluster', reason: 'The portal dies at the worst moment' });
  await approve(carol, ticket);

  // Without its API server the portal can only store the approval and its outbox job: exactly the moment to kill it.
  await ctl('stop', 'apiserver-host');
  try {
    await approve(bob, ticket);
    await expect(alice.page.getByTestId('host-away'), 'what is shown may be old, and the page says so').toBeVisible({ timeout: fleetTimeout });
    await shot(alice.page, 'host-away');
    await ctl('kill', 'portal');
  } finally {
    await ctl('start', 'apiserver-host');
    await ctl('start', 'portal');
  }
  await expect(async () => {
    await alice.page.goto(`/tickets/${ticket}`);
    await expectState(alice.page, 'effective', 5_000);
  }, 'the session and the ticket survive, and the approval is applied').toPass({ timeout: fleetTimeout });
  await shot(alice.page, 'portal-killed');
  await bob.page.goto('/resources/bobs-cluster');
  await expect(bob.page.getByTestId('access-table').getByRole('link', { name: ticket, exact: true }), 'applied once').toHaveCount(1);
  await revoke(bob, ticket, 'End of the test');
  await expectState(bob.page, 'revoked', 60_000);
});

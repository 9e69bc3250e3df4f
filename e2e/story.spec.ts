import { settled } from './looks.js';
import { approve, expectState, expectTraffic, fleetTimeout, lastSeen, logIn, type Person, requestAccess, revoke } from './people.js';
import { documentShot, shot } from './shots.js';
import { expect, test } from './test.js';

test('the story: refused, asked, approved, let through, revoked, refused again', async ({ browser }) => {
  const [alice, bob, carol] = await Promise.all([logIn(browser, 'alice'), logIn(browser, 'bob'), logIn(browser, 'carol')]);
  // Before the fleet's first policies arrive its members are open, so the story begins when they are there.
  await bob.page.goto('/resources/bobs-cluster');
  for (const member of ['m1', 'm2']) await expect(bob.page.getByTestId(`cluster-state-${member}`)).toHaveAttribute('data-value', 'Realized', { timeout: fleetTimeout }); // a KubeFed that was just started looks every ten seconds whether it may begin
  const started = new Date();

  await test.step('the portal shows Alice that their application is refused', async () => {
    await expectTraffic(bob, 'bobs-cluster', { application: 'app-888', port: 6379, verdict: 'dropped' }, started);
    await alice.page.goto('/applications/app-888');
    await expect(alice.page.getByTestId('connections-table').getByRole('row').filter({ hasText: '6379' }).getByTestId('decision-badge').first()).toHaveAttribute('data-value', 'default-denied');
    await shot(alice.page, 'story-1-application-refused');
    await alice.page.goto('/');
    await expect(alice.page.getByTestId('refused')).toContainText('888');
    await settled(alice.page);
    await documentShot(alice.page, 'home');
  });

  await test.step('the form says who decides, and what the request changes', async () => {
    await alice.page.goto('/requests/new?application=app-888&resource=bobs-cluster');
    await alice.page.getByTestId('request-reason').fill('Checkout keeps its carts there');
    await expect(alice.page.getByTestId('preview')).toContainText('Bob Tanaka');
    await settled(alice.page);
    await documentShot(alice.page, 'request');
  });

  const ticket = await test.step('Alice asks, with a reason', () =>
    requestAccess(alice, { application: 'app-888', resource: 'bobs-cluster', reason: 'Checkout keeps its carts there' }));
  await expectState(alice.page, 'pending');
  await shot(alice.page, 'story-2-ticket-pending');

  await test.step('Carol, then Bob, approve; nobody else can', async () => {
    await bob.page.goto(`/tickets/${ticket}`);
    await expectState(bob.page, 'pending');
    await expect(bob.page.getByTestId('approve-button'), "it is not Bob's turn yet").toHaveCount(0);
    await expect(alice.page.getByTestId('approve-button'), 'nobody approves their own request').toHaveCount(0);
    await approve(carol, ticket, 'Fine, we planned it');
    await approve(bob, ticket);
  });
  await test.step('the policy is realised in both members, and the open page says so by itself', async () => {
    await expectState(alice.page, 'effective');
    await expect(alice.page.getByTestId('cluster-state-m1')).toHaveAttribute('data-value', 'Realized');
    await expect(alice.page.getByTestId('cluster-state-m2')).toHaveAttribute('data-value', 'Realized');
    await shot(alice.page, 'story-3-ticket-effective');
    await documentShot(alice.page, 'ticket');
  });

  const effective = new Date();
  await test.step('the same pods are let through; 889, and 888 on another port, stay refused', async () => {
    await expectTraffic(bob, 'bobs-cluster', { application: 'app-888', port: 6379, verdict: 'forwarded' }, effective);
    await expectTraffic(bob, 'bobs-cluster', { application: 'app-889', port: 6379, verdict: 'dropped' }, effective);
    await expectTraffic(bob, 'bobs-cluster', { application: 'app-888', port: 9121, verdict: 'dropped' }, effective);
    expect(await seenSince(bob, started, 'app-889', 6379), '889 was never let through').toBe(false);
    expect(await seenSince(bob, started, 'app-888', 9121), 'the other port was never open').toBe(false);
    await bob.page.goto('/resources/bobs-cluster');
    await expect(bob.page.getByTestId('access-table')).toContainText(ticket);
    await shot(bob.page, 'story-4-resource-open');
  });

  await test.step('Bob revokes; they are refused again', async () => {
    await revoke(bob, ticket, 'Carts move to another cluster');
    await expectState(bob.page, 'revoked');
    await expectState(alice.page, 'revoked');
    const revoked = new Date();
    await expectTraffic(bob, 'bobs-cluster', { application: 'app-888', port: 6379, verdict: 'dropped' }, revoked);
    const last = await lastSeen(bob, 'bobs-cluster', 'app-888', 6379, 'forwarded');
    expect(last && last <= revoked, 'no connection was let through after the revocation').toBe(true);
    await shot(alice.page, 'story-5-ticket-revoked');
  });
});

test('a rejected request changes nothing and says why', async ({ browser }) => {
  const [alice, carol] = await Promise.all([logIn(browser, 'alice'), logIn(browser, 'carol')]);
  const ticket = await requestAccess(alice, { application: 'app-888', resource: 'bobs-cluster', reason: 'I would like to try something' });

  await carol.page.goto(`/tickets/${ticket}`);
  await carol.page.getByTestId('reject-button').click();
  await expect(carol.page.getByTestId('ticket-state').first(), 'a rejection without a word is refused').toHaveAttribute('data-value', 'pending');
  await carol.page.getByTestId('decision-comment').fill('Use the test cluster for experiments');
  await carol.page.getByTestId('reject-button').click();

  await expectState(alice.page, 'rejected');
  await expect(alice.page.getByTestId('timeline')).toContainText('Use the test cluster for experiments');
  await shot(alice.page, 'rejected');
  await alice.page.goto('/applications/app-888');
  await expect(alice.page.getByTestId('access-table').getByRole('link', { name: ticket, exact: true })).toHaveCount(0);
});

async function seenSince(person: Person, since: Date, application: string, port: number): Promise<boolean> {
  const last = await lastSeen(person, 'bobs-cluster', application, port, 'forwarded');
  return last !== undefined && last >= since;
}

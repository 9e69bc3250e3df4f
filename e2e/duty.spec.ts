import { ready, setOnCall } from './fleet.js';
import { serious } from './looks.js';
import { expectState, fleetTimeout, logIn } from './people.js';
import { shot } from './shots.js';
import { expect, test } from './test.js';
import { submit, version, withPolicy, writing } from './tickets.js';

test('only who is on call decides; the ticket says who that is, what happens in time, and that they were reminded', async ({ browser }) => {
  const [alice, bob, frank] = await Promise.all([logIn(browser, 'alice'), logIn(browser, 'bob'), logIn(browser, 'frank')]);
  setOnCall(ready().stateDir, 'nobody@trip.example');
  const duty = {
    name: 'duty', approvers: ['person:bob', 'person:frank'], limitTo: 'onCall("caches", 1)',
    timeout: { after: '2h', action: 'Escalate', escalateTo: ['group:security'], remindEvery: '1m' },
  };
  await withPolicy(alice, 'caches-on-call', { application: 'app-888', resource: 'orders-cache' }, [duty], async () => {
    const ticket = await submit(alice, 'app-888', 'orders-cache');

    await test.step('while nobody of them is on call the step waits, and says why', async () => {
      await bob.page.goto(`/tickets/${ticket}`);
      await expect(bob.page.getByTestId('on-call-duty')).toHaveAttribute('data-value', 'waits');
      await expect(bob.page.getByTestId('approve-button')).toHaveCount(0);
    });

    await test.step('the shift begins: Frank is named to everybody, and decides; Bob, who is another approver, does not', async () => {
      setOnCall(ready().stateDir, 'frank@trip.example');
      await expect(async () => {
        await bob.page.reload();
        await expect(bob.page.getByTestId('on-call-duty')).toHaveAttribute('data-value', 'known', { timeout: 2000 });
      }).toPass({ timeout: fleetTimeout });
      await expect(bob.page.getByTestId('on-call-duty')).toContainText('Frank Duarte');
      await expect(bob.page.getByTestId('on-call-duty')).not.toContainText('Bob Tanaka');
      await expect(bob.page.getByTestId('approve-button')).toHaveCount(0);
      const refused = await bob.page.request.post(`/api/v1/tickets/${ticket}/decision`, { headers: writing(), data: { decision: 'approve', version: await version(alice, ticket) } });
      expect(refused.status(), await refused.text()).toBe(403);
    });

    await test.step('what happens in time is on the ticket', async () => {
      await alice.page.goto(`/tickets/${ticket}`);
      await expect(alice.page.getByTestId('timeout-duty')).toHaveAttribute('data-value', 'Escalate');
      await expect(alice.page.getByTestId('timeout-duty')).toContainText('Dave Okafor');
      await expect(alice.page.getByTestId('reminders-duty')).toBeVisible();
      await expect(alice.page.getByTestId('timeline-reminded')).toBeVisible({ timeout: fleetTimeout }); // after a minute, the least that a policy can say
      await shot(alice.page, 'workflow-on-call');
      expect(await serious(alice.page)).toEqual([]);
    });

    await test.step('Frank finds it among what waits, and decides', async () => {
      await frank.page.goto(`/approvals?ticket=${ticket}`);
      await expect(frank.page.getByTestId('on-call-duty')).toContainText('Frank Duarte');
      await frank.page.getByTestId('decision-comment').fill('I am on call');
      await frank.page.getByTestId('reject-button').click();
      await expectState(alice.page, 'rejected');
      await expect(alice.page.getByTestId('vote-frank')).toBeVisible();
    });
  });
  await Promise.all([alice, bob, frank].map(({ context }) => context.close()));
});

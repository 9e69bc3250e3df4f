import { approve, approveEveryStep, ask, expectState, expectTraffic, logIn, nextApprovers, type Person, requestAccess, revoke } from './people.js';
import { ready } from './fleet.js';
import { logInAs, looks, overflow, serious, settled } from './looks.js';
import { documentShot, shot } from './shots.js';
import { expect, test, type Browser } from './test.js';

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
  await expect(owner.page.getByTestId('impact')).toBeVisible();
  await expect(owner.page.getByTestId('impact-unavailable')).toHaveCount(0);
  await expect(owner.page.getByTestId('impact-map')).toHaveAttribute('href', new RegExp(ticket));
  expect(await serious(owner.page)).toEqual([]);
  await shot(owner.page, 'facts-class');
  await dave.page.goto(`/tickets/${ticket}`);
  await dave.page.getByTestId('withdraw-button').click();
  await dave.page.getByTestId('withdraw-reason').fill('End of the test');
  await dave.page.getByTestId('withdraw-confirm').click();
  await expectState(dave.page, 'withdrawn');
});

interface Statement {
  effect: 'Allow' | 'Deny';
  subject: string;
  resource: string;
  reason: string;
}

const clusters = 'trnv1:rsc:trip-com:redis:clusters:';

/** Requests a statement in the form, which the request page links; returns the ticket's id. */
async function askStatement({ page }: Person, { effect, subject, resource, reason }: Statement): Promise<string> {
  await page.goto('/requests/new');
  await page.getByTestId('request-statement').click();
  if (effect === 'Deny') await page.getByTestId('statement-effect').getByText('Deny').click();
  for (const [field, value] of [['subjects', subject], ['actions', 'redis:connect'], ['resources', resource]] as const) {
    await page.getByTestId(`statement-${field}`).fill(value);
    await page.getByTestId(`statement-${field}`).press('Enter');
  }
  await page.getByTestId('request-reason').fill(reason);
  await expect(page.getByTestId('preview')).toContainText('security');
  await page.getByTestId('submit-request').click();
  await page.waitForURL(/\/tickets\/T-\d+$/);
  return page.url().split('/').pop() ?? '';
}

/** Opens a ticket as the first person who may decide it. */
async function openAsApprover(browser: Browser, reader: Person, ticket: string): Promise<Person> {
  const approver = await logIn(browser, (await nextApprovers(reader, ticket))[0] ?? '');
  await approver.page.goto(`/tickets/${ticket}`);
  await expect(approver.page.getByTestId('facts-effect')).toBeVisible();
  await expect(approver.page.getByTestId('facts-hidden')).toHaveCount(0);
  await expect(approver.page.getByTestId('facts-unavailable')).toHaveCount(0);
  return approver;
}

async function reject({ page }: Person, comment: string): Promise<void> {
  await page.getByTestId('decision-comment').fill(comment);
  await page.getByTestId('reject-button').click();
  await expectState(page, 'rejected');
}

test('the approvers of a prefix see what it covers and whom it lets in, and decide', async ({ browser }) => {
  const [alice, carol] = await Promise.all([logIn(browser, 'alice'), logIn(browser, 'carol')]);
  const ticket = await askStatement(alice, { effect: 'Allow', subject: 'app-888', resource: `${clusters}bobs-*`, reason: 'Also the clusters that Bob adds' });

  await test.step('Carol, who owns nothing of it, sees the facts', async () => {
    const { page } = carol;
    await page.goto(`/tickets/${ticket}`);
    await expect(page.getByTestId('facts-covered')).toContainText("Bob's cluster");
    await expect(page.getByTestId('facts-covered')).toContainText('added later');
    await expect(page.getByTestId('facts-subjects')).toContainText('Checkout (888)');
    await expect(page.getByTestId('facts-lets-in')).toContainText('Lets in 1 client');
    await expect(page.getByTestId('facts-lets-in')).toContainText('Checkout (888)');
    await expect(page.getByTestId('facts-cuts-off')).toHaveCount(0);
    await expect(page.getByTestId('facts-observed')).toContainText('Checkout (888)');
    await expect(page.getByTestId('facts-earlier')).toBeVisible();
    await settled(page);
    await shot(page, 'facts-prefix');
    await documentShot(page, 'statement-facts', page.getByTestId('facts-covered'));
  });

  await test.step('Alice, who owns the application, sees the effect on it, and not who else uses the resource', async () => {
    await alice.page.goto(`/tickets/${ticket}`);
    await expect(alice.page.getByTestId('facts-lets-in')).toContainText('Checkout (888)');
    await expect(alice.page.getByTestId('facts-observed')).toHaveCount(0);
    await expect(alice.page.getByTestId('facts-hidden')).toBeVisible();
    await alice.page.getByTestId('ticket-flows').click();
    await expect(alice.page).toHaveURL(/\/flows\?.*q=trnv1/);
  });

  await test.step('for all looks: no serious finding of axe, nothing cut off', async () => {
    for (const look of looks) {
      const { page } = await logInAs(browser, 'carol', look);
      await page.goto(`/tickets/${ticket}`);
      await expect(page.getByTestId('facts-lets-in')).toBeVisible();
      for (const width of [1280, 390]) {
        await page.setViewportSize({ width, height: 1000 });
        expect(await serious(page)).toEqual([]);
        expect(await overflow(page)).toBeLessThanOrEqual(0);
        await shot(page, `facts-prefix-${look.language}-${look.colorScheme}-${width}`);
      }
    }
  });

  const voters = await approveEveryStep(browser, alice, ticket);
  expect(voters.length, `decided by ${voters.join(', ')}`).toBeGreaterThan(1);
  await alice.page.goto(`/tickets/${ticket}`);
  await expectState(alice.page, 'effective');
  const dave = await logIn(browser, 'dave');
  await revoke(dave, ticket, 'End of the test');
  await expectState(dave.page, 'revoked');
});

for (const { title, request, see } of [
  {
    title: 'a range of addresses',
    request: { effect: 'Allow', subject: 'trnv1:rsc:trip-com:net:cidr:172.20.4.0/24', resource: 'bobs-cluster', reason: 'The machines of the old data center' },
    // Other tests register the machines of this range for a while, so what was seen from it depends on them.
    see: { 'facts-subjects': ['172.20.4.0/24'] },
  },
  {
    title: 'anyone',
    request: { effect: 'Allow', subject: '*', resource: 'bobs-cluster', reason: 'It only has public data' },
    see: { 'facts-subjects': ['Anyone'], 'facts-lets-in': ['Suggest (889)', 'Checkout (888)'], 'facts-observed': ['Suggest (889)', 'without a name'] },
  },
  {
    title: 'a deny of a prefix',
    request: { effect: 'Deny', subject: 'trnv1:rsc:trip-com:iam:sa:app/7*', resource: `${clusters}*`, reason: 'The ledger moves away from these' },
    see: { 'facts-covered': ['added later', 'Ledger DB cache'], 'facts-cuts-off': ['Billing (777)', 'last seen'], 'facts-observed': ['Billing (777)'] },
  },
] as const) {
  test(`the approver of ${title} sees whom it concerns, and decides`, async ({ browser }) => {
    const bob = await logIn(browser, 'bob');
    const ticket = await askStatement(bob, request);
    const approver = await openAsApprover(browser, bob, ticket);
    for (const [part, texts] of Object.entries(see)) for (const text of texts) await expect(approver.page.getByTestId(part)).toContainText(text);
    expect(await serious(approver.page)).toEqual([]);
    await settled(approver.page);
    await shot(approver.page, `facts-${title.replaceAll(' ', '-')}`);
    await reject(approver, 'Too wide');
    await bob.page.goto(`/tickets/${ticket}`);
    await expectState(bob.page, 'rejected');
  });
}

test('the approver of a registration sees what its addresses reach', async ({ browser }) => {
  const alice = await logIn(browser, 'alice');
  const response = await alice.page.request.post('/api/v1/tickets', {
    headers: { 'X-ACP-Request': '1', Origin: ready().portalURL },
    data: { kind: 'workload', reason: 'The old checkout moves here', items: [{ application: 'app-888', workload: { id: 'old-checkout', addresses: ['192.0.2.0/28'] } }] },
  });
  expect(response.status(), await response.text()).toBe(201);
  const { id } = (await response.json()) as { id: string };
  const approver = await logIn(browser, (await nextApprovers(alice, id))[0] ?? '');
  await approver.page.goto(`/tickets/${id}`);
  await expect(approver.page.getByTestId('facts-addresses')).toContainText('192.0.2.0/28');
  await expect(approver.page.getByTestId('facts-by-address')).toBeVisible();
  await expect(approver.page.getByTestId('facts-address-use')).toBeVisible();
  await expect(approver.page.getByTestId('facts-reached')).toContainText('Orders cache');
  expect(await serious(approver.page)).toEqual([]);
  await shot(approver.page, 'facts-registration');
  await alice.page.goto(`/tickets/${id}`);
  await expect(alice.page.getByTestId('facts-by-address')).toHaveCount(0);
  await reject(approver, 'Not these machines');
});

import { kube } from './cluster.js';
import { guest, ready, remembered } from './fleet.js';
import { serious } from './looks.js';
import { approve, expectState, fillLogin, fleetTimeout, logIn, type Person } from './people.js';
import { buttonOf, linkOf, webhookAnswers, buttonPressBody, receiverKey, receiverName, signed, signedBySlack, slackCalls, slackSecret, slackUser, type WebhookAnswer } from './receiver.js';
import { documentShot, shot } from './shots.js';
import { expect, test, type Locator } from './test.js';
import { submit, version, withdraw, withPolicy, writing } from './tickets.js';

function step(page: Person['page'], name: string): Locator {
  return page.getByTestId(`timeline-step-${name}`);
}

test('a sensitive decision asks for a recent login, keeps the comment, and then counts', async ({ browser }) => {
  const [alice, oscar] = await Promise.all([logIn(browser, 'alice'), logIn(browser, remembered)]);
  const two = { name: 'two', approvers: [`person:${remembered}`, 'person:nadia'], quorum: 'All' };
  await withPolicy(alice, 'two-of-security', { application: 'app-888', resource: 'ledger-db-cache' }, [two], async () => {
    const ticket = await submit(alice, 'app-888', 'ledger-db-cache');
    const { page } = oscar;
    await page.goto(`/tickets/${ticket}`);
    await page.getByTestId('decision-comment').fill('I have read the plan');
    await page.getByTestId('approve-button').click();
    await expect(page.getByTestId('login-again')).toBeVisible();
    await alice.page.goto(`/tickets/${ticket}`);
    await expect(step(alice.page, 'two')).toBeVisible();
    await expect(alice.page.getByTestId(`vote-${remembered}`), 'nothing is decided yet').toHaveCount(0);
    await shot(page, 'workflow-login-again');
    expect(await serious(page)).toEqual([]);

    await page.getByTestId('login-again').click();
    await fillLogin(page, remembered, 'demo');
    await page.waitForURL(new RegExp(`/tickets/${ticket}$`));
    await expect(page.getByTestId('decision-comment')).toHaveValue('I have read the plan');
    await page.getByTestId('approve-button').click();
    await expect(alice.page.getByTestId(`vote-${remembered}`)).toContainText('I have read the plan');
    await withdraw(alice, ticket);
  });
  await Promise.all([alice, oscar].map(({ context }) => context.close()));
});

test('a message in Slack about a sensitive request has no button that decides, but a link that leads through a recent login', async ({ browser }) => {
  const [alice, oscar] = await Promise.all([logIn(browser, 'alice'), logIn(browser, remembered)]);
  const user = slackUser(remembered);
  const two = { name: 'two', approvers: [`person:${remembered}`, 'person:nadia'], quorum: 'All' };
  await withPolicy(alice, 'two-by-slack', { application: 'app-888', resource: 'ledger-db-cache' }, [two], async () => {
    const ticket = await submit(alice, 'app-888', 'ledger-db-cache');
    await expect.poll(() => linkOf(ticket, user), { timeout: fleetTimeout, message: 'Oscar has a message with a link' }).toBeTruthy();
    expect(await buttonOf(ticket, user, 'acp_approve'), 'it is too sensitive to decide in Slack').toBeUndefined();
    const link = (await linkOf(ticket, user)) ?? '';
    expect(link.startsWith(`${ready().portalURL}/`), link).toBe(true);

    const { page } = oscar;
    await page.goto(link);
    await page.getByTestId('decision-comment').fill('I came from Slack');
    await page.getByTestId('approve-button').click();
    await page.getByTestId('login-again').click();
    await fillLogin(page, remembered, 'demo');
    await page.waitForURL(new RegExp(`/tickets/${ticket}$`));
    await expect(page.getByTestId('decision-comment')).toHaveValue('I came from Slack');
    await page.getByTestId('approve-button').click();
    await alice.page.goto(`/tickets/${ticket}`);
    await expect(alice.page.getByTestId(`vote-${remembered}`)).toContainText('I came from Slack');
    await withdraw(alice, ticket);
  });
  await Promise.all([alice, oscar].map(({ context }) => context.close()));
});

test('a short request is approved automatically, unless a condition denies that', async ({ browser }) => {
  const [alice, dave] = await Promise.all([logIn(browser, 'alice'), logIn(browser, 'dave')]);
  const step = { name: 'quick', approvers: ['resource.owner'], autoApprove: 'true' };
  const denies = { denyAutoApprove: ['request.permanent || request.duration > duration("1h")'] };
  await withPolicy(alice, 'quick-deals', { application: 'app-888', resource: 'deals-cache' }, [step], async () => {
    await test.step('the policy says so', async () => {
      await dave.page.goto('/policies');
      await expect(dave.page.getByTestId('policy-quick-deals').getByTestId('deny-auto-approve')).toContainText('duration("1h")');
    });
    const long = await submit(alice, 'app-888', 'deals-cache', 7200);
    await test.step('two hours wait for an owner', async () => {
      await alice.page.goto(`/tickets/${long}`);
      await expectState(alice.page, 'pending');
      await expect(alice.page.getByRole('main')).not.toContainText('Approved automatically');
      await withdraw(alice, long);
    });
    const short = await submit(alice, 'app-888', 'deals-cache', 1800);
    await test.step('half an hour waits for nobody, and the ticket says why', async () => {
      await alice.page.goto(`/tickets/${short}`);
      await expectState(alice.page, 'effective');
      await expect(alice.page.getByRole('main')).toContainText('Approved automatically');
      await shot(alice.page, 'workflow-automatic');
    });
    await alice.page.getByTestId('revoke-button').click();
    await alice.page.getByTestId('revoke-reason').fill('End of the test');
    await alice.page.getByTestId('revoke-confirm').click();
    await expectState(alice.page, 'revoked');
  }, denies);
  await Promise.all([alice, dave].map(({ context }) => context.close()));
});

/** A person can still decide: the page offers it, and has no vote of theirs. */
async function undecided({ name, page }: Person, ticket: string, why: string): Promise<void> {
  await page.goto(`/tickets/${ticket}`);
  await expect(page.getByTestId('approve-button'), why).toBeVisible();
  await expect(page.getByTestId(`vote-${name}`), why).toHaveCount(0);
}

test('a button in Slack decides, and the ticket says so; forged, repeated and outdated requests, and those of others, change nothing', async ({ browser }) => {
  const [alice, carol] = await Promise.all([logIn(browser, 'alice'), logIn(browser, 'carol')]);
  const user = slackUser('carol');
  const ticket = await submit(alice, 'app-888', 'hotel-cache');
  await expect.poll(() => buttonOf(ticket, user, 'acp_approve'), { timeout: fleetTimeout, message: 'Carol has a message with buttons' }).toBeTruthy();
  const value = (await buttonOf(ticket, user, 'acp_approve')) ?? '';
  const press = async (changes: { user?: string; secret?: string; at?: Date }): Promise<number> => {
    const body = buttonPressBody(changes.user ?? user, { action: 'acp_approve', value });
    const headers = signedBySlack(changes.secret ?? slackSecret(), changes.at ?? new Date(), body);
    return (await fetch(`${ready().portalURL}/integrations/slack/interactions`, { method: 'POST', headers, body })).status;
  };
  await test.step('forged and late requests, and people who did not get the message', async () => {
    expect(await press({ secret: '0'.repeat(32) }), 'signed with another secret').toBe(401);
    expect(await press({ at: new Date(Date.now() - 6 * 60_000) }), 'six minutes ago').toBe(401);
    expect(await press({ user: slackUser('bob') }), 'somebody else').toBe(200);
    await expect.poll(async () => (await slackCalls(ticket)).some(({ channel, method }) => method === 'chat.postMessage' && channel === 'D1'), 'whoever pressed it is told below the message').toBe(true);
    await undecided(carol, ticket, 'forged');
  });
  await test.step('Carol’s counts once', async () => {
    const at = new Date();
    expect(await press({ at })).toBe(200);
    await expect(carol.page.getByTestId('vote-carol'), 'the open page shows it').toContainText('Slack');
    const before = await version(alice, ticket);
    expect(await press({ at }), 'repeated').toBe(409);
    expect(await press({ at: new Date(at.getTime() + 1000) }), 'the message is outdated').toBe(200);
    await expect.poll(async () => (await slackCalls(ticket)).filter(({ method }) => method === 'chat.update').length, 'the button says what became of it').toBeGreaterThan(1);
    expect(await version(alice, ticket)).toBe(before);
    await shot(carol.page, 'workflow-slack');
  });
  await withdraw(alice, ticket);
  await Promise.all([alice, carol].map(({ context }) => context.close()));
});

test('a signed answer of a receiver decides, and the ticket says where it came from; forged, repeated and outdated ones change nothing', async ({ browser }) => {
  const [alice, carol] = await Promise.all([logIn(browser, 'alice'), logIn(browser, 'carol')]);
  const key = receiverKey();
  const offered = async (ticket: string): Promise<WebhookAnswer> => {
    await expect.poll(async () => (await webhookAnswers(ticket)).length, { timeout: fleetTimeout, message: `the receiver was told of ${ticket}` }).toBeGreaterThan(0);
    const [offer] = await webhookAnswers(ticket);
    if (!offer) throw new Error(`no offer for ${ticket}`);
    return offer;
  };
  const answer = async ({ url, ticket, version, digest, token, expires }: WebhookAnswer, changes: { person?: string; key?: string; id?: string; at?: Date }): Promise<number> => {
    const body = JSON.stringify({ ticket, version, digest, token, expires, decision: 'approve', comment: 'Approved in the other system', person: { id: changes.person ?? 'carol' } });
    const response = await fetch(url, { method: 'POST', headers: signed(changes.key ?? key, changes.id ?? crypto.randomUUID(), changes.at ?? new Date(), body), body });
    return response.status;
  };
  const unchanged = (ticket: string, why: string) => undecided(carol, ticket, why);

  const outdated = await submit(alice, 'app-888', 'hotel-cache');
  await test.step('a ticket that changed is not decided by what was offered before', async () => {
    const offer = await offered(outdated);
    await carol.page.goto(`/tickets/${outdated}`);
    await carol.page.getByTestId('decision-comment').fill('For how long?');
    await carol.page.getByTestId('comment-only').click();
    await expect(carol.page.getByTestId('timeline-comment')).toContainText('For how long?');
    expect(await answer(offer, {})).toBe(409);
    await unchanged(outdated, 'outdated');
    await withdraw(alice, outdated);
  });

  const ticket = await submit(alice, 'app-888', 'hotel-cache');
  const offer = await offered(ticket);
  await test.step('neither do forged and late requests, and other people', async () => {
    const other = `whsec_${Buffer.from('another key of thirty-two bytes.').toString('base64')}`;
    expect(await answer(offer, { key: other }), 'signed with another key').toBe(401);
    expect(await answer(offer, { at: new Date(Date.now() - 6 * 60_000) }), 'six minutes ago').toBe(401);
    expect(await answer({ ...offer, token: '0'.repeat(offer.token.length) }, {}), 'not offered').toBe(403);
    expect(await answer(offer, { person: 'alice' }), 'the requester').toBe(403);
    expect([403, 404], 'somebody else').toContain(await answer(offer, { person: 'erin' }));
    await unchanged(ticket, 'forged');
  });
  await test.step('the answer of Carol counts once', async () => {
    const id = crypto.randomUUID();
    expect(await answer(offer, { id })).toBe(200);
    await expect(carol.page.getByTestId('vote-carol'), 'the open page shows it').toContainText(receiverName);
    await expect(carol.page.getByTestId('vote-carol')).toContainText('Approved in the other system');
    const before = await version(alice, ticket);
    expect(await answer(offer, { id }), 'repeated').toBe(409);
    expect(await answer(offer, {}), 'with another id').toBe(409);
    expect(await version(alice, ticket)).toBe(before);
    await shot(carol.page, 'workflow-answer');
    expect(await serious(carol.page)).toEqual([]);
  });
  await withdraw(alice, ticket);
  await Promise.all([alice, carol].map(({ context }) => context.close()));
});

interface Requested {
  status?: { ticket?: string; state?: string; conditions?: { type: string; status: string; reason: string }[] };
}

test('an AccessRequest of the host cluster becomes a ticket, its owners decide, and its status says what became of it', async ({ browser }) => {
  const [alice, bob] = await Promise.all([logIn(browser, 'alice'), logIn(browser, 'bob')]);
  const namespace = 'shop-e2e';
  const path = `/apis/acp.io/v1alpha1/namespaces/${namespace}/accessrequests`;
  const read = async () => ((await kube('host', 'GET', `${path}/carts`)) as Requested | undefined)?.status;
  const condition = async (type: string) => (await read())?.conditions?.find((each) => each.type === type);
  await kube('host', 'POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels: { 'acp.io/app-id': 'app-888' } } });
  const spec = {
    access: [{ resource: 'trnv1:rsc:trip-com:redis:clusters:bobs-cluster', actions: ['redis:connect'] }],
    reason: 'The shop keeps its carts there', duration: '24h',
  };
  const object = { apiVersion: 'acp.io/v1alpha1', kind: 'AccessRequest', metadata: { name: 'carts' } };
  await expect(kube('host', 'POST', path, { ...object, spec: { ...spec, requestedBy: 'somebody-else' } }), 'in the name of others').rejects.toThrow('requestedBy');
  await kube('host', 'POST', path, { ...object, spec: { ...spec, requestedBy: 'playground-admin' } });
  await expect.poll(async () => (await read())?.ticket, { timeout: fleetTimeout, message: 'it has a ticket' }).toMatch(/^T-\d+$/);
  const ticket = (await read())?.ticket ?? '';
  expect((await condition('Approved'))?.status).toBe('False');

  await test.step('Alice, who owns the application, finds it among what waits', async () => {
    await alice.page.goto(`/approvals?ticket=${ticket}`);
    await expect(alice.page.getByTestId('timeline-step-application')).toBeVisible();
    await expect(alice.page.locator('main')).toContainText('The shop keeps its carts there');
    await shot(alice.page, 'workflow-access-request');
    expect(await serious(alice.page)).toEqual([]);
    await approve(alice, ticket);
  });
  await approve(bob, ticket);
  await expectState(bob.page, 'effective');
  for (const type of ['Accepted', 'Approved', 'Realized']) {
    await expect.poll(async () => (await condition(type))?.status, { timeout: fleetTimeout, message: type }).toBe('True');
  }
  await test.step('without the object there is no access', async () => {
    await kube('host', 'DELETE', `${path}/carts`);
    await expectState(bob.page, 'revoked');
    await kube('host', 'DELETE', `/api/v1/namespaces/${namespace}`);
  });
  await Promise.all([alice, bob].map(({ context }) => context.close()));
});

test('a SCIM client provisions a person and a group, who logs in and approves; without them, nothing of it is left', async ({ browser, playwright }) => {
  const [alice, dave] = await Promise.all([logIn(browser, 'alice'), logIn(browser, 'dave')]);
  const made = await dave.page.request.post('/api/v1/me/tokens', { headers: writing(), data: { name: 'provisioning', scopes: ['catalog:write'], expiresInSeconds: 3600 } });
  expect(made.status(), await made.text()).toBe(201);
  const { secret, token } = (await made.json()) as { secret: string; token: { id: string } };
  const client = await playwright.request.newContext({ baseURL: ready().portalURL, extraHTTPHeaders: { authorization: `Bearer ${secret}`, 'content-type': 'application/scim+json' } });

  await test.step('before, the person is unknown', async () => {
    const context = await browser.newContext({ baseURL: ready().portalURL });
    const page = await context.newPage();
    await page.goto('/login');
    await page.getByTestId('login-button').click();
    await fillLogin(page, guest, 'demo');
    await expect(page.getByTestId('login-error')).toHaveAttribute('data-value', 'unknown-person');
    await context.close();
  });
  const user = { schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'], userName: guest, displayName: 'Zora Quist', emails: [{ value: 'zora@trip.example', primary: true }] };
  const group = { schemas: ['urn:ietf:params:scim:schemas:core:2.0:Group'], displayName: 'Night shift', members: [{ value: guest }] };
  expect((await client.post('/scim/v2/Users', { data: user })).status()).toBe(201);
  expect((await client.post('/scim/v2/Groups', { data: group })).status()).toBe(201);
  expect((await client.get('/api/v1/tickets')).status(), 'the token is for nothing else').toBe(403);

  await test.step('the security team sees both in the catalog, and where they come from', async () => {
    await dave.page.goto('/catalog/entities?kind=person&q=zora');
    await expect(dave.page.locator('main')).toContainText('Zora Quist');
    await dave.page.goto('/catalog/entities?kind=group&q=Night');
    await expect(dave.page.locator('main')).toContainText('Night shift');
    await shot(dave.page, 'workflow-scim');
  });

  const steps = [{ name: 'night', approvers: ['group:Night-shift'] }];
  await withPolicy(alice, 'night-shift', { application: 'app-676', resource: 'bobs-cluster' }, steps, async () => {
    const first = await submit(alice, 'app-676', 'bobs-cluster');
    const zora = await logIn(browser, guest);
    await test.step('Zora logs in, and decides what waits for the group', async () => {
      await zora.page.goto('/approvals');
      await zora.page.getByTestId('decision-comment').fill('Not at night');
      await zora.page.getByTestId('reject-button').click();
      await alice.page.goto(`/tickets/${first}`);
      await expectState(alice.page, 'rejected');
      await expect(alice.page.getByTestId(`vote-${guest}`)).toContainText('Zora Quist');
    });
    await test.step('deprovisioned, Zora is logged out and approves nothing', async () => {
      const second = await submit(alice, 'app-676', 'bobs-cluster');
      await zora.page.goto(`/tickets/${second}`);
      await expect(zora.page.getByTestId('approve-button')).toBeVisible();
      // Entra ID sends the boolean as a text.
      const deactivated = { schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'], Operations: [{ op: 'Replace', path: 'active', value: 'False' }] };
      const answer = await client.patch(`/scim/v2/Users/${guest}`, { data: deactivated });
      expect(answer.status(), await answer.text()).toBe(200);
      await zora.page.goto('/approvals');
      await expect(zora.page).toHaveURL(/\/login/);
      await withdraw(alice, second);
      const again = await alice.page.request.post('/api/v1/tickets', { headers: writing(), data: { reason: 'Who decides?', items: [{ application: 'app-676', resource: 'bobs-cluster', actions: ['redis:connect'] }] } });
      expect(again.status(), 'nobody of the group is left').toBeGreaterThanOrEqual(400);
    });
    await zora.context.close();
  });
  for (const path of [`Users/${guest}`, 'Groups/Night-shift']) expect((await client.delete(`/scim/v2/${path}`)).status(), path).toBe(204);
  expect((await dave.page.request.delete(`/api/v1/me/tokens/${token.id}`, { headers: writing() })).status()).toBe(204);
  expect((await client.get('/scim/v2/Users')).status()).toBe(401);
  await client.dispose();
  await Promise.all([alice, dave].map(({ context }) => context.close()));
});

test('an owner revokes what is unused from the list; the security team begins a review of it', async ({ browser }) => {
  const [alice, bob, carol, dave] = await Promise.all(['alice', 'bob', 'carol', 'dave'].map((name) => logIn(browser, name)));
  if (!alice || !bob || !carol || !dave) throw new Error('somebody is not logged in');
  const ticket = await submit(alice, 'app-888', 'bobs-cluster');
  await approve(carol, ticket);
  await approve(bob, ticket);
  await expectState(bob.page, 'effective');

  const seeded = 'refunds-uses-orders-cache';
  await test.step('the list has the grant of the demo that nobody has used for weeks, with the evidence', async () => {
    await bob.page.goto('/unused');
    const row = bob.page.getByTestId(`unused-row-${seeded}`);
    await expect(row).toContainText('Orders cache');
    await expect(row).toContainText(/never|not used|No connection/i);
    await expect(bob.page.getByTestId(`unused-${seeded}`), 'it came from no ticket, so no revocation ends it').toHaveCount(0);
    await shot(bob.page, 'workflow-unused-seeded');
    await documentShot(bob.page, 'unused');
    await row.getByRole('link', { name: /^Connections/ }).click();
    await expect(bob.page).toHaveURL(new RegExp(`sid=${seeded}`));
  });

  // A grant by a ticket of this fleet is minutes old, so the row of the list is given the ticket. The portal decides about the revocation.
  await bob.page.route('**/api/v1/unused?*', async (route) => {
    const response = await route.fetch();
    const list = (await response.json()) as { items: { sid: string }[] };
    const items = list.items.map((each) => (each.sid === seeded ? { ...each, ticket, ticketItem: 0, ticketVisible: true, canRevoke: true } : each));
    await route.fulfill({ response, json: { ...list, items } });
  });
  await bob.page.goto('/unused');
  await bob.page.getByTestId(`unused-${seeded}`).check();
  await bob.page.getByTestId('revoke-unused').click();
  await bob.page.getByTestId('revoke-many-reason').fill('Nobody uses it');
  await bob.page.getByTestId('revoke-many-confirm').click();
  await expect(bob.page.getByTestId('revoke-results').locator('li')).toHaveAttribute('data-value', 'ok');
  await shot(bob.page, 'workflow-unused');
  await alice.page.goto(`/tickets/${ticket}`);
  await expectState(alice.page, 'revoked');

  await dave.page.goto('/unused?class=redis');
  await dave.page.getByTestId('unused-review').click();
  await expect(dave.page).toHaveURL(/\/reviews\/new\?class=redis$/);
  await expect(dave.page.getByTestId('review-name')).toBeVisible();
  await Promise.all([alice, bob, carol, dave].map(({ context }) => context.close()));
});

test('more tickets than one call takes are decided together, with their number in a progress bar', async ({ browser }) => {
  const [alice, carol] = await Promise.all([logIn(browser, 'alice'), logIn(browser, 'carol')]);
  const many = 101;
  const resources: { id: string; sensitivity: string; actions: { name: string }[] }[] = [];
  for (let cursor: string | undefined = ''; cursor !== undefined; ) {
    const list = (await (await alice.page.request.get(`/api/v1/resources?limit=100${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`)).json()) as { items: typeof resources; nextCursor?: string };
    resources.push(...list.items);
    cursor = list.nextCursor;
  }
  const pairs = resources.flatMap(({ id, sensitivity, actions }) => (sensitivity === 'high' ? [] : actions.slice(0, 1).flatMap(({ name }) => ['app-888', 'app-676'].map((application) => ({ application, resource: id, action: name })))));
  const tickets: string[] = [];
  while (tickets.length < many && pairs.length > 0) {
    const part = pairs.splice(0, Math.min(4, many - tickets.length));
    const answers = await Promise.all(part.map(({ application, resource, action }) =>
      alice.page.request.post('/api/v1/tickets', { headers: writing(), data: { reason: 'One of many', items: [{ application, resource, actions: [action] }] } })));
    for (const each of answers) if (each.status() === 201) tickets.push(((await each.json()) as { id: string }).id); // what policies refuse is left out
  }
  expect(tickets).toHaveLength(many);
  await alice.page.goto('about:blank'); // a page of the portal reads again what each decision changes

  const { page } = carol;
  await test.step('Home shows the oldest, and tells how many it leaves out', async () => {
    const home = (await (await page.request.get('/api/v1/home')).json()) as { waiting: unknown[]; waitingCount: number };
    expect(home.waitingCount).toBeGreaterThanOrEqual(many);
    await page.goto('/');
    await expect(page.getByTestId('waits-more')).toContainText(`${home.waitingCount - home.waiting.length} more requests`);
    await shot(page, 'workflow-home-more');
    await page.getByTestId('waits-more').getByRole('link').click();
    await expect(page).toHaveURL(/\/approvals$/);
  });
  await page.goto('/approvals?q=One%20of%20many');
  await expect(async () => {
    const more = page.getByTestId('load-more');
    if (await more.isVisible()) await more.click();
    await expect(page.getByLabel(`Select all ${many}`)).toBeVisible({ timeout: 2000 });
  }).toPass({ timeout: fleetTimeout });
  await page.getByTestId('select-all').check();
  await page.getByTestId('bulk-reject').click();
  await page.getByTestId('bulk-comment').fill('Ask one by one');
  let calls = 0;
  const progress = page.getByTestId('sent-progress');
  await page.route('**/api/v1/tickets/decisions', async (route) => {
    calls++;
    if (calls === 2) await expect(progress).toContainText(`100 of ${many}`);
    await route.continue();
  });
  await page.getByTestId('bulk-confirm').click();
  await expect(page.getByTestId('bulk-results').locator('[data-value="ok"]')).toHaveCount(many, { timeout: fleetTimeout });
  expect(calls).toBe(2);
  await shot(page, 'workflow-bulk');
  await page.getByTestId('bulk-close').click();
  await expect(page.getByTestId('select-all')).toHaveCount(0);
  await Promise.all([alice, carol].map(({ context }) => context.close()));
});


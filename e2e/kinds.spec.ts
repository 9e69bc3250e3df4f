import { approve, approveEveryStep, ask, expectState, expectTraffic, fleetTimeout, logIn, type Person, requestAccess, revoke } from './people.js';
import { ready } from './fleet.js';
import { logInAs, looks, overflow, serious } from './looks.js';
import { shot } from './shots.js';
import { expect, test, type Page } from './test.js';

const reachable = 'application=app-888&resource=bobs-cluster';

/** Every kind of ticket, requested and decided in the UI. */
test('several resources at once are one ticket, decided in bulk and item by item', async ({ browser }) => {
  const [alice, bob, carol, frank] = await Promise.all([logIn(browser, 'alice'), logIn(browser, 'bob'), logIn(browser, 'carol'), logIn(browser, 'frank')]);
  const ticket = await ask(alice, `${reachable}&resource=orders-cache`, 'The new checkout reads both', async (page) => {
    await expect(page.getByTestId('basket-orders-cache').getByRole('checkbox')).toBeChecked();
    await expect(page.getByTestId('preview')).toContainText('Bob Tanaka');
    await expect(page.getByTestId('preview').getByTestId('diff-object').first()).toBeVisible();
    await shot(page, 'kinds-basket');
  });
  await expect(alice.page.getByTestId('items').getByRole('listitem').filter({ has: alice.page.getByTestId('item-toggle-1') })).toHaveCount(1);

  await test.step('Carol selects it with the keyboard and approves both items at once', async () => {
    await carol.page.goto(`/approvals?ticket=${ticket}`);
    await expect(carol.page.getByTestId(`approval-${ticket}`)).toHaveAttribute('aria-current', 'true');
    await carol.page.keyboard.press('x');
    await carol.page.getByTestId('bulk-approve').click();
    await expect(carol.page.getByTestId('bulk-summary').getByRole('listitem').filter({ hasText: 'Lets Checkout (888) reach' })).not.toHaveCount(0);
    await shot(carol.page, 'kinds-bulk');
    await carol.page.getByTestId('bulk-confirm').click();
    await expect(carol.page.getByTestId(`result-${ticket}`).first()).toHaveAttribute('data-value', 'ok');
    await carol.page.getByTestId('bulk-close').click();
  });

  await test.step('Bob owns both and decides about one; Frank owns the other with them', async () => {
    await bob.page.goto(`/tickets/${ticket}`);
    await bob.page.getByTestId('decision-about').click();
    await bob.page.getByRole('option', { name: "Checkout (888) to Bob's cluster" }).click();
    await bob.page.getByTestId('approve-button').click();
    await expect(alice.page.getByTestId('item-state-0')).toHaveAttribute('data-value', 'effective', { timeout: fleetTimeout });
    await expect(alice.page.getByTestId('item-state-1')).toHaveAttribute('data-value', 'pending');
    await expectState(alice.page, 'pending');
    await approve(frank, ticket);
    await expectState(alice.page, 'effective');
    await shot(alice.page, 'kinds-items');
  });

  await test.step('one item is taken back, the other stays', async () => {
    await alice.page.getByTestId('item-revoke-1').click();
    await alice.page.getByTestId('revoke-reason').fill('Only the carts are read');
    await alice.page.getByTestId('revoke-confirm').click();
    await expect(alice.page.getByTestId('item-state-1')).toHaveAttribute('data-value', 'revoked', { timeout: fleetTimeout });
    await expect(alice.page.getByTestId('item-state-0')).toHaveAttribute('data-value', 'effective');
  });
  await revokeAll(alice, ticket);
});

test('two applications and two resources are one ticket of four items, which the owners decide', async ({ browser }) => {
  const [alice, bob] = await Promise.all([logIn(browser, 'alice'), logIn(browser, 'bob')]);
  const { page } = alice;
  await page.goto('/requests/new?application=app-888');
  await test.step('Alice adds an application and chooses both resources', async () => {
    await page.getByTestId('several-applications').click();
    await page.getByTestId('select-applications').fill('676');
    await page.getByRole('option', { name: 'Reports (676)' }).click();
    for (const [typed, title, id] of [['bobs', "Bob's cluster", 'bobs-cluster'], ['orders', 'Orders cache', 'orders-cache']] as const) {
      await page.getByTestId('select-resource').fill(typed);
      await page.getByRole('option', { name: `${title} redis` }).click(); // not its staging
      await expect(page.getByTestId(`basket-${id}`).getByRole('checkbox')).toBeChecked();
    }
  });

  await test.step('the preview tells who decides about each item, and what changes', async () => {
    const preview = page.getByTestId('preview');
    for (const application of ['Checkout (888)', 'Reports (676)']) {
      for (const resource of ["Bob's cluster", 'Orders cache']) await expect(preview).toContainText(`${application} → ${resource}`);
    }
    await expect(preview).toContainText('Bob Tanaka');
    await expect(preview).toContainText('Frank');
    await expect(preview.getByTestId('diff-object').first()).toBeVisible();
    // While it is computed for the last selection, a placeholder is shown.
    await expect(page.getByTestId('preview-impact')).toHaveAttribute('aria-busy', 'false');
    expect(await serious(page)).toEqual([]);
    await shot(page, 'kinds-several-applications');
  });

  await page.getByTestId('request-reason').fill('Both read the carts and the orders');
  await page.getByTestId('submit-request').click();
  await page.waitForURL(/\/tickets\/T-\d+$/);
  const ticket = page.url().split('/').pop() ?? '';
  await expect(page.getByTestId('item-state-3')).toHaveAttribute('data-value', 'pending');

  await test.step('every owner decides the items of their resources', async () => {
    const voters = await approveEveryStep(browser, bob, ticket, true);
    expect(voters).toContain('bob');
    expect(voters).toContain('carol');
    for (const position of [0, 1, 2, 3]) await expect(page.getByTestId(`item-state-${position}`)).toHaveAttribute('data-value', 'effective', { timeout: fleetTimeout });
    await shot(page, 'kinds-several-applications-decided');
  });
  await revoke(alice, ticket, 'End of the test');
  await expectState(page, 'revoked');
  await Promise.all([alice.context.close(), bob.context.close()]);
});

test('access at certain hours is given only during them', async ({ browser }) => {
  const [alice, bob, carol] = await Promise.all([logIn(browser, 'alice'), logIn(browser, 'bob'), logIn(browser, 'carol')]);
  const during = async (from: number, to: number, reason: string): Promise<string> => {
    const ticket = await ask(alice, reachable, reason, async (page) => {
      await page.getByTestId('hours-only').check({ force: true });
      for (const day of ['Sat', 'Sun']) await page.getByText(day, { exact: true }).click();
      const clock = (hours: number) => page.evaluate((after) => new Date(Date.now() + after * 3_600_000).toTimeString().slice(0, 5), hours);
      await page.getByTestId('hours-0-from').fill(await clock(from));
      await page.getByTestId('hours-0-to').fill(await clock(to));
      await expect(page.getByTestId('preview')).toContainText('timeZone');
      await shot(page, 'kinds-hours');
    });
    await carol.page.goto(`/tickets/${ticket}`);
    await expect(carol.page.getByTestId('ticket-hours')).toContainText('Mon–Sun');
    await expect(carol.page.getByTestId('decision-bar')).toContainText('Only during Mon–Sun');
    await shot(carol.page, 'kinds-hours-decision');
    await approve(carol, ticket);
    await approve(bob, ticket);
    await expectState(alice.page, 'effective');
    return ticket;
  };

  const closed = await during(2, 3, 'The nightly export');
  await expect(alice.page.getByText('The access is outside of its hours').first()).toBeVisible({ timeout: fleetTimeout });
  await expectTraffic(alice, 'bobs-cluster', { application: 'app-888', port: 6379, verdict: 'dropped' }, new Date());
  await bob.page.goto('/resources/bobs-cluster');
  await expect(bob.page.getByTestId('access-table').getByTestId('hours').first()).toContainText('Mon–Sun');
  await shot(bob.page, 'kinds-hours-access');

  const open = await during(-1, 3, 'And the checkout');
  await expectTraffic(alice, 'bobs-cluster', { application: 'app-888', port: 6379, verdict: 'forwarded' }, new Date());
  for (const ticket of [closed, open]) {
    await revoke(alice, ticket, 'End of the test');
    await expectState(alice.page, 'revoked');
  }
});

for (const look of looks) {
  test(`the form with hours in ${look.language}, ${look.colorScheme}: no serious finding of axe, nothing cut off`, async ({ browser }) => {
    const { page } = await logInAs(browser, 'alice', look);
    await page.goto(`/requests/new?${reachable}`);
    await page.getByTestId('hours-only').check({ force: true });
    await page.getByTestId('hours-add').click();
    await page.getByTestId('hours-0-to').fill('09:00');
    await page.getByTestId('request-reason').fill('At night');
    await page.getByTestId('submit-request').click();
    await expect(page.locator('[data-field="hours"]')).toContainText(look.language === 'en' ? 'two different times' : '两个不同的时间');
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 1000 });
      expect(await serious(page)).toEqual([]);
      expect(await overflow(page)).toBeLessThanOrEqual(0);
      await page.getByTestId('hours-zone').scrollIntoViewIfNeeded();
      await shot(page, `kinds-hours-form-${look.language}-${look.colorScheme}-${width}`);
    }
  });
}

test('a grant is extended; who may not end it asks those who may', async ({ browser }) => {
  const [alice, bob, carol] = await Promise.all([logIn(browser, 'alice'), logIn(browser, 'bob'), logIn(browser, 'carol')]);
  const ticket = await requestAccess(alice, { application: 'app-888', resource: 'bobs-cluster', reason: 'Carts' });
  await approve(carol, ticket);
  await approve(bob, ticket);
  await expectState(alice.page, 'effective');

  await test.step('asking again for the same is asking for more time', async () => {
    await alice.page.goto(`/requests/new?${reachable}`);
    await alice.page.getByText('30 days', { exact: true }).click();
    await expect(alice.page.getByTestId('preview-extends')).toContainText(ticket);
    await alice.page.goto(`/tickets/${ticket}`);
  });

  const extension = await test.step('Alice asks for more time, with the reason that held so far', async () => {
    await alice.page.getByTestId('extend-button').click();
    await expect(alice.page.getByTestId('extend-reason')).toHaveValue(/Carts/);
    await alice.page.getByTestId('extend-dialog').getByText('30 days', { exact: true }).click();
    await expect(alice.page.getByTestId('extend-dialog').getByTestId('preview-step-owner')).toContainText('Bob Tanaka');
    await alice.page.getByTestId('extend-confirm').click();
    await alice.page.waitForURL((url) => /T-\d+$/.test(url.pathname) && !url.pathname.endsWith(ticket));
    return alice.page.url().split('/').pop() ?? '';
  });
  await expect(alice.page.getByTestId('kind-badge')).toHaveAttribute('data-value', 'extend');
  await approve(carol, extension);
  await approve(bob, extension);
  await expectState(alice.page, 'effective');
  await shot(alice.page, 'kinds-extend');

  const end = await test.step('Carol may not end it, and asks Bob', async () => {
    await carol.page.goto(`/tickets/${ticket}`);
    await expect(carol.page.getByTestId('revoke-button')).toHaveCount(0);
    await carol.page.getByTestId('ask-end').click();
    await carol.page.getByTestId('request-reason').fill('The team gave the project up');
    await carol.page.getByTestId('submit-request').click();
    await carol.page.waitForURL((url) => /T-\d+$/.test(url.pathname) && !url.pathname.endsWith(ticket));
    return carol.page.url().split('/').pop() ?? '';
  });
  await approve(bob, end);
  await expectState(carol.page, 'effective');
  await alice.page.goto(`/tickets/${ticket}`);
  await expectState(alice.page, 'revoked');
  await alice.page.goto(`/tickets/${extension}`);
  await expectState(alice.page, 'revoked');
  await shot(carol.page, 'kinds-revoke');
});

test('a deny is requested as a statement, and its end needs the same people', async ({ browser }) => {
  const [bob, dave] = await Promise.all([logIn(browser, 'bob'), logIn(browser, 'dave')]);
  await bob.page.goto('/requests/new');
  await bob.page.getByTestId('request-statement').click();
  const ticket = await test.step('Bob, who owns the resource, asks to refuse the deployment tool', async () => {
    await bob.page.getByTestId('statement-effect').getByText('Deny').click();
    for (const [field, value] of [['subjects', 'app-602'], ['actions', 'redis:connect'], ['resources', 'bobs-cluster']] as const) {
      await bob.page.getByTestId(`statement-${field}`).fill(value);
      await bob.page.getByTestId(`statement-${field}`).press('Enter');
    }
    await bob.page.getByTestId('request-reason').fill('It must not touch production');
    await expect(bob.page.getByTestId('preview')).toContainText('security');
    await shot(bob.page, 'kinds-statement-form');
    await bob.page.getByTestId('submit-request').click();
    await bob.page.waitForURL(/\/tickets\/T-\d+$/);
    return bob.page.url().split('/').pop() ?? '';
  });
  await expect(bob.page.getByTestId('kind-badge')).toHaveAttribute('data-value', 'statement');
  expect((await approveEveryStep(browser, dave, ticket)).length).toBeGreaterThan(1);
  await expectState(bob.page, 'effective');
  await shot(bob.page, 'kinds-statement');
  await test.step('nobody ends a deny alone', async () => {
    await dave.page.goto(`/tickets/${ticket}`);
    await expectState(dave.page, 'effective');
    await expect(dave.page.getByTestId('revoke-button')).toHaveCount(0);
    await dave.page.getByTestId('ask-end').click();
    await dave.page.getByTestId('request-reason').fill('The tool is needed again');
    await dave.page.getByTestId('submit-request').click();
    await dave.page.waitForURL((url) => /T-\d+$/.test(url.pathname) && !url.pathname.endsWith(ticket));
    const end = dave.page.url().split('/').pop() ?? '';
    await approveEveryStep(browser, bob, end);
    await expectState(dave.page, 'effective');
    await bob.page.goto(`/tickets/${ticket}`);
    await expectState(bob.page, 'revoked');
  });
  await Promise.all([bob.context.close(), dave.context.close()]);
});

test('a resource is onboarded, its mode changed, and taken out again', async ({ browser }) => {
  const [bob, frank, dave] = await Promise.all([logIn(browser, 'bob'), logIn(browser, 'frank'), logIn(browser, 'dave')]);
  await bob.page.goto('/resources/session-cache-staging');
  await bob.page.getByTestId('ask-onboard').click();
  await bob.page.getByTestId('request-reason').fill('Staging first');
  await bob.page.getByTestId('submit-request').click();
  await bob.page.waitForURL(/\/tickets\/T-\d+$/);
  const onboarding = bob.page.url().split('/').pop() ?? '';
  await approve(frank, onboarding);
  await expectState(bob.page, 'effective');

  const observe = await ask(bob, 'kind=mode&resource=session-cache-staging', 'Not needed after all', async (page) => {
    await page.getByTestId('mode-Observe').click();
    await expect(page.getByTestId('preview').getByTestId('diff-object').first()).toBeVisible();
    await shot(page, 'kinds-mode');
  });
  await approve(frank, observe);
  await approve(dave, observe);
  await expectState(bob.page, 'effective');
  await bob.page.goto('/resources/session-cache-staging');
  await expect(bob.page.getByTestId('resource-mode')).toHaveAttribute('data-value', 'Observe');

  const end = await ask(bob, 'kind=offboard&resource=session-cache-staging', 'Staging is torn down');
  await approve(frank, end);
  await approve(dave, end);
  await expectState(bob.page, 'effective');
  await bob.page.goto('/resources/session-cache-staging');
  await expect(bob.page.getByTestId('ask-onboard')).toBeVisible();
});

test('a class that grows while a request waits makes its approvals void', async ({ browser }) => {
  const [alice, bob, carol, dave] = await Promise.all(['alice', 'bob', 'carol', 'dave'].map((name) => logIn(browser, name)));
  if (!alice || !bob || !carol || !dave) throw new Error('somebody could not log in');
  const ticket = await requestAccess(alice, { application: 'app-888', resource: 'bobs-cluster', reason: 'Carts' });
  await approve(carol, ticket);

  const change = await ask(dave, 'kind=class&object=ResourceClass&name=redis', 'Redis speaks TLS on a port of its own', async (page) => {
    const spec = page.getByTestId('object-spec');
    await expect(spec).toHaveValue(/6379/);
    const port = '  - port: 6379\n    protocol: TCP\n';
    await spec.fill((await spec.inputValue()).replace(port, `${port}${port.replace('6379', '6380')}`));
    await expect(page.getByTestId('preview').getByTestId('diff-object').first()).toBeVisible();
    await shot(page, 'kinds-class');
  });
  const voters = await approveEveryStep(browser, dave, change);
  expect(voters.length, `owners of what the class affects decide besides the security team: ${voters.join(', ')}`).toBeGreaterThan(1);
  expect(voters).toContain('bob');
  await expectState(dave.page, 'effective');

  await bob.page.goto(`/tickets/${ticket}`);
  await bob.page.getByTestId('approve-button').click();
  await expect(alice.page.getByTestId('timeline-voided')).toContainText('6380', { timeout: fleetTimeout });
  await expectState(alice.page, 'pending');
  await expect(alice.page.getByTestId('timeline-step-leader').last()).toHaveAttribute('data-value', 'current');
  await shot(alice.page, 'kinds-void');
  await alice.page.getByTestId('withdraw-button').click();
  await alice.page.getByTestId('withdraw-reason').fill('One port is enough');
  await alice.page.getByTestId('withdraw-confirm').click();
  await expectState(alice.page, 'withdrawn');
});

test('an approval policy names who may break the glass; it is broken, and reviewed', async ({ browser }) => {
  const [alice, dave, nadia] = await Promise.all([logIn(browser, 'alice'), logIn(browser, 'dave'), logIn(browser, 'nadia')]);
  const policy = ['priority: 10', 'match: request.application.id == "app-888"', 'steps:', '  - name: leader', '    approvers: [requester.leader]', '  - name: owner', '    approvers: [resource.owner]', 'breakGlass:', '  people: [alice]', '  maxDuration: 4h', '  reviewers: ["group:security"]', ''].join('\n');
  const change = async (verb: 'create' | 'delete', reason: string) => {
    const id = await ask(nadia, `kind=approval-policy&verb=${verb}&name=checkout`, reason, async (page) => {
      if (verb === 'create') await page.getByTestId('object-spec').fill(policy);
      await expect(page.getByTestId('preview-step-security')).toContainText('Dave Okafor');
    });
    await approve(dave, id);
    await expectState(nadia.page, 'effective');
  };
  await change('create', 'Checkout is on call');
  await shot(nadia.page, 'kinds-approval-policy');

  const ticket = await test.step('Alice says what is on fire, sees who is told, and is sure', async () => {
    const { page } = alice;
    await page.goto(`/requests/new?${reachable}`);
    await page.getByTestId('request-reason').fill('Every checkout fails');
    await page.getByTestId('break-glass').click();
    await expect(page.getByTestId('glass-confirm')).toBeDisabled();
    await page.getByTestId('glass-sure').check();
    await shot(page, 'kinds-glass');
    await page.getByTestId('glass-confirm').click();
    await page.waitForURL(/\/tickets\/T-\d+$/);
    return page.url().split('/').pop() ?? '';
  });
  await expectState(alice.page, 'effective');
  await expect(alice.page.getByTestId('break-glass-badge')).toBeVisible();

  await test.step('Dave finds it on their first page, and reviews it', async () => {
    await dave.page.goto('/');
    await dave.page.getByTestId('reviews').getByTestId(`waits-${ticket}`).click();
    await dave.page.getByTestId('review-button').click();
    await dave.page.getByTestId('review-comment').fill('The incident is in the log');
    await dave.page.getByTestId('review-confirm').click();
    await expect(alice.page.getByTestId('timeline-review-confirmed')).toBeVisible();
    await shot(alice.page, 'kinds-glass-reviewed');
  });
  await revoke(alice, ticket, 'The fire is out');
  await expectState(alice.page, 'revoked');
  await change('delete', 'The on-call rota moved');
});

test('somebody decides in another’s place, and the ticket says for whom', async ({ browser }) => {
  const [alice, carol, frank] = await Promise.all([logIn(browser, 'alice'), logIn(browser, 'carol'), logIn(browser, 'frank')]);
  const at = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();
  const headers = { 'X-ACP-Request': '1', Origin: ready().portalURL };
  const response = await carol.page.request.post('/api/v1/delegations', { headers, data: { to: 'frank', start: at(0), end: at(24), reason: 'Holiday' } });
  expect(response.status(), await response.text()).toBe(201);
  const { id } = (await response.json()) as { id: string };

  const ticket = await requestAccess(alice, { application: 'app-888', resource: 'bobs-cluster', reason: 'While Carol is away' });
  await approve(frank, ticket, 'Carol told me about it');
  await expect(alice.page.getByTestId('vote-frank')).toContainText('for Carol Lindqvist');
  await shot(alice.page, 'kinds-delegation');
  expect((await carol.page.request.delete(`/api/v1/delegations/${id}`, { headers })).status()).toBe(204);
  await alice.page.getByTestId('withdraw-button').click();
  await alice.page.getByTestId('withdraw-reason').fill('End of the test');
  await alice.page.getByTestId('withdraw-confirm').click();
  await expectState(alice.page, 'withdrawn');
});

test('one search finds everything, and a comment reaches the others without a reload', async ({ browser }) => {
  const [alice, carol] = await Promise.all([logIn(browser, 'alice'), logIn(browser, 'carol')]);
  const ticket = await requestAccess(alice, { application: 'app-888', resource: 'bobs-cluster', reason: 'Something to talk about' });
  await carol.page.goto('/');
  await expect(carol.page.getByTestId('user-menu')).toBeVisible();
  await open(carol.page, 'Bob Tanaka', 'hit-person-bob');
  await expect(carol.page).toHaveURL(/requester=bob/);
  await open(carol.page, ticket, `hit-ticket-${ticket}`);
  await carol.page.getByTestId('decision-comment').fill('Which port is it?');
  await carol.page.getByTestId('comment-only').click();
  await expect(alice.page.getByTestId('timeline-comment')).toContainText('Which port is it?');
  await carol.page.getByTestId('person-alice').first().click();
  await expect(carol.page.getByTestId('person-card')).toContainText('Payments');
  await carol.page.keyboard.press('Escape');
  await carol.page.getByTestId('decision-comment').fill('Ask again with the port');
  await carol.page.getByTestId('reject-button').click();
  await expectState(alice.page, 'rejected');
});

async function open(page: Page, words: string, hit: string): Promise<void> {
  // While it closes it still has what was typed the last time.
  await expect(page.getByTestId('palette-input')).toHaveCount(0);
  await page.keyboard.press('ControlOrMeta+k');
  await page.getByTestId('palette-input').fill(words);
  await page.getByTestId(hit).click();
}

async function revokeAll({ page }: Person, ticket: string): Promise<void> {
  await page.goto(`/tickets/${ticket}`);
  await page.getByTestId('item-revoke-0').click();
  await page.getByTestId('revoke-reason').fill('End of the test');
  await page.getByTestId('revoke-confirm').click();
  await expectState(page, 'revoked');
}

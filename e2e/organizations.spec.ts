import { logInAs, looks, overflow, serious } from './looks.js';
import { approve, ask, expectState, logIn } from './people.js';
import { documentShot, shot } from './shots.js';
import { expect, test } from './test.js';

const names = 'trnv1:rsc:trip-com:queue:topics:shop-*';

const organization = `title: Shop
teams: [storage]
administrators: ['person:carol', 'person:frank']
bounds:
  classes:
    patterns: ['${names}']
    labelKeys: [com.trip/shop-topic]
    enforcers: [cilium]
    sensitivities: [low]
    clusters: {matchLabels: {unit: shop}}
  approvals:
    maxDuration: 720h
  catalog:
    patterns: ['${names}']
    kinds: [resource]
    sensitivities: [low]
`;

const classOf = (labelKey: string, unit: string): string => `organization: shop
pattern: '${names}'
labelKey: ${labelKey}
actions:
  - name: 'queue:produce'
    ports: [{port: 9092}]
placement: {clusterSelector: {matchLabels: {unit: ${unit}}}}
`;

const policyOf = (more: string): string => `organization: shop
priority: 500
match: 'request.kind == "grant"'
steps:
  - name: shop
    approvers: ['person:frank']
${more}`;

/** An organization from its creation by the security team to a resource that one of its administrators adds. */
test('an organization is managed by its administrators within the bounds', async ({ browser }) => {
  const [carol, dave, frank, nadia] = await Promise.all([logIn(browser, 'carol'), logIn(browser, 'dave'), logIn(browser, 'frank'), logIn(browser, 'nadia')]);

  const created = await ask(dave, 'kind=approval-policy&object=Organization&verb=create', 'The shop manages itself', async (page) => {
    await page.getByTestId('object-name').fill('shop');
    await page.getByTestId('object-spec').fill(organization);
    await expect(page.getByTestId('preview').getByTestId('diff-object').first()).toBeVisible();
  });
  await approve(nadia, created);
  await expectState(dave.page, 'effective');

  await test.step('an administrator requests a class; one outside of the bounds is refused with each bound', async () => {
    await expect(async () => {
      await carol.page.goto('/organizations/shop');
      await expect(carol.page.getByTestId('new-ResourceClass')).toBeVisible({ timeout: 5000 });
    }).toPass();
    await carol.page.getByTestId('new-ResourceClass').click();
    await carol.page.getByTestId('object-name').fill('shop-topics');
    await carol.page.getByTestId('object-spec').fill(classOf('com.trip/redis-cluster', 'other'));
    await carol.page.getByTestId('request-reason').fill('Topics of the shop');
    for (const bound of ['bounds.classes.labelKeys', 'bounds.classes.clusters.matchLabels']) await expect(carol.page.getByTestId('preview')).toContainText(bound);
    await shot(carol.page, 'organization-refused');
    await carol.page.getByTestId('object-spec').fill(classOf('com.trip/shop-topic', 'shop'));
    await expect(carol.page.getByTestId('preview')).toContainText('Frank Duarte');
    await expect(carol.page.getByTestId('preview')).not.toContainText('bounds.classes');
    await carol.page.getByTestId('submit-request').click();
    await carol.page.waitForURL(/\/tickets\/T-\d+$/);
  });

  await test.step('another administrator approves it', async () => {
    await approve(frank, carol.page.url().split('/').pop() ?? '');
    await expectState(carol.page, 'effective');
  });

  await test.step('an administrator writes an approval policy; one outside of the bounds is refused with each bound', async () => {
    const { page } = carol;
    await page.goto('/organizations/shop');
    await page.getByTestId('new-ApprovalPolicy').click();
    await page.getByTestId('object-name').fill('shop-agrees');
    await page.getByTestId('object-spec').fill(policyOf('replaceOwners: true\n'));
    await page.getByTestId('request-reason').fill('The shop agrees, too');
    for (const bound of ['bounds.approvals.allowReplaceOwners', 'bounds.approvals.maxDuration']) await expect(page.getByTestId('preview')).toContainText(bound);
    await shot(page, 'organization-policy-refused');
    await page.getByTestId('object-spec').fill(policyOf('maxDuration: 168h\n'));
    await expect(page.getByTestId('preview')).toContainText('Frank Duarte');
    await expect(page.getByTestId('preview')).not.toContainText('bounds.approvals');
    await page.getByTestId('submit-request').click();
    await page.waitForURL(/\/tickets\/T-\d+$/);
    await approve(frank, page.url().split('/').pop() ?? '');
    await expectState(page, 'effective');
    await page.goto('/organizations/shop');
    await expect(page.getByTestId('object-shop-agrees')).toBeVisible();
    await expect(page.getByTestId('object-shop-agrees')).not.toContainText('outside of the bounds');
    await page.goto('/policies');
    await expect(page.getByTestId('policy-shop-agrees')).toContainText('organization shop');
  });

  await test.step('its step is added to the requests for the resources of the organization', async () => {
    const request = { reason: 'Who decides?', durationSeconds: 3600, items: [{ application: 'app-676', resource: 'deals-cache', actions: ['redis:connect'] }] };
    const response = await dave.page.request.post('/api/v1/tickets/what-if', { headers: { 'X-Acp-Request': '1' }, data: { as: 'alice', request } });
    expect(response.ok(), await response.text()).toBe(true);
    expect(await response.text()).toContain('"shop"');
  });

  await test.step('the organizations are one table, which can be saved', async () => {
    await dave.page.goto('/organizations');
    await expect(dave.page.getByTestId('organization-shop')).toContainText('Storage');
    const [file] = await Promise.all([dave.page.waitForEvent('download'), dave.page.getByTestId('csv').click()]);
    expect(file.suggestedFilename()).toBe('organizations.csv');
    await shot(dave.page, 'organizations');
  });

  await test.step('the administrator adds a resource to the catalog', async () => {
    const { page } = carol;
    await page.goto('/organizations/shop');
    await page.getByTestId('new-entity').click();
    await page.getByTestId('entity-id').fill('shop-orders');
    await page.getByTestId('entity-title').fill('Orders of the shop');
    await page.getByTestId('entity-name').fill('trnv1:rsc:trip-com:queue:topics:orders');
    await page.getByTestId('entity-save').click();
    await expect(page.getByRole('dialog')).toContainText('bounds.catalog.patterns');
    await shot(page, 'organization-entity-refused');
    await page.getByTestId('entity-name').fill('trnv1:rsc:trip-com:queue:topics:shop-orders');
    await page.getByTestId('entity-save').click();
    await expect(page.getByTestId('entity-resource-shop-orders')).toBeVisible();
  });

  await carol.page.goto('/organizations/shop');
  await expect(carol.page.getByTestId('entity-resource-shop-orders')).toBeVisible();
  await documentShot(carol.page, 'organization');

  for (const look of looks) {
    await test.step(`the page in ${look.language}, ${look.colorScheme}`, async () => {
      const person = await logInAs(browser, 'carol', look);
      for (const width of [1280, 390]) {
        await person.page.setViewportSize({ width, height: 860 });
        await person.page.goto('/organizations/shop');
        await expect(person.page.getByTestId('entity-resource-shop-orders')).toBeVisible();
        await shot(person.page, `organization-${look.language}-${look.colorScheme}-${width}`);
        expect.soft(await serious(person.page), `at ${width}`).toEqual([]);
        expect.soft(await overflow(person.page), `scrolls sideways at ${width}`).toBeLessThanOrEqual(0);
      }
      await person.context.close();
    });
  }

  await test.step('the administrator removes the resource, and the security team the rest', async () => {
    await carol.page.getByTestId('remove-shop-orders').click();
    await carol.page.getByTestId('remove-entity-reason').fill('The test is over');
    await carol.page.getByTestId('remove-entity-confirm').click();
    await expect(carol.page.getByTestId('remove-shop-orders')).toHaveCount(0);
    for (const search of ['kind=approval-policy&object=ApprovalPolicy&verb=delete&name=shop-agrees', 'kind=class&object=ResourceClass&verb=delete&name=shop-topics', 'kind=approval-policy&object=Organization&verb=delete&name=shop']) {
      const ticket = await ask(dave, search, 'The test is over');
      await approve(nadia, ticket);
      await expectState(dave.page, 'effective');
    }
  });
});

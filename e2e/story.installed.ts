import { expect, test } from '@playwright/test';
import { approve, expectState, logIn, requestAccess, revoke } from './people.js';
import { shot } from './shots.js';

// The application and the resource of docs/install.md. `make test-cluster` runs each test by its name, and tries the connection between them.
const application = 'shop';
const resource = 'orders';

test('grant', async ({ browser }) => {
  const [alice, bob, carol] = await Promise.all([logIn(browser, 'alice'), logIn(browser, 'bob'), logIn(browser, 'carol')]);
  const ticket = await requestAccess(alice, { application, resource, reason: 'The shop keeps its carts there' }, 'Bob');
  await expectState(alice.page, 'pending');
  await expect(alice.page.getByTestId('approve-button'), 'nobody approves their own request').toHaveCount(0);
  await approve(carol, ticket);
  await expectState(alice.page, 'pending');
  await approve(bob, ticket);
  await expectState(alice.page, 'effective');
  await expect(alice.page.getByTestId('cluster-state-m1')).toHaveAttribute('data-value', 'Realized');
  await shot(alice.page, 'installed-1-effective');
  await bob.page.goto('/fleet');
  await expect(bob.page.getByText('m1', { exact: true }).first()).toBeVisible();
  await shot(bob.page, 'installed-2-fleet');
});

test('revoke', async ({ browser }) => {
  const bob = await logIn(browser, 'bob');
  await bob.page.goto(`/resources/${resource}`);
  await bob.page.getByTestId('access-table').getByRole('link', { name: /^T-\d+$/ }).click();
  await bob.page.waitForURL(/\/tickets\/T-\d+$/);
  await revoke(bob, bob.page.url().split('/').pop() ?? '', 'The carts move to another cluster');
  await expectState(bob.page, 'revoked');
  await shot(bob.page, 'installed-3-revoked');
});

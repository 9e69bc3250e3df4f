import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from '@playwright/test';
import { approve, expectState, logIn, revoke } from './people.js';

// The steps of docs/install.md after the installation. `make test-cluster` runs one test after the other, and between them connects to the
// resource. The file with the ticket's id leads from one to the next.
const file = process.env.ACP_E2E_TICKET ?? '';

test('a request is approved', async ({ browser }) => {
  const [alice, bob, carol] = await Promise.all([logIn(browser, 'alice'), logIn(browser, 'bob'), logIn(browser, 'carol')]);
  await alice.page.goto('/requests/new?application=shop&resource=orders');
  await alice.page.getByTestId('request-reason').fill('The shop stores its orders there');
  await expect(alice.page.getByTestId('preview')).toContainText(/Bob|Storage team/);
  await alice.page.getByTestId('submit-request').click();
  await alice.page.waitForURL(/\/tickets\/T-\d+$/);
  const ticket = alice.page.url().split('/').pop() ?? '';
  await expectState(alice.page, 'pending');
  await approve(carol, ticket);
  await approve(bob, ticket);
  await expectState(alice.page, 'effective', 30_000);
  await expect(alice.page.getByTestId('cluster-state-m1')).toHaveAttribute('data-value', 'Realized');
  writeFileSync(file, ticket);
});

test('the owner revokes it', async ({ browser }) => {
  const bob = await logIn(browser, 'bob');
  await revoke(bob, readFileSync(file, 'utf8'), 'The orders move to another cluster');
  await expectState(bob.page, 'revoked', 30_000);
});

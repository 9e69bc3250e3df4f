import { CommandLine } from './cli.js';
import { ready } from './fleet.js';
import { expectState, fleetTimeout, logIn, type Person } from './people.js';
import { expect, test } from './test.js';

const request = ['request', '--app', 'app-676', '--resource', 'deals-cache', '--action', 'redis:connect'];

interface Ticket {
  id: string;
  state: string;
  kind: string;
}

test('from the command line: asked, approved, extended, rejected, revoked, and logged out', async ({ browser }) => {
  const people: Person[] = [];
  for (const name of ['alice', 'bob', 'carol', 'erin']) people.push(await logIn(browser, name));
  const lines: CommandLine[] = [];
  for (const person of people) lines.push(await CommandLine.logIn(person));
  const [alice, bob, carol, erin] = lines as [CommandLine, CommandLine, CommandLine, CommandLine];

  await test.step('each is who agreed in the browser', async () => {
    expect(await alice.ok(['whoami'])).toContain('Alice Moreau (alice)');
    expect((await bob.json<{ person: { id: string } }>(['whoami'])).person.id).toBe('bob');
  });

  const ticket = await test.step('Alice asks; a dry run names who decides and asks nobody', async () => {
    const preview = await alice.ok([...request, '--reason', 'Reports show the deals', '--dry-run']);
    expect(preview).toContain('Carol Lindqvist');
    expect(await alice.json<Ticket[]>(['tickets', '--resource', 'deals-cache'])).toEqual([]);
    const made = await alice.json<Ticket>([...request, '--for', '30d', '--reason', 'Reports show the deals']);
    expect(made.state).toBe('pending');
    return made.id;
  });

  await test.step('who has no step cannot decide, whatever they type', async () => {
    const refused = await erin.run(['approve', ticket, '--yes']);
    expect(refused.code).toBe(4);
    const own = await alice.run(['approve', ticket, '--yes']);
    expect(own.code, 'nobody approves their own request').toBe(4);
  });

  await test.step('Carol sees it and approves; Bob is asked first, thinks again, and approves', async () => {
    expect(await carol.ok(['tickets', '--view', 'approvals'])).toContain(ticket);
    expect(await carol.ok(['approve', ticket, '--yes', '--comment', 'We need it'])).toContain('is pending');
    const asked = await bob.run(['approve', ticket], 'n\n');
    expect(asked.err).toContain('Reports show the deals');
    expect(asked.err).toContain('is left as it is');
    await bob.ok(['approve', ticket], 'y\n');
  });

  await test.step('the command line and the open page see it become effective', async () => {
    await people[0]?.page.goto(`/tickets/${ticket}`);
    // Alone on a fleet that just started, this waits for the first policies, too.
    if (people[0]) await expectState(people[0].page, 'effective');
    const shown = await alice.ok(['tickets', ticket]);
    expect(shown).toContain('effective');
    expect(shown).toContain('We need it');
  });

  await test.step('Alice asks for more time; Carol says why not', async () => {
    const { id } = await alice.json<Ticket>(['extend', ticket, '--for', '30d', '--reason', 'The season is longer']);
    const silent = await carol.run(['reject', id, '--yes']);
    expect(silent.code, 'a rejection says why').toBe(2);
    await carol.ok(['reject', id, '--yes', '--comment', 'Thirty days are enough']);
    expect(await alice.ok(['tickets', id])).toContain('Thirty days are enough');
    expect((await alice.json<Ticket>(['tickets', id])).state).toBe('rejected');
  });

  await test.step('Bob revokes, not without a reason', async () => {
    expect((await bob.run(['revoke', ticket])).code).toBe(2);
    await bob.ok(['revoke', ticket, '--reason', 'The deals move']);
    await expect.poll(async () => (await alice.json<Ticket>(['tickets', ticket])).state, { timeout: fleetTimeout }).toBe('revoked');
  });

  await test.step('a logout ends the login in the portal, too', async () => {
    await alice.ok(['logout']);
    const after = await alice.run(['whoami', '--server', ready().portalURL]);
    expect(after.code).toBe(4);
    expect(after.err).toContain('kubectl acp login');
  });
  for (const line of lines) line.close();
  await Promise.all(people.map((person) => person.context.close()));
});

test('a command line that nobody lets in has no login', async ({ browser }) => {
  const { page, context } = await logIn(browser, 'alice');
  await page.goto('/device');
  await page.getByTestId('device-code').fill('BCDF-GHJK');
  await page.getByTestId('device-look').click();
  await expect(page.getByTestId('device-asked')).toHaveCount(0);
  await context.close();
});

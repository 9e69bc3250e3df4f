import { kube } from './cluster.js';
import { approve, connections, expectState, expectTraffic, fleetTimeout, lastSeen, logIn, requestAccess, revoke } from './people.js';
import { expect, test } from './test.js';

const workloads = '/apis/acp.io/v1alpha1/externalworkloads';
const machine = '172.20.4.17/32';

interface Groups {
  items: { metadata: { name: string }; spec: { externalCIDRs?: string[] } }[];
}

/** The names of the groups in a member that hold the machine's address. */
async function groups(member: string): Promise<string[]> {
  const list = (await kube(member, 'GET', '/apis/cilium.io/v2/ciliumcidrgroups')) as Groups;
  return list.items.filter((g) => g.spec.externalCIDRs?.includes(machine)).map((g) => g.metadata.name);
}

test('a machine outside the fleet is known by its application, asks like everyone, and goes with its workload', async ({ browser }) => {
  const started = new Date();
  const [alice, bob, carol] = await Promise.all([logIn(browser, 'alice'), logIn(browser, 'bob'), logIn(browser, 'carol')]);
  for (const member of ['m1', 'm2']) await expect.poll(() => groups(member), `${member} has its address`).toHaveLength(1);

  await expectTraffic(bob, 'bobs-cluster', { application: 'app-676', port: 6379, verdict: 'dropped' }, started);
  const refused = (await connections(bob, 'bobs-cluster')).filter((c) => c.subject.id === 'app-676' && c.verdict === 'dropped');
  expect(new Set(refused.map((c) => c.decision))).toEqual(new Set(['default-denied']));
  await expectTraffic(bob, 'orders-cache', { application: 'app-676', port: 6379, verdict: 'forwarded' }, started);
  const reported = (await connections(bob, 'orders-cache')).filter((c) => c.subject.id === 'app-676' && new Date(c.lastSeen) > started);
  expect(reported.map((c) => c.decision), 'audit reports what enforcement would refuse').toContain('audited');

  const ticket = await requestAccess(alice, { application: 'app-676', resource: 'bobs-cluster', reason: 'Reports read the sessions' });
  await approve(carol, ticket);
  await approve(bob, ticket);
  await expectState(alice.page, 'effective');
  await expectTraffic(bob, 'bobs-cluster', { application: 'app-676', port: 6379, verdict: 'forwarded' }, new Date());

  await revoke(bob, ticket, 'Reports move into the fleet');
  await expectState(bob.page, 'revoked');
  const revoked = new Date();
  await expectTraffic(bob, 'bobs-cluster', { application: 'app-676', port: 6379, verdict: 'dropped' }, revoked);
  const last = await lastSeen(bob, 'bobs-cluster', 'app-676', 6379, 'forwarded');
  expect(last && last <= revoked, 'no connection was let through after the revocation').toBe(true);

  const workload = (await kube('host', 'GET', `${workloads}/reports-vm`)) as { spec: unknown };
  await kube('host', 'DELETE', `${workloads}/reports-vm`);
  try {
    for (const member of ['m1', 'm2']) await expect.poll(() => groups(member), { message: `${member} is rid of its address`, timeout: fleetTimeout }).toEqual([]);
  } finally {
    await kube('host', 'POST', workloads, { apiVersion: 'acp.io/v1alpha1', kind: 'ExternalWorkload', metadata: { name: 'reports-vm' }, spec: workload.spec });
  }
  for (const member of ['m1', 'm2']) await expect.poll(() => groups(member), `${member} has it again`).toHaveLength(1);
});

test('one statement for every redis lets the operations tool through, without a grant on the cluster', async ({ browser }) => {
  const bob = await logIn(browser, 'bob');
  const started = new Date();
  await expectTraffic(bob, 'bobs-cluster', { application: 'app-858', port: 6379, verdict: 'forwarded' }, started);
  const seen = (await connections(bob, 'bobs-cluster')).filter((c) => c.subject.id === 'app-858' && new Date(c.lastSeen) > started);
  expect(seen.map((c) => c.sid)).toContain('operations-tool-uses-every-redis');
});

import type { Answers } from './standin.js';

/** A fleet of ten thousand: as many statements between 1,500 applications and 500 resources, and as many resources on the board. */
const edges = 10_000;
const applications = 1_500;
const resources = 500;
const teams = 60;
const classes = ['redis', 'mysql', 'kafka', 'http'];
const stages = ['observe', 'initial', 'refine', 'announced', 'enforce'];

const team = (i: number) => ({ kind: 'group', id: `team-${i}`, displayName: `Team ${i}` });
const application = (i: number) => ({ id: `app-${i}`, name: `trnv1:rsc:trip-com:iam:sa:app/${i}`, title: `Shop checkout ${i}` });
const resource = (i: number) => ({ id: `cache-${i}`, name: `trnv1:rsc:trip-com:redis:clusters:cache-${i}`, title: `Orders cache ${i}` });
/** The ends of a statement: primes keep the pairs apart. */
const ends = (i: number) => ({ from: (i * 7919) % applications, to: (i * 104_729 + Math.floor(i / applications)) % resources });

/** Reasons as people write them: short, long, and without a space to break at. */
const reasons = ['The new checkout', 'Reads the cache of orders while the old database is moved; until the end of the quarter, see the plan of the team', '结算服务迁移期间读取订单缓存，迁移完成后回收', 'https://wiki.example.com/teams/checkout/plans/2026/q4/migration-of-the-order-cache'];

const edge = (i: number) => {
  const { from, to } = ends(i);
  return {
    subject: application(from), subjectKind: 'application', subjectTeams: [team(from % teams)], resource: resource(to), resourceTeams: [team((to * 7) % teams)],
    wildcard: false, class: classes[to % 4], mode: 'Enforce', effect: i % 97 === 0 ? 'Deny' : 'Allow', actions: ['redis:connect'], policy: `portal-cache-${to}`, sid: `t-${i}-1`,
    origin: { kind: 'portal' }, ticket: `T-${i}`, ticketVisible: i % 31 !== 0, ...(i % 31 === 0 ? {} : { reason: reasons[i % reasons.length] }), counting: true,
    ...(i % 9 === 0 ? { use: i % 2 ? 'unused' : 'unknown' } : { use: 'used', lastUsed: '2026-11-20T10:00:00Z' }),
  };
};

const all = Array.from({ length: edges }, (_, i) => edge(i));
const matches = (search: URLSearchParams, each: (typeof all)[number]): boolean => {
  const q = (search.get('q') ?? '').toLowerCase();
  const [subject, to] = [search.get('subject'), search.get('resource')];
  return (!q || `${each.subject.title}\n${each.resource.title}`.toLowerCase().includes(q)) && (!subject || each.subject.name === subject) && (!to || each.resource.name === to);
};

function graph(search: URLSearchParams) {
  const links = all.flatMap((each, i) => (matches(search, each) ? [{ from: ends(i).from, to: applications + ends(i).to, statements: 1, allow: each.effect === 'Allow', deny: each.effect === 'Deny', counting: true }] : []));
  const nodes = [
    ...Array.from({ length: applications }, (_, i) => ({ ...application(i), kind: 'application', teams: [i % teams] })),
    ...Array.from({ length: resources }, (_, i) => ({ ...resource(i), kind: 'resource', mode: 'Enforce', teams: [(i * 7) % teams] })),
  ];
  return { nodes, links, teams: Array.from({ length: teams }, (_, i) => team(i)), total: links.length, cut: false };
}

/** The traffic between the same applications and resources: most of it is allowed, some of it is audited, refused or not managed, and every ninth statement is unused. */
const trafficNodes = [
  ...Array.from({ length: applications }, (_, i) => ({ ...application(i), kind: 'application', team: i % teams })),
  ...Array.from({ length: resources }, (_, i) => ({ ...resource(i), kind: 'resource', team: (i * 7) % teams })),
];
const trafficLinks = Array.from({ length: edges }, (_, i) => {
  const { from, to } = ends(i);
  const link = { from, to: applications + to };
  const [count, at] = [1 + ((i * 7919) % 10 ** (1 + (i % 6))), '2026-11-20T10:00:00Z'];
  if (i % 9 === 0) return { ...link, granted: true, policy: `portal-cache-${to}`, sid: `t-${i}-1`, ticket: `T-${i}` };
  if (i % 23 === 0) return { ...link, defaultDenied: count % 500, lastSeen: at };
  if (i % 17 === 0) return { ...link, audited: count, lastSeen: at, lastUsed: at };
  if (i % 11 === 0) return { ...link, unmanaged: count, lastSeen: at, lastUsed: at };
  return { ...link, allowed: count, lastSeen: at, lastUsed: at, granted: true, policy: `portal-cache-${to}`, sid: `t-${i}-1`, ticket: `T-${i}` };
});

function traffic(search: URLSearchParams) {
  const q = (search.get('q') ?? '').toLowerCase();
  const [subject, to] = [search.get('subject'), search.get('resource')];
  const links = trafficLinks.filter((link) => {
    const [client, server] = [trafficNodes[link.from], trafficNodes[link.to]];
    return (!q || `${client?.title}\n${server?.title}`.toLowerCase().includes(q)) && (!subject || client?.name === subject) && (!to || server?.name === to);
  });
  return { available: true, since: '2026-11-19T12:00:00Z', until: '2026-11-20T12:00:00Z', lastFlow: '2026-11-20T11:59:00Z', nodes: trafficNodes, links, teams: Array.from({ length: teams }, (_, i) => team(i)), total: links.length, cut: false };
}

/** message returns a message of the server; the page shows its text in English. */
const message = (code: string, text: string) => ({ code, text });

const card = (i: number) => ({
  resource: resource(i), class: classes[i % 4], owners: [team(i % teams)], sensitivity: 'medium', stage: stages[i % 5], score: i % 101, threshold: 70, enough: i % 101 >= 70,
  missing: i % 101 >= 70 ? [] : [message('evidence.watched', 'Flows of m2 were watched for 11d of 14d: wait until the window is full.')],
  mode: 'Audit', effectiveMode: 'Audit', onboarded: true, clusters: ['m1', 'm2', 'm3'].map((cluster) => ({ cluster, state: 'Realized', mode: 'Audit' })),
  guard: { enabled: true, reopens: false, limit: 20, windowSeconds: 300 }, clients: i % 40, newcomers: i % 7,
  hint: { code: 'review', next: 'refine', message: message('rollout.review', `${i % 7} clients that were seen are not allowed yet: request access for them, or inform their owners.`) },
  can: { announce: true, advance: true, guard: true, toggle: true, override: false },
});

const cards = Array.from({ length: edges }, (_, i) => card(i));

function page<Row>(rows: Row[], search: URLSearchParams): { items: Row[]; nextCursor?: string } {
  const from = Number(search.get('cursor') ?? 0);
  const to = from + Number(search.get('limit') ?? 50);
  return { items: rows.slice(from, to), ...(to < rows.length ? { nextCursor: String(to) } : {}) };
}

function board(search: URLSearchParams) {
  const q = (search.get('q') ?? '').toLowerCase();
  const wanted = search.getAll('stage');
  const found = cards.filter((each) => each.resource.title.toLowerCase().includes(q));
  const counts = Object.fromEntries(stages.map((stage) => [stage, found.filter((each) => each.stage === stage).length]));
  return { ...page(found.filter((each) => wanted.length === 0 || wanted.includes(each.stage ?? '')), search), stages: counts, flowsAvailable: true, threshold: 70, windowSeconds: 1_209_600 };
}

/** The calls of the access map, the traffic map and the board. */
/** 500 members, of which some have problems, and of which most wait for a wave. */
const members = Array.from({ length: 500 }, (_, i) => ({
  name: `member-${String(i).padStart(3, '0')}`,
  state: i % 97 === 7 ? 'Unreachable' : i === 13 ? 'Quarantined' : 'Ready',
  since: '2026-11-20T11:00:00Z',
  ...(i === 13 ? { message: { code: 'verbatim', params: { text: 'ciliumclusterwidenetworkpolicies cannot be listed' }, text: 'ciliumclusterwidenetworkpolicies cannot be listed' } } : {}),
  guard: i % 31 === 5 ? 'Missing' : 'Present',
  engine: i % 2 ? 'direct' : 'kubefed',
  kubernetesVersion: 'v1.34.2',
  ciliumVersion: '1.19.0',
  stops: i === 13 ? 1 : 0,
  fails: i % 97 === 7 ? 1 : 0,
  warns: i % 3,
  behind: i % 97 === 7 ? 1200 : 0,
  identities: { used: 20_000 + 80 * i, limit: 65_535, labels: [] },
  objects: { managed: 10_000, realized: 10_000, pending: 0, drifted: 0, leaked: 0, overridden: 0 },
  nodes: { total: 20, reporting: i % 50 === 9 ? 18 : 20, unhealthy: 0, silent: i % 50 === 9 ? 2 : 0, unhealthyNodes: [], silentNodes: i % 50 === 9 ? ['n1', 'n2'] : [] },
  ...(i >= 25 ? { waves: { waiting: 40, halted: i % 2 ? 2 : 0 } } : {}),
}));

export const crowd: Answers = {
  '/me': () => ({ person: { id: 'dave', displayName: 'Dave Okafor' }, roles: ['requester', 'security'], groups: [], pendingApprovals: 0, sessionExpiresAt: '2036-11-20T20:00:00Z' }),
  '/classes': () => ({ items: classes.map((name) => ({ kind: 'ResourceClass', name })) }),
  '/applications': () => ({ items: [] }),
  '/resources': () => ({ items: [] }),
  '/people': () => ({ items: [] }),
  '/access/graph': graph,
  '/access': (search) => {
    const found = all.filter((each) => matches(search, each));
    return { ...page(found, search), total: found.length, flowsAvailable: true };
  },
  '/flows/map': traffic,
  '/flows/coverage': () => ({ available: true, since: '2026-11-19T12:00:00Z', until: '2026-11-20T12:00:00Z', lastFlow: { m1: '2026-11-20T11:59:00Z' }, items: [] }),
  '/rollout': board,
  '/fleet': () => ({ items: members, reported: true }),
};

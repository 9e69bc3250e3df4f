/**
 * The keys of everything that is read from the server. A key begins with the kind of object, so that `all` of a kind, and every list and part below
 * it, can be invalidated at once. No other file writes a key: a lint rule refuses literals.
 */

/** Params are the parameters of a query, compared by value. */
type Params = object | string | number | boolean | undefined;

/**
 * keys contains the query key of every read. A key begins with the kind of object, so that `all` of a kind, and every list and part below it, can be
 * invalidated at once. No other file writes a key: a lint rule refuses literals.
 */
export const keys = {
  me: ["me"],
  home: ["home"],
  undelivered: ["undelivered"],
  preferences: ["preferences"],
  savedViews: {
    all: ["saved-view"],
    own: ["saved-view", "own"],
    shared: (link: string) => ["saved-view", "shared", link],
  },
  tokens: ["token"],
  sessions: ["session"],
  search: {
    all: ["search"],
    of: (q: string, kinds: readonly string[], limit: number) => ["search", q, kinds, limit],
  },
  people: {
    all: ["people"],
    of: (q: string) => ["people", q],
  },
  groups: (q: string) => ["groups", q],
  group: (id: string) => ["group", id],
  person: {
    all: ["person"],
    one: (id: string) => ["person", id],
  },
  inbox: {
    all: ["inbox"],
    list: (filter: Params) => ["inbox", filter],
  },
  device: (userCode: string) => ["device", userCode],
  application: {
    all: ["application"],
    list: (filter: Params) => ["application", "list", filter],
    one: (id: string) => ["application", id],
  },
  resource: {
    all: ["resource"],
    list: (filter: Params) => ["resource", "list", filter],
    one: (id: string) => ["resource", id],
  },
  access: {
    all: ["access"],
    ofApplication: (id: string) => ["access", "application", id],
    ofResource: (id: string) => ["access", "resource", id],
    usesOfApplication: (id: string) => ["access", "application", id, "uses"],
    usesOfResource: (id: string) => ["access", "resource", id, "uses"],
    past: (id: string, at: string | undefined) => ["access", "resource", id, "past", at],
    periods: (resource: string, application: string) => ["access", "resource", resource, "periods", application],
    modes: (id: string) => ["access", "resource", id, "modes"],
  },
  connections: {
    ofApplication: (id: string, decisions: readonly string[]) => ["connections", "application", id, decisions],
    ofResource: (id: string, decisions: readonly string[]) => ["connections", "resource", id, decisions],
  },
  package: {
    all: ["package"],
    list: (filter: Params) => ["package", "list", filter],
    one: (name: string) => ["package", name],
    holders: (name: string) => ["package", name, "holders"],
    usesOfHolders: (name: string) => ["package", name, "holders", "uses"],
  },
  workload: {
    all: ["workload"],
    ofApplication: (application: string) => ["workload", "list", application],
    list: (filter: Params) => ["workload", "list", "filtered", filter],
  },
  class: { list: ["class", "list"] },
  organization: {
    list: ["organization", "list"],
    one: (id: string) => ["organization", id],
  },
  approvalPolicy: {
    list: ["approval-policy", "list"],
    one: (id: string) => ["approval-policy", id],
  },
  ticket: {
    all: ["ticket"],
    lists: ["ticket", "list"],
    list: (filter: Params) => ["ticket", "list", filter],
    one: (id: string) => ["ticket", id],
    change: (id: string) => ["ticket", id, "part", "change"],
    ledger: (id: string) => ["ticket", id, "part", "ledger"],
    impact: (id: string, change: string, span: Params) => ["ticket", id, "part", "impact", change, span],
    facts: (id: string) => ["ticket", id, "part", "facts"],
  },
  preview: (request: Params) => ["preview", request],
  whatIf: (request: Params, as: string) => ["preview", "what-if", request, as],
  impact: (request: Params, span: Params) => ["impact", request, span],
  draftImpact: (draft: Params) => ["impact", "draft", draft],
  delegation: {
    all: ["delegation"],
    list: (everybody: boolean) => ["delegation", "list", everybody],
  },
  flows: {
    all: ["flows"],
    list: (filter: Params) => ["flows", "list", filter],
    raw: (filter: Params) => ["flows", "raw", filter],
    series: (filter: Params) => ["flows", "series", filter],
    map: (filter: Params) => ["flows", "map", filter],
    losses: (span: Params, clusters: readonly string[]) => ["flows", "losses", span, clusters],
    coverage: (span: Params) => ["flows", "coverage", span],
  },
  proposals: ["proposal"],
  proposal: (id: string, span: Params) => ["proposal", id, span],
  evidence: (id: string) => ["evidence", id],
  unused: {
    all: ["unused"],
    ofResource: (id: string, quietDays: number) => ["unused", "resource", id, quietDays],
    ofApplication: (id: string, quietDays: number) => ["unused", "application", id, quietDays],
    list: (filter: Params) => ["unused", "list", filter],
  },
  rollout: {
    all: ["rollout"],
    cards: ["rollout", "card"],
    card: (id: string) => ["rollout", "card", id],
    list: (filter: Params, limit: number) => ["rollout", "list", filter, limit],
  },
  fleet: {
    all: ["fleet"],
    member: (name: string) => ["fleet", name],
  },
  accessMap: {
    edges: (filter: Params) => ["access-map", "edges", filter],
    graph: (filter: Params) => ["access-map", "graph", filter],
    path: (from: string, to: string) => ["access-map", "path", from, to],
  },
  accessPolicy: {
    list: (filter: Params) => ["access-policies", "list", filter],
    one: (name: string) => ["access-policies", name],
    uses: (name: string) => ["access-policies", name, "uses"],
  },
  findings: {
    all: ["findings"],
    list: (filter: Params) => ["findings", filter],
  },
  review: {
    all: ["review"],
    list: ["review", "list"],
    one: (id: string) => ["review", id],
    lines: (id: string, filter: Params) => ["review", id, "lines", filter],
    report: (id: string) => ["review", id, "report"],
    mine: ["review", "mine"],
    preview: (body: Params) => ["review", "preview", body],
  },
  downgrade: {
    all: ["downgrade"],
    of: (scope: Params) => ["downgrade", scope],
  },
  catalog: {
    all: ["catalog"],
    sources: ["catalog", "source"],
    entities: (filter: Params) => ["catalog", "entity", filter],
  },
  ledger: (filter: Params) => ["ledger", filter],
} as const;

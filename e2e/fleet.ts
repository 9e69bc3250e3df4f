import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const repo = resolve(import.meta.dirname, '..');
const bin = process.env.ACP_BIN ?? join(repo, 'bin');
const playground = join(bin, 'acp-playground');
const flags = process.env.ACP_E2E_FLAGS?.split(' ') ?? [];

/** The origin whose pages may show pages of the portal in a frame. */
export const embedder = 'http://127.0.0.1:7007';

/** Somebody who can log in and whom no catalog has, until a SCIM client provisions them. */
export const guest = 'zora@trip.example';

/** A member of the security team whose login continues an older one, so that what is sensitive asks for another. */
export const remembered = 'oscar';

/** What `acp-playground up --json-ready` writes. */
export interface Ready {
  portalURL: string;
  issuerURL: string;
  stateDir: string;
  kubeconfigs: Record<string, string>;
  ports: Record<string, number>;
  pids: Record<string, number>;
  supervisorPID: number;
  startSeconds: number;
}

export interface ProcessStatus {
  name: string;
  pid: number;
  state: string;
}

/** A fleet of its own in a temporary folder; every port is free when it starts. */
export class Fleet {
  private constructor(
    readonly ready: Ready,
    private readonly process: ChildProcess,
  ) {}

  /** Starts a fleet; `configure` may write files of the portal's configuration, and returns the variables that name them. */
  static async start(port: number, configure: (stateDir: string) => Record<string, string> = () => ({})): Promise<Fleet> {
    const stateDir = mkdtempSync(join(tmpdir(), 'acp-e2e-'));
    setOnCall(stateDir, 'nobody@trip.example');
    const file = join(stateDir, 'ready.json');
    const log = openSync(join(stateDir, 'up.log'), 'w');
    const child = spawn(
      playground,
      ['up', '--repo', repo, '--bin-dir', bin, '--state-dir', stateDir, '--port', String(port), '--json-ready', file, '--guests', guest, '--remembered', remembered, ...flags],
      { stdio: ['ignore', log, log], env: { ...process.env, ACP_PORTAL_EMBED_ORIGINS: embedder, ACP_PORTAL_ON_CALL: onCallFile(stateDir), ...configure(stateDir) } },
    );
    const deadline = Date.now() + 300_000;
    while (!existsSync(file)) {
      if (child.exitCode !== null || Date.now() > deadline) {
        child.kill('SIGTERM');
        throw new Error(`the playground did not start:\n${readFileSync(join(stateDir, 'up.log'), 'utf8')}`);
      }
      await new Promise((r) => setTimeout(r, 100));
    }
    return new Fleet(JSON.parse(readFileSync(file, 'utf8')) as Ready, child);
  }

  /** Ends the run as Ctrl-C does and reports every process that is still alive. */
  async stop(): Promise<string[]> {
    const before = await ctlStatus(this.ready.stateDir);
    const exited = new Promise<void>((r) => this.process.once('exit', () => r()));
    this.process.kill('SIGINT');
    await exited;
    const left = before.filter((p) => p.pid > 0 && existsSync(`/proc/${p.pid}`)).map((p) => `${p.name} (${p.pid})`);
    if (left.length === 0) rmSync(this.ready.stateDir, { recursive: true, force: true });
    return left;
  }
}

function onCallFile(stateDir: string): string {
  return join(stateDir, 'on-call.yaml');
}

/** Writes who is on call for the schedule "caches"; the portal reads the file when it changes. */
export function setOnCall(stateDir: string, address: string): void {
  const rotation = { people: [address], start: '2026-01-05T09:00', days: 1 };
  writeFileSync(onCallFile(stateDir), JSON.stringify({ schedules: { caches: { tiers: [{ rotation }] } } }));
}

/** Global set-up stores a list with one value for each worker in an environment variable; returns the value of the worker that runs the test. */
export function ofWorker<T>(variable: string): T {
  const value = (JSON.parse(process.env[variable] ?? '[]') as T[])[Number(process.env.TEST_PARALLEL_INDEX ?? 0)];
  if (value === undefined) throw new Error('the fleet is not running: start the tests with "make e2e"');
  return value;
}

/** The fleet that global set-up started for the worker, as the tests see it. */
export function ready(): Ready {
  return ofWorker<Ready>('ACP_E2E_READY');
}

/** Stops, kills or starts one process of the fleet. */
export async function ctl(verb: 'stop' | 'kill' | 'start' | 'restart', name: string): Promise<void> {
  await run(playground, ['ctl', '--state-dir', ready().stateDir, verb, name]);
}

export async function ctlStatus(stateDir: string): Promise<ProcessStatus[]> {
  const { stdout } = await run(playground, ['ctl', '--state-dir', stateDir, '-o', 'json', 'status']);
  return JSON.parse(stdout) as ProcessStatus[];
}

import { expect } from '@playwright/test';
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Person } from './people.js';
import { ready } from './fleet.js';

const program = join(process.env.ACP_BIN ?? resolve(import.meta.dirname, '../bin'), 'kubectl-acp');

export interface Result {
  code: number;
  out: string;
  err: string;
}

/** The command line of one person: the login is in a separate file, and nothing of the machine's user is read. */
export class CommandLine {
  private readonly dir = mkdtempSync(join(tmpdir(), 'acp-e2e-cli-'));
  readonly credentials = join(this.dir, 'credentials.yaml');

  /** Logs in with the device flow: the command prints a code, and the person agrees in the browser. */
  static async logIn(person: Person): Promise<CommandLine> {
    const cli = new CommandLine();
    const child = cli.spawn(['login', '--server', ready().portalURL]);
    const ended = collect(child);
    const text = await printed(child, /Open\s+(\S+)\s+Enter\s+(\S+)/);
    await person.page.goto(text[1] ?? '');
    await person.page.getByTestId('device-code').fill(text[2] ?? '');
    await person.page.getByTestId('device-look').click();
    await expect(person.page.getByTestId('device-asked')).toContainText('kubectl');
    await person.page.getByTestId('device-agree').click();
    await expect(person.page.getByTestId('device-done')).toBeVisible();
    const result = await ended;
    expect(result.code, result.err).toBe(0);
    expect(result.out).toContain('Logged in at');
    expect(statSync(cli.credentials).mode & 0o077, 'the login is readable by its user only').toBe(0);
    return cli;
  }

  run(args: string[], input = ''): Promise<Result> {
    const child = this.spawn(args);
    child.stdin.end(input);
    return collect(child);
  }

  /** Runs what must work, and returns what it printed. */
  async ok(args: string[], input = ''): Promise<string> {
    const { code, out, err } = await this.run(args, input);
    expect(code, `${args.join(' ')}: ${err}`).toBe(0);
    return out;
  }

  async json<T>(args: string[]): Promise<T> {
    return JSON.parse(await this.ok([...args, '-o', 'json'])) as T;
  }

  close(): void {
    rmSync(this.dir, { recursive: true, force: true });
  }

  private spawn(args: string[]): ChildProcessWithoutNullStreams {
    const { PATH } = process.env;
    return spawn(program, [...args, '--credentials', this.credentials], { env: { PATH, HOME: this.dir } });
  }
}

async function collect(child: ChildProcessWithoutNullStreams): Promise<Result> {
  let out = '';
  let err = '';
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
  const code = await new Promise<number>((done, failed) => {
    child.once('error', failed);
    child.once('close', (c) => done(c ?? -1));
  });
  return { code, out, err };
}

function printed(child: ChildProcessWithoutNullStreams, pattern: RegExp): Promise<RegExpExecArray> {
  return new Promise((found, missing) => {
    let text = '';
    child.stderr.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      const match = pattern.exec(text);
      if (match) found(match);
    });
    child.once('close', () => missing(new Error(`ended without ${pattern.source}: ${text}`)));
  });
}

import { createHmac, randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { ofWorker, ready } from './fleet.js';

/** The name of the receiver in the portal's configuration; decisions that come from it show it. */
export const receiverName = 'relay';

/** The part of a webhook that a receiver needs to answer it with a decision: the address, and what the answer must repeat (docs/notifications.md). */
export interface WebhookAnswer {
  url: string;
  ticket: string;
  version: number;
  digest: string;
  token: string;
  expires: string;
}

/** A call of Slack's API by the portal that sends a message. */
export interface SlackCall {
  method: string;
  channel: string;
  text: string;
}

interface Received {
  webhooks: { ticket?: string; answer?: WebhookAnswer }[];
  slack: SlackCall[];
}

/** A server in place of the receiver of the portal's webhooks and of Slack's API. It keeps the requests, and returns them at GET /. */
export interface Receiver {
  url: string;
  close: () => Promise<void>;
}

const keyFile = 'relay-key';
const signingFile = 'slack-signing-secret';
const domain = 'trip.example';

/** The Slack ID of a person of the demo. */
export function slackUser(name: string): string {
  return `U0${name.toUpperCase()}`;
}

/** Returns the response of Slack's API to a call of a method, for a workspace whose users are the people of the demo. */
function slackAnswer(method: string, query: URLSearchParams, text: string): unknown {
  const user = (id: string, email: string) => ({ ok: true, user: { id, team_id: 'T1', is_email_confirmed: true, profile: { email } } });
  switch (method) {
    case 'users.lookupByEmail': {
      const email = query.get('email') ?? '';
      return user(slackUser(email.split('@')[0] ?? ''), email);
    }
    case 'users.info': {
      const id = query.get('user') ?? '';
      return user(id, `${id.slice(2).toLowerCase()}@${domain}`);
    }
    case 'chat.postMessage':
      return { ok: true, channel: 'D1', ts: `1700000000.${(Buffer.byteLength(text) % 1_000_000).toString().padStart(6, '0')}` };
    default:
      return { ok: true };
  }
}

export async function startReceiver(): Promise<Receiver> {
  const received: Received = { webhooks: [], slack: [] };
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk: Buffer) => (text += chunk.toString()));
    request.on('end', () => {
      const { pathname, searchParams } = new URL(request.url ?? '/', 'http://receiver');
      const [, method] = /^\/slack\/(.+)$/.exec(pathname) ?? [];
      let answer: unknown = {};
      if (method !== undefined) {
        answer = slackAnswer(method, searchParams, text);
        if (text !== '') received.slack.push({ method, channel: (JSON.parse(text) as { channel?: string }).channel ?? '', text });
      } else if (request.method === 'POST') received.webhooks.push(JSON.parse(text) as Received['webhooks'][number]);
      else answer = received;
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
    });
  });
  await new Promise<void>((then) => server.listen(0, '127.0.0.1', then));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((then) => {
        server.close(() => then());
        server.closeAllConnections();
      }),
  };
}

/** Writes the portal's configuration of notifications, with Slack and a receiver that may decide, and returns its path. */
export function notifications(stateDir: string, receiver: Receiver): string {
  const secret = (name: string, text: string): string => {
    writeFileSync(join(stateDir, name), `${text}\n`, { mode: 0o600 });
    return join(stateDir, name);
  };
  const config = {
    slack: { api: `${receiver.url}/slack`, tokenFile: secret('slack-token', 'xoxb-1'), signingSecretFile: secret(signingFile, randomBytes(16).toString('hex')) },
    webhooks: [{ name: receiverName, url: receiver.url, keyFile: secret(keyFile, `whsec_${randomBytes(32).toString('base64')}`), kinds: ['approval-needed'], answers: { as: 'directory' } }],
  };
  return secret('notify.yaml', JSON.stringify(config));
}

/** The key that the portal shares with the receiver. */
export function receiverKey(): string {
  return readFileSync(join(ready().stateDir, keyFile), 'utf8').trim();
}

/** The secret with which Slack signs. */
export function slackSecret(): string {
  return readFileSync(join(ready().stateDir, signingFile), 'utf8').trim();
}

/** Returns the headers of a request that is signed according to Standard Webhooks. */
export function signed(key: string, id: string, at: Date, body: string): Record<string, string> {
  const time = Math.floor(at.getTime() / 1000).toString();
  const mac = createHmac('sha256', Buffer.from(key.replace(/^whsec_/, ''), 'base64')).update(`${id}.${time}.${body}`).digest('base64');
  return { 'content-type': 'application/json', 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': `v1,${mac}` };
}

/** Returns the headers of a request with the signature of Slack. */
export function signedBySlack(secret: string, at: Date, body: string): Record<string, string> {
  const time = Math.floor(at.getTime() / 1000).toString();
  const mac = createHmac('sha256', secret).update(`v0:${time}:${body}`).digest('hex');
  return { 'content-type': 'application/x-www-form-urlencoded', 'x-slack-request-timestamp': time, 'x-slack-signature': `v0=${mac}` };
}

/** Returns the body of the request that Slack sends when a user presses a button of a message. */
export function buttonPressBody(user: string, button: { action: string; value: string }): string {
  const payload = {
    type: 'block_actions', user: { id: user, team_id: 'T1' }, team: { id: 'T1' }, trigger_id: '1.2.3',
    container: { type: 'message', channel_id: 'D1', message_ts: '1700000000.000100' },
    actions: [{ action_id: button.action, value: button.value, type: 'button' }],
  };
  return new URLSearchParams({ payload: JSON.stringify(payload) }).toString();
}

async function received(): Promise<Received> {
  return (await (await fetch(ofWorker<string>('ACP_E2E_RECEIVERS'))).json()) as Received;
}

/** Returns the parts for answers of the webhooks about a ticket, in the order of their arrival. */
export async function webhookAnswers(ticket: string): Promise<WebhookAnswer[]> {
  return (await received()).webhooks.flatMap((each) => (each.ticket === ticket && each.answer ? [each.answer] : []));
}

/** Returns the calls of Slack's API about a ticket. */
export async function slackCalls(ticket: string): Promise<SlackCall[]> {
  return (await received()).slack.filter(({ text }) => new RegExp(`\\b${ticket}\\b`).test(text));
}

interface Message {
  blocks?: { elements?: { action_id?: string; value?: string; url?: string }[] }[];
}

/** Returns the elements of the messages that a user got about a ticket. */
async function elementsOf(ticket: string, user: string): Promise<{ action_id?: string; value?: string; url?: string }[]> {
  const messages = (await slackCalls(ticket)).filter(({ method, channel }) => method === 'chat.postMessage' && channel === user);
  return messages.flatMap(({ text }) => ((JSON.parse(text) as Message).blocks ?? []).flatMap((block) => block.elements ?? []));
}

/** Returns the address to which the message that a user got about a ticket links, or undefined if no message was sent yet. */
export async function linkOf(ticket: string, user: string): Promise<string | undefined> {
  return (await elementsOf(ticket, user)).find(({ url }) => url !== undefined)?.url;
}

/** Returns the value of a button of the message that a user got about a ticket, or undefined if no message was sent yet. */
export async function buttonOf(ticket: string, user: string, action: string): Promise<string | undefined> {
  return (await elementsOf(ticket, user)).find(({ action_id }) => action_id === action)?.value;
}

import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { ready } from './fleet.js';

/** Asks a cluster's API server, as its administrator; undefined: there is no such object. */
export async function kube(cluster: string, method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, body?: unknown): Promise<unknown> {
  const config = readFileSync(ready().kubeconfigs[cluster] ?? '', 'utf8');
  const field = (name: string): string => {
    const value = new RegExp(`^\\s*${name}: (\\S+)$`, 'm').exec(config)?.[1];
    if (!value) throw new Error(`the kubeconfig of ${cluster} has no ${name}`);
    return value;
  };
  const { status, text } = await new Promise<{ status: number; text: string }>((resolve, reject) => {
    const asked = request(
      field('server') + path,
      {
        method,
        ca: readFileSync(field('certificate-authority')),
        headers: { authorization: `Bearer ${field('token')}`, 'content-type': 'application/json' },
      },
      (answer) => {
        let text = '';
        answer.on('data', (chunk: Buffer) => (text += chunk.toString()));
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }));
      },
    );
    asked.on('error', reject);
    asked.end(body === undefined ? undefined : JSON.stringify(body));
  });
  if (status === 404) return undefined;
  if (status >= 300) throw new Error(`${method} ${path} in ${cluster}: ${status} ${text}`);
  return JSON.parse(text) as unknown;
}

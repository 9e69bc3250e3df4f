import { existsSync, readFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join, resolve } from 'node:path';

const dist = resolve(import.meta.dirname, '../web/dist');
const types: Record<string, string> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.woff2': 'font/woff2' };

/** Answers by path below /api/v1; what has no answer is not found. */
export type Answers = Record<string, (search: URLSearchParams) => unknown>;

export interface StandIn {
  url: string;
  close: () => Promise<void>;
}

/** The built web application before an API that answers at once, so that only the page is measured. */
export async function standIn(answers: Answers): Promise<StandIn> {
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://stand-in');
    const path = pathname.replace(/^\/api\/v1/, '');
    if (path === pathname) file(pathname, response);
    else if (path === '/events') response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    else {
      const answer = answers[path]?.(searchParams);
      const status = answer === undefined ? 404 : 200;
      const body = answer ?? { type: 'about:blank', title: 'not found', status, code: 'not-found' };
      response.writeHead(status, { 'content-type': status === 200 ? 'application/json' : 'application/problem+json' }).end(JSON.stringify(body));
    }
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

/** A file of the application; whatever is none is one of its pages. */
function file(pathname: string, response: ServerResponse): void {
  const at = join(dist, pathname);
  const found = pathname !== '/' && at.startsWith(dist) && existsSync(at) ? at : join(dist, 'index.html');
  response.writeHead(200, { 'content-type': types[extname(found)] ?? 'application/octet-stream' }).end(readFileSync(found));
}

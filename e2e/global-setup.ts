import { createServer } from 'node:net';
import type { FullConfig } from '@playwright/test';
import { Fleet } from './fleet.js';
import { notifications, startReceiver } from './receiver.js';

/** Starts a fleet for each worker; what it returns ends them, and fails the run when a process survives. */
export default async function globalSetup({ workers }: FullConfig): Promise<() => Promise<void>> {
  const started = await Promise.allSettled(Array.from({ length: workers }, start));
  const running = started.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  const end = async (): Promise<void> => {
    const left = (await Promise.all(running.map(({ stop }) => stop()))).flat();
    if (left.length > 0) throw new Error(`these processes survived the playground: ${left.join(', ')}`);
  };
  const failed = started.find((each) => each.status === 'rejected');
  if (failed) {
    await end();
    throw failed.reason;
  }
  process.env.ACP_E2E_RECEIVERS = JSON.stringify(running.map(({ receiver }) => receiver));
  process.env.ACP_E2E_READY = JSON.stringify(running.map(({ fleet }) => fleet.ready));
  for (const { fleet } of running) console.log(`e2e: fleet ready in ${fleet.ready.startSeconds.toFixed(1)} s at ${fleet.ready.portalURL}`);
  return end;
}

interface Running {
  fleet: Fleet;
  receiver: string;
  /** Ends the fleet, and returns the processes that are still alive. */
  stop: () => Promise<string[]>;
}

async function start(): Promise<Running> {
  const receiver = await startReceiver();
  const fleet = await Fleet.start(await freePort(), (stateDir) => ({ ACP_PORTAL_NOTIFY: notifications(stateDir, receiver) }));
  const stop = async (): Promise<string[]> => {
    const left = await fleet.stop();
    await receiver.close();
    return left;
  };
  return { fleet, receiver: receiver.url, stop };
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      const port = typeof address === 'object' && address ? address.port : 0;
      server.close(() => resolve(port));
    });
  });
}

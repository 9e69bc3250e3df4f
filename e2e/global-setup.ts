import { createServer } from 'node:net';
import { Fleet } from './fleet.js';
import { notifications, startReceiver } from './receiver.js';

/** Starts one fleet for all tests; what it returns ends it, and fails the run when a process survives. */
export default async function globalSetup(): Promise<() => Promise<void>> {
  const receiver = await startReceiver();
  process.env.ACP_E2E_RECEIVER = receiver.url;
  const fleet = await Fleet.start(await freePort(), (stateDir) => ({ ACP_PORTAL_NOTIFY: notifications(stateDir, receiver) }));
  process.env.ACP_E2E_READY = JSON.stringify(fleet.ready);
  console.log(`e2e: fleet ready in ${fleet.ready.startSeconds.toFixed(1)} s at ${fleet.ready.portalURL}`);
  return async () => {
    const left = await fleet.stop();
    await receiver.close();
    if (left.length > 0) throw new Error(`these processes survived the playground: ${left.join(', ')}`);
  };
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

import { test, type Page } from '@playwright/test';
import { crowd } from './crowd.js';
import { standIn, type StandIn } from './standin.js';

/** These tests measure pages with 10,000 links, 10,000 resources and 500 members, without the server: an API in the test answers at once. */
let portal: StandIn;
test.beforeAll(async () => {
  portal = await standIn(crowd);
});
test.afterAll(() => portal.close());

const times = 5;
const word = 'cache 123';

test('the access map and its table', async ({ page }) => {
  const opened = await opens(page, '/access?level=resource', '[data-testid=graph-picture] canvas', '[data-testid=access-table]');
  say('web_access_map_10k', opened);
  say('web_access_map_10k_key', await types(page, 'access-search'));
  await page.goto(`${portal.url}/access?level=resource`);
  await shown(page, '[data-testid=graph-picture] canvas', '[data-testid=access-table]');
  say('web_access_map_10k_find_key', await types(page, 'graph-find'));
  await page.keyboard.press('Escape');
  await page.getByTestId('graph-picture').focus();
  say('web_access_map_10k_zoom', await slowest(page, async () => {
    for (const key of ['+', '+', '+', '-', 'ArrowDown', '0']) await page.keyboard.press(key, { delay: 40 });
  }));
  say('web_access_map_10k_hover', await frames(page, async () => {
    const box = await page.getByTestId('graph-picture').boundingBox();
    for (let i = 0; box && i < 30; i++) await page.mouse.move(box.x + box.width * 0.3, box.y + 20 + i * 12);
  }));
});

test('the traffic map', async ({ page }) => {
  const ready = ['[data-testid=traffic-picture] canvas', '[data-testid=traffic-kind-allowed]'];
  say('traffic_map_10k', await opens(page, '/traffic?level=resource', ...ready));
  say('traffic_map_10k_key', await types(page, 'traffic-search'));
  await page.goto(`${portal.url}/traffic?level=resource`);
  await shown(page, ...ready);
  say('traffic_map_10k_find_key', await types(page, 'traffic-find'));
  await page.keyboard.press('Escape');
  await page.getByTestId('traffic-picture').focus();
  say('traffic_map_10k_zoom', await slowest(page, async () => {
    for (const key of ['+', '+', '+', '-', 'ArrowDown', '0']) await page.keyboard.press(key, { delay: 40 });
  }));
  say('traffic_map_10k_hover', await frames(page, async () => {
    const box = await page.getByTestId('traffic-picture').boundingBox();
    for (let i = 0; box && i < 30; i++) await page.mouse.move(box.x + box.width * 0.5, box.y + 20 + i * 12);
  }));
});

test('the board', async ({ page }) => {
  say('web_board_10k', await opens(page, '/rollout', '[data-testid=column-enforce] li', '[data-testid=column-observe] li'));
  say('web_board_10k_key', await types(page, 'rollout-search'));
  await page.goto(`${portal.url}/rollout`);
  await shown(page, '[data-testid=column-enforce] li');
  // Somebody who looks through a column: the board is heavier afterwards.
  for (let i = 0; i < 4; i++) {
    await page.getByTestId('column-more-refine').click();
    await page.waitForFunction((least) => document.querySelectorAll('[data-testid=column-refine] [data-testid^=card-cache]').length >= least, 58 + 50 * i);
  }
  say('web_board_10k_unfolded_key', await types(page, 'rollout-search'));
});

test('the fleet', async ({ page }) => {
  say('web_fleet_500', await opens(page, '/fleet', '[data-testid=member-member-000]', '[data-testid=state-Unreachable]'));
  say('web_fleet_500_key', await types(page, 'fleet-search'));
});

function say(name: string, ms: number): void {
  console.log(`bench ${name} ${Math.round(ms)} ms`);
}

/** From the address to the page that can be used, in the middle of some times: each is there, was painted, and the page is idle. */
async function opens(page: Page, path: string, ...selectors: string[]): Promise<number> {
  const each: number[] = [];
  for (let i = 0; i < times; i++) {
    await page.goto(`${portal.url}${path}`, { waitUntil: 'commit' });
    each.push(await shown(page, ...selectors));
  }
  return each.sort((a, b) => a - b)[Math.floor(times / 2)] ?? NaN;
}

/** Milliseconds since the navigation at which all of it was there and nothing kept the page from answering. */
async function shown(page: Page, ...selectors: string[]): Promise<number> {
  return page.evaluate(
    (wanted) =>
      new Promise<number>((then) => {
        const look = () => {
          if (!wanted.every((selector) => document.querySelector(selector))) requestAnimationFrame(look);
          // After the frame that paints it.
          else requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => then(performance.now()))));
        };
        look();
      }),
    selectors,
  );
}

/** The slowest keystroke of a word, from the key to the next frame; what earlier ones find meanwhile is drawn between them. */
async function types(page: Page, testId: string): Promise<number> {
  const field = page.getByTestId(testId);
  await field.click();
  return slowest(page, async () => {
    await field.pressSequentially(word, { delay: 120 });
    await page.waitForTimeout(600);
    for (let i = 0; i < word.length; i++) await page.keyboard.press('Backspace', { delay: 120 });
  });
}

/** The slowest event of what is done, as the browser measures it: from the input to the next frame. It rounds to 8 ms and leaves out what is below 16. */
async function slowest(page: Page, act: () => Promise<void>): Promise<number> {
  await page.evaluate(() => {
    const seen = ((window as unknown as { seen: number[] }).seen = []) as number[];
    new PerformanceObserver((list) => seen.push(...list.getEntries().map(({ duration }) => duration))).observe({ type: 'event', durationThreshold: 16 } as PerformanceObserverInit);
  });
  await act();
  await page.waitForTimeout(400);
  return page.evaluate(() => Math.max(16, ...(window as unknown as { seen: number[] }).seen));
}

/** The longest frame during an animation, for which there is no event. */
async function frames(page: Page, act: () => Promise<void>): Promise<number> {
  await page.evaluate(() => {
    const w = window as unknown as { longest: number };
    let last = performance.now();
    w.longest = 0;
    const next = (now: number) => {
      w.longest = Math.max(w.longest, now - last);
      last = now;
      requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
  });
  await act();
  return page.evaluate(() => (window as unknown as { longest: number }).longest);
}

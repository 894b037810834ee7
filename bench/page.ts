/** How long a page over 5,000 rollouts takes, from the address of the run to its grid on screen, in a real Chromium. */
import { loadConfig, openFarm } from '@swefarm/shared';
import { makeRun, startCommand, startRedis } from '@swefarm/testkit';
import { type Browser, chromium } from 'playwright-core';
import { median } from './statistics.ts';

export type PagePart = {
  rollouts: number;
  /** Milliseconds from navigation to the first useful view, a fresh tab each time. */
  first_view_ms: { samples: number[]; p50: number; worst: number };
  /** The part of that time until the gateway answered with the run. */
  answer_ms: { samples: number[]; p50: number };
  answer_bytes: number;
};

const TOKEN = 'token-of-the-benchmark';
const GROUP_SIZE = 8;
const CHROMIUM = '/usr/bin/chromium';

export async function measurePage(groups: number, reps: number): Promise<PagePart> {
  await using redis = await startRedis();
  const config = loadConfig('producer', { env: {}, flags: { redisUrl: redis.url } });
  await using farm = await openFarm(config, 'producer');
  const { record, rollouts } = await makeRun(farm, { instances: groups, groupSize: GROUP_SIZE });
  const gateway = startCommand('swefarm', ['serve', '--port', '0'], {
    SWEFARM_REDIS_URL: redis.url,
    SWEFARM_GATEWAY_TOKEN: TOKEN,
  });
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
  try {
    await gateway.until(/"url":"[^"]+"/);
    const [, origin = ''] = /"url":"([^"]+)"/.exec(gateway.stdout()) ?? [];
    const looks = [];
    // The first tab is not counted, because it also fills the code caches that later tabs use.
    for (let rep = 0; rep <= reps; rep++)
      looks.push(await look(browser, `${origin}/ui/#/run/${record.run_id}`));
    const [, ...counted] = looks;
    const views = counted.map((one) => one.view);
    const answers = counted.map((one) => one.answer);
    return {
      rollouts: rollouts.length,
      first_view_ms: { samples: views, p50: median(views), worst: Math.max(...views) },
      answer_ms: { samples: answers, p50: median(answers) },
      answer_bytes: counted[0]?.bytes ?? 0,
    };
  } finally {
    await browser.close();
    gateway.kill('SIGTERM');
    await gateway.exit;
  }
}

async function look(browser: Browser, url: string): Promise<{ view: number; answer: number; bytes: number }> {
  const context = await browser.newContext({ viewport: { width: 1360, height: 900 } });
  await context.addInitScript((token) => sessionStorage.setItem('swefarm.token', token), TOKEN);
  const page = await context.newPage();
  await page.goto(url);
  await page.locator('.square').first().waitFor();
  // The browser measures the times, from the start of its navigation.
  const [view, answer, bytes] = (await page.evaluate(`(() => {
    const run = performance.getEntriesByType('resource').find((one) => one.name.includes('/v1/page/runs/'));
    return [performance.getEntriesByName('swefarm-run-shown')[0].startTime, run.responseEnd, run.decodedBodySize];
  })()`)) as [number, number, number];
  await context.close();
  return { view: Math.round(view), answer: Math.round(answer), bytes };
}

export function printPage({ rollouts, first_view_ms, answer_ms, answer_bytes }: PagePart): string {
  return [
    `page: ${rollouts} rollouts, ${(answer_bytes / 1024 ** 2).toFixed(1)} MiB`,
    `  first useful view  p50 ${first_view_ms.p50} ms, worst ${first_view_ms.worst} ms (n=${first_view_ms.samples.length})`,
    `  the answer came    p50 ${answer_ms.p50} ms`,
  ].join('\n');
}

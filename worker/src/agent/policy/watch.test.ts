import { type EndpointView, PolicyRecord } from '@swefarm/shared';
import { expect, onTestFinished, test, vi } from 'vitest';
import { Endpoints } from './endpoints.ts';
import { watchPolicies } from './watch.ts';

const POLL = { timeout: 20_000, interval: 5 };
vi.setConfig({ testTimeout: 60_000 });
const URLS = ['http://a/v1', 'http://b/v1'];

/** Workers that exchange the loads of their endpoints, without Redis. */
function farm() {
  const records = new Map<string, PolicyRecord>();
  const reports = new Map<string, EndpointView[]>();
  let broken = false;
  const warnings: string[] = [];
  const parts = {
    policies: {
      async get(names: readonly string[]) {
        if (broken) throw new Error('gone');
        return names.flatMap((name) => records.get(name) ?? []);
      },
      async report(worker: string, views: EndpointView[]) {
        reports.set(worker, views);
        const others = [...reports].flatMap(([other, list]) => (other === worker ? [] : list));
        return new Map(others.map(({ url, load }) => [url, load]));
      },
    },
  } as unknown as Parameters<typeof watchPolicies>[0]['farm'];
  return {
    reports,
    warnings,
    set: (change: Partial<PolicyRecord>) => {
      const fresh = {
        name: 'p',
        version: null,
        versions: [],
        endpoints: [],
        state: 'serving',
        changed_at: 0,
      };
      records.set('p', PolicyRecord.parse({ ...fresh, ...change }));
    },
    breaks: (now: boolean) => {
      broken = now;
    },
    worker(name: string) {
      const endpoints = new Endpoints();
      const log = { warn: (_: object, message: string) => void warnings.push(message) };
      const watch = watchPolicies({ farm: parts, worker: name, endpoints, log, intervalMs: 5 });
      onTestFinished(() => watch[Symbol.dispose]());
      return { endpoints, watch };
    },
  };
}

test('workers know the rollouts that other workers have bound', async () => {
  const all = farm();
  const [one, two] = [all.worker('one'), all.worker('two')];
  using _one = await one.watch.follow({ name: 'p', urls: URLS });
  using _two = await two.watch.follow({ name: 'p', urls: URLS });
  const bound = one.endpoints.bind(URLS, 'x');
  one.endpoints.bind([bound.url], 'y');
  await expect.poll(() => all.reports.get('one'), POLL).toMatchObject([{ url: bound.url, load: 2 }]);
  // The other endpoint has less load, so the hash of the key does not matter.
  const elsewhere = async (key: string) => {
    using other = two.endpoints.bind(URLS, key);
    return other.url !== bound.url;
  };
  await expect
    .poll(async () => (await Promise.all(['a', 'b', 'c', 'd', 'e', 'f'].map(elsewhere))).every(Boolean), POLL)
    .toBe(true);
});

test('announcements are read at the start and each second; an outage changes nothing', async () => {
  const all = farm();
  all.set({ state: 'updating' });
  using followed = await all.worker('one').watch.follow({ name: 'p', urls: [] });
  expect(followed.pause.paused).toBe(true);
  all.breaks(true);
  await expect.poll(() => all.warnings.length, POLL).toBe(1);
  expect(followed.pause.paused).toBe(true);
  const before = followed.pause.seconds();
  all.set({ state: 'serving', version: 'v2', changed_at: 1 });
  all.breaks(false);
  await expect.poll(() => followed.pause.paused, POLL).toBe(false);
  expect(followed.record()?.version).toBe('v2');
  const after = followed.pause.seconds();
  expect(after).toBeGreaterThanOrEqual(before);
  expect(followed.pause.seconds()).toBe(after);
  expect(all.warnings).toHaveLength(1);
});

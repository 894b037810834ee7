/**
 * Monitoring: `GET /healthz` (Redis answers) and `GET /livez` (the process answers) for probes, `GET /metrics` with sums over results
 * and the state of the farm, `GET /sd` and the file `file_sd` with the targets of Prometheus: live workers with metrics, and this gateway.
 */
import type { AddressInfo } from 'node:net';
import {
  errorMessage,
  escapedErrors,
  type Family,
  type Farm,
  family,
  hostPort,
  LIVE_METRICS,
  type Log,
  outcomeFamilies,
  reachableHost,
  renderFamilies,
  replaceFile,
  versionFamilies,
  vitalFamilies,
  type WorkerRecord,
  waitAtMost,
} from '@swefarm/shared';
import { collectDefaultMetrics, Registry } from 'prom-client';
import type { App } from '../access/app.ts';
import type { GatewayDeps } from '../access/deps.ts';

/** Timeout of Redis, shorter than the scrape timeout of Prometheus (10 s), so that the gateway can answer without metrics of the farm. */
const REDIS_MS = 5_000;

export async function monitoringRoutes(app: App, deps: GatewayDeps): Promise<void> {
  const { farm, config, log } = deps;
  app.get('/healthz', { config: { public: true } }, async () => {
    // If Redis fails, `ping` throws and the gateway answers 503.
    const redisMs = await farm.ping();
    return { status: 'ok', redis_ms: Math.round(redisMs * 10) / 10 };
  });

  // This route does not check Redis, because a restart of the gateway would not repair Redis.
  app.get('/livez', { config: { public: true } }, () => ({ status: 'ok' }));

  const own = new Registry();
  collectDefaultMetrics({ register: own });

  app.get('/metrics', async (_request, reply) => {
    const families = await withinTime(farmFamilies(farm)).catch((error: unknown) => {
      log.warn({ err: error }, 'metrics of Redis not read');
      return vitalFamilies(null);
    });
    reply.type(Registry.PROMETHEUS_CONTENT_TYPE);
    const escaped = Object.entries(escapedErrors()).map(([kind, value]) => ({ labels: { kind }, value }));
    return renderFamilies([...families, family(LIVE_METRICS.escaped, escaped)]) + (await own.metrics());
  });

  // The target of the gateway is the `host` header of the request: Prometheus can reach this address.
  app.get('/sd', async (request) => targetGroups(await farm.registry.list(), request.headers.host ?? null));

  const path = config.file_sd;
  if (path === null) return;
  let file: ReturnType<typeof startFileSd> | null = null;
  app.addHook('onListen', () => {
    const { port } = app.server.address() as AddressInfo;
    const address = hostPort(reachableHost(config.gateway_host), port);
    file = startFileSd({ path, log, groups: async () => targetGroups(await farm.registry.list(), address) });
  });
  app.addHook('onClose', async () => await file?.stop());
}

async function farmFamilies(farm: Farm): Promise<Family[]> {
  const [totals, versions, vitals] = await Promise.all([
    farm.results.totals(),
    farm.results.versionTotals(),
    farm.vitals(),
  ]);
  return [...outcomeFamilies(totals), ...versionFamilies(versions), ...vitalFamilies(vitals)];
}

async function withinTime<T>(work: Promise<T>): Promise<T> {
  const ending = await waitAtMost(work, REDIS_MS);
  if (ending.by === 'itself') return ending.value;
  throw new Error(`no answer from Redis within ${REDIS_MS / 1000} s`);
}

/** One entry of the target list; format: https://prometheus.io/docs/prometheus/latest/http_sd. */
type TargetGroup = { targets: string[]; labels: Record<string, string> };

/** @param gateway `host:port` of the gateway; null: the targets do not include the gateway */
function targetGroups(workers: readonly WorkerRecord[], gateway: string | null): TargetGroup[] {
  const own: TargetGroup[] = gateway === null ? [] : [{ targets: [gateway], labels: { role: 'gateway' } }];
  const groups = workers.flatMap(({ metrics, node, runtime }) =>
    metrics === null ? [] : [{ targets: [metrics], labels: { role: 'worker', node, runtime } }],
  );
  return [...own, ...groups.sort((a, b) => (String(a.targets) < String(b.targets) ? -1 : 1))];
}

const EVERY_MS = 10_000;

type FileSd = { path: string; groups: () => Promise<TargetGroup[]>; log: Log };

/** Writes the file immediately, then checks every ten seconds whether the targets have changed. */
function startFileSd({ path, groups, log }: FileSd): { stop(): Promise<void> } {
  let written = '';
  let failed = false;
  const write = async (): Promise<void> => {
    try {
      const text = `${JSON.stringify(await groups(), null, 2)}\n`;
      if (text === written) return;
      await replaceFile(path, text, { aside: `${path}.new` });
      written = text;
      failed = false;
    } catch (error) {
      if (!failed) log.warn({ path, err: errorMessage(error) }, 'targets not written');
      failed = true;
    }
  };
  let writing = write();
  const timer = setInterval(() => {
    writing = writing.then(write);
  }, EVERY_MS);
  return {
    async stop() {
      clearInterval(timer);
      await writing;
    },
  };
}

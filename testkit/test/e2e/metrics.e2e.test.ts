/**
 * Tests metrics with a real Prometheus, which finds gateway and workers through /sd and scrapes a run with known outcomes, during
 * which a worker is killed. Every query of every panel runs, every alert fires and clears in promtool, and the alert about
 * infrastructure reaches a webhook through a real Alertmanager.
 */
import { cp, readdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join, resolve } from 'node:path';
import { json } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { buildExamples } from '../../src/examples/build.ts';
import { gatewayUrl, type Started } from '../../src/launchers/commands.ts';
import { type Prometheus, startAlertmanager, startPrometheus } from '../../src/launchers/prometheus.ts';
import { startRedis } from '../../src/launchers/redis.ts';
import { run } from '../../src/launchers/run.ts';
import { readLines } from '../../src/lines.ts';
import { listen } from '../../src/listen.ts';
import { conversation, loadScript, type ScriptInput } from '../../src/policy/script.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { type Line, openScene } from './scene.ts';
import { EXAMPLE_ID } from './scripts.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const PROMETHEUS = join(ROOT, 'dashboards/prometheus');
const TOKEN = 'a-token-for-prometheus';
/** Timeout of polls, long enough for loaded machines. */
const PATIENCE = { timeout: 120_000, interval: 250 };

const ROLLOUTS = 12;
const TURN_LIMIT = 6;
/** Results of the four variants of the script, three rollouts each. */
const KNOWN = { judged: 9, resolved: 3, failed: 3, turns: 3 * (4 + 3 + TURN_LIMIT) };

/**
 * Panels, or queries of a panel, that are empty after the run: no rollout is bound to an endpoint, all tests have started, all tool calls
 * were parsed, the agent is the farm's own, and there was no session.
 */
const RESTING = [
  'Swefarm: queue and Redis: Policy endpoints',
  'Swefarm: queue and Redis: Admission by load',
  'Swefarm: queue and Redis: Load of endpoints',
  'Swefarm: queue and Redis: KV cache of endpoints',
  'Swefarm: nodes: Control evaluations',
  'Swefarm: nodes: Evaluations by purpose: sum by (end) (increase(swefarm_same_patch_total',
  'Swefarm: nodes: Requests of agents that come as programs',
  'Swefarm: nodes: Replays of recorded turns',
  'Swefarm: training: Tool calls that cannot be read',
  'Swefarm: training: Turns a second, as they happen: sum by (kind) (rate(swefarm_session_inputs_total',
];

/** Variants: a fix, a wrong fix, no submit, and a refusal by the endpoint. The first turn is slow, so that Prometheus sees the rollout. */
function script(): ScriptInput {
  const file = join(ROOT, 'examples/policy/examples.yaml');
  const parse = loadScript(file).conversations.find(({ name }) => name?.startsWith('parse'));
  const variants = (parse?.variants ?? []).slice(0, 4).map(([first, ...rest]) => {
    if (!first) throw new Error('a variant without a turn');
    return [{ ...first, delay_ms: 4_000 }, ...rest];
  });
  return conversation(...variants);
}

/** Writes the shipped configuration with this test's addresses and short intervals. */
async function configuration(folder: string, gateway: string, alertmanager: string): Promise<string> {
  await writeFile(join(folder, 'token'), TOKEN);
  for (const name of ['rules.yml', 'alerts.yml']) await cp(join(PROMETHEUS, name), join(folder, name));
  const alerts = await readFile(join(folder, 'alerts.yml'), 'utf8');
  await writeFile(join(folder, 'alerts.yml'), alerts.replaceAll(/for: \d+m/g, 'for: 1s'));
  const shipped = await readFile(join(PROMETHEUS, 'prometheus.yml'), 'utf8');
  return shipped
    .replaceAll('http://localhost:8080', gateway)
    .replaceAll('localhost:9093', new URL(alertmanager).host)
    .replaceAll(/(interval): 15s/g, '$1: 1s');
}

type Notice = {
  alerts: { status: string; labels: Record<string, string>; annotations: Record<string, string> }[];
};

async function startWebhook() {
  const notices: Notice['alerts'] = [];
  const server = createServer(async (request, response) => {
    notices.push(...((await json(request)) as Notice).alerts);
    response.end();
  });
  return {
    url: `http://127.0.0.1:${await listen(server)}/`,
    notices,
    [Symbol.dispose]: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

const value = async (prometheus: Prometheus, expr: string): Promise<number> =>
  Number((await prometheus.query(expr))[0]?.value[1] ?? Number.NaN);

type Panel = { title: string; type: string; targets?: { expr: string }[] };
type Dashboard = { title: string; panels: Panel[] };

async function panelQueries(): Promise<{ panel: string; expr: string }[]> {
  const folder = join(ROOT, 'dashboards/grafana');
  const files = (await readdir(folder)).filter((name) => name.endsWith('.json'));
  const dashboards = await Promise.all(
    files.map(async (name) => JSON.parse(await readFile(join(folder, name), 'utf8')) as Dashboard),
  );
  return dashboards.flatMap(({ title, panels }) =>
    panels.flatMap((panel) =>
      (panel.targets ?? []).map(({ expr }) => ({
        panel: `${title}: ${panel.title}`,
        // The values that Grafana would insert: all kinds, all nodes, and a window that includes the run.
        expr: expr.replaceAll(/\$(kind|node)\b/g, '.*').replaceAll('$window', '5m'),
      })),
    ),
  );
}

test('every alert fires and clears for promtool', async () => {
  const { stdout } = await run('promtool', ['test', 'rules', 'alerts.test.yml'], { cwd: PROMETHEUS });
  expect(stdout).toContain('SUCCESS');
  await run('promtool', ['check', 'rules', 'rules.yml', 'alerts.yml'], { cwd: PROMETHEUS });
  await run('promtool', ['check', 'config', '--syntax-only', 'prometheus.yml'], { cwd: PROMETHEUS });
});

test('Prometheus has the exact counts of a run with a killed worker, and alerts', async () => {
  await using redis = await startRedis();
  const scene = openScene({ SWEFARM_REDIS_URL: redis.url, SWEFARM_GATEWAY_TOKEN: TOKEN });
  const { folder } = scene;
  await using policy = await startScriptedPolicy({ script: script() });
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: 'rootfs', out: folder });
  const prices = join(folder, 'prices.yaml');
  await writeFile(prices, 'scripted: {prompt: 1, completion: 2}\n');
  scene.env.SWEFARM_PRICES = prices;
  const gateway = scene.start`serve --port 0`;
  const started: Started[] = [gateway];
  using webhook = await startWebhook();
  try {
    const url = await gatewayUrl(gateway);
    const startWorker = (node: string) =>
      scene.worker`--runtime rootfs --concurrency 6 --node ${node} --worker-id ${node}-1 --metrics-port auto`;
    const [alpha, beta] = await Promise.all([startWorker('alpha'), startWorker('beta')]);
    started.push(alpha, beta);

    await using alertmanager = await startAlertmanager(folder, webhook.url);
    await using prometheus = await startPrometheus(
      folder,
      await configuration(folder, url, alertmanager.url),
    );
    const living = async () =>
      (await prometheus.targets())
        .filter(({ health }) => health === 'up')
        .map(({ labels }) => labels.node ?? labels.role)
        .sort();
    await expect.poll(living, PATIENCE).toEqual(['alpha', 'beta', 'gateway']);

    const runId = await scene.submit`--dataset ${built.files.rootfs} --agent mini --kind training
      --group-size ${ROLLOUTS} --step-limit ${TURN_LIMIT}
      --policy-url ${policy.url} --model scripted --policy-version step-7`;
    const output = join(folder, 'out.jsonl');
    const collect = scene.start`collect ${runId} --output ${output}`;
    started.push(collect);

    // One scrape sees the worker busy, and the worker is dead before the next scrape.
    const busy = () => value(prometheus, 'swefarm_worker_active_rollouts{node="alpha"}');
    await expect.poll(busy, PATIENCE).toBeGreaterThan(0);
    alpha.kill('SIGKILL');
    await alpha.exit;

    expect(await collect.exit).toBe(10);
    const results = await readLines<Line>(output);
    const again = results.reduce((sum, { attempt }) => sum + attempt - 1, 0);
    expect(again).toBeGreaterThan(0);

    const total = () => value(prometheus, 'sum(swefarm_rollouts_total)');
    await expect.poll(total, PATIENCE).toBe(ROLLOUTS);
    const known = {
      'sum(swefarm_rollouts_total{kind="training",outcome="judged"})': KNOWN.judged,
      'sum(swefarm_rollouts_resolved_total) / sum(swefarm_rollouts_total{outcome="judged"})':
        KNOWN.resolved / KNOWN.judged,
      'sum(swefarm_rollout_turns_sum) / sum(swefarm_rollout_turns_count)': KNOWN.turns / KNOWN.judged,
      'sum(swefarm_rollouts_failed_total{stage="policy",class="policy_unauthorized"})': KNOWN.failed,
      'sum(swefarm_rollouts_failed_total)': KNOWN.failed,
      'sum(swefarm_rollouts_exited_total{exit_status="turn_limit"})': 3,
      'sum(swefarm_reward_total)': KNOWN.resolved,
      'sum(swefarm_reward_part_total{part="resolved"})': KNOWN.resolved,
      'sum(swefarm_priced_resolved_total{model="scripted"})': KNOWN.resolved,
      'sum(swefarm_attempts_total{class="lost"})': again,
      'sum(swefarm_attempts_total{class="done"})': KNOWN.judged,
      'sum(swefarm_groups_total{end="short"})': 1,
      'sum(swefarm_version_resolved_total{version="step-7"})': KNOWN.resolved,
    };
    const expressions = Object.keys(known);
    const text = async () => {
      const values = await Promise.all(expressions.map((expr) => value(prometheus, expr)));
      return Object.fromEntries(expressions.map((expr, i) => [expr, values[i]]));
    };
    // An attempt is counted after its result, possibly in the next scrape.
    await expect.poll(text, PATIENCE).toEqual(known);

    // Discovery drops the dead worker, which is counted as lost, and still lists the living worker and the gateway.
    await expect.poll(living, PATIENCE).toEqual(['beta', 'gateway']);
    await expect.poll(() => value(prometheus, 'swefarm_workers_lost_total'), PATIENCE).toBe(1);

    await scene.swefarm`policy set --state serving`;
    const queries = await panelQueries();
    expect(queries.length).toBeGreaterThan(50);
    const silent = async (): Promise<string[]> => {
      const answers = await Promise.all(queries.map(({ expr }) => prometheus.query(expr)));
      const empty = queries.filter((_, index) => answers[index]?.length === 0);
      return empty
        .map(({ panel, expr }) => `${panel}: ${expr}`)
        .filter((query) => !RESTING.some((resting) => query.startsWith(resting)));
    };
    await expect.poll(silent, PATIENCE).toEqual([]);
    // The panel of endpoints had data while rollouts ran.
    expect(
      await value(prometheus, 'max(max_over_time(swefarm_policy_endpoint_rollouts[10m]))'),
    ).toBeGreaterThan(0);

    const page = () =>
      webhook.notices.find(({ labels }) => labels.alertname === 'SwefarmInfrastructureFailures');
    await expect.poll(page, PATIENCE).toMatchObject({
      status: 'firing',
      labels: { severity: 'page' },
      annotations: { panel: expect.stringMatching(/^\/d\/swefarm-training\?viewPanel=\d+$/) },
    });
    await expect
      .poll(() => webhook.notices.map(({ labels }) => labels.alertname), PATIENCE)
      .toContain('SwefarmWorkerLost');
    // One log line has the outcome of a rollout and its earlier attempts.
    expect(beta.stderr()).toMatch(/"outcome":"(judged|failed)".*"before":\["lost"\]/);
  } finally {
    for (const one of started) one.kill('SIGKILL');
    await Promise.all(started.map((one) => one.exit));
  }
});

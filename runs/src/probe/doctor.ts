/** `swefarm doctor`: checks Redis, queue, artifacts, workers and policy for a run; each problem has a remedy. */
import {
  effectiveSampling,
  errorMessage,
  type Farm,
  type Finding,
  newId,
  openFarm,
  type PolicyConfig,
  type PolicyKey,
  type ProducerConfig,
  SwefarmError,
} from '@swefarm/shared';
import { fail, ok, warn } from './finding.ts';
import { firstModel, probePictures, probePolicy } from './probe.ts';
import { probeTokens } from './tokenprobe.ts';

type DoctorOptions = {
  config: ProducerConfig;
  policyUrls: readonly string[];
  /** Settings of a run; the URLs in them are ignored. With `require_tokens`, the doctor also runs the token probe. */
  policy: PolicyConfig;
  acceptRawLogprobs: boolean;
  pictures?: boolean;
  apiKey: PolicyKey | null;
  signal: AbortSignal;
};

/** Model name that stands for the first model that an endpoint serves. */
export const ANY_MODEL = '(any)';

/** Runs all checks. A problem becomes a finding. Throws UsageError for an unusable tokenizer folder. */
export async function diagnose(options: DoctorOptions): Promise<Finding[]> {
  const farm = await farmFindings(options);
  const policy = await Promise.all(options.policyUrls.map((url) => policyFindings(url, options)));
  return [...farm, ...policy.flat()];
}

async function farmFindings({ config, signal }: DoctorOptions): Promise<Finding[]> {
  if (config.redis_url === null) {
    const remedy = 'set --redis-url or SWEFARM_REDIS_URL to check a farm';
    return [warn('redis', 'no --redis-url: rollout would start a Redis of its own', remedy)];
  }
  try {
    await using farm = await openFarm(config, 'producer', { signal });
    const ms = await farm.ping();
    const refused = config.redis_durability === 'required';
    return [
      ok('redis', `${farm.address}, ${ms.toFixed(1)} ms`),
      ...farm.warnings.map((text) => serverFinding(text, refused && farm.hazards.includes(text))),
      await guarded('queue', () => queueFinding(farm)),
      await guarded('artifacts', () => artifactFinding(farm, signal)),
      await guarded('workers', () => workerFinding(farm)),
    ];
  } catch (error) {
    const code = error instanceof SwefarmError ? error.code : '';
    const remedy =
      code === 'redis_auth'
        ? 'check user and password of the URL'
        : 'start Redis, or check host, port and TLS of the URL';
    return [fail('redis', errorMessage(error), remedy)];
  }
}

/** Makes a finding of a warning of the farm: the remedy follows the last semicolon. `refused`: the farm refuses to use this server. */
function serverFinding(text: string, refused: boolean): Finding {
  const at = text.lastIndexOf('; ');
  const detail = at < 0 ? text : text.slice(0, at);
  const remedy = at < 0 ? 'see the message' : text.slice(at + 2);
  return refused
    ? fail('redis', detail, `${remedy}, or redis_durability best_effort`)
    : warn('redis', detail, remedy);
}

async function guarded(subject: string, find: () => Promise<Finding>): Promise<Finding> {
  try {
    return await find();
  } catch (error) {
    return fail(subject, errorMessage(error), 'see the message');
  }
}

async function queueFinding(farm: Farm): Promise<Finding> {
  const counts = await farm.queue().getJobCounts('active', 'prioritized', 'waiting', 'delayed', 'failed');
  const { active = 0, prioritized = 0, waiting = 0, delayed = 0, failed = 0 } = counts;
  const detail = `${waiting + prioritized} wait, ${active} run, ${delayed} delayed, ${failed} failed`;
  const remedy =
    'a job failed inside the queue: a bug of the farm, see the worker log; --resume queues it again';
  return failed > 0 ? warn('queue', detail, remedy) : ok('queue', detail);
}

/** Writes a small blob and reads it back, because the store may be full or read-only. */
async function artifactFinding(farm: Farm, signal: AbortSignal): Promise<Finding> {
  const locator = await farm.artifacts.put(
    'doctor.probe.0',
    { attempt: 1, claim: newId() },
    Buffer.from('probe'),
    signal,
  );
  try {
    const back = await farm.artifacts.get(locator);
    if (back.toString() !== 'probe')
      return fail('artifacts', `${locator} was read with other content`, 'check the disk');
  } finally {
    await farm.artifacts.remove(locator);
  }
  const { used_bytes: used, budget_bytes: budget, artifacts } = await farm.artifacts.usage();
  const share = budget > 0 ? used / budget : 0;
  const detail = `${farm.artifacts.kind}, ${artifacts} artifacts, ${mib(used)} of ${mib(budget)} (${(share * 100).toFixed(0)} %)`;
  const remedy = 'raise --artifact-budget-bytes, or collect and remove old runs: workers stop claiming';
  return share > 0.9 ? warn('artifacts', detail, remedy) : ok('artifacts', detail);
}

const mib = (bytes: number): string => `${(bytes / 1024 ** 2).toFixed(0)} MiB`;

async function workerFinding(farm: Farm): Promise<Finding> {
  const workers = await farm.registry.list();
  const slots = workers.reduce((sum, worker) => sum + worker.slots, 0);
  const busy = workers.reduce((sum, worker) => sum + worker.active, 0);
  if (workers.length === 0)
    return warn('workers', 'none is alive', 'start one: swefarm-worker run --redis-url …');
  const paused = workers.filter((worker) => worker.paused !== null);
  const [first] = paused;
  const detail = `${workers.length} alive, ${busy} of ${slots} slots busy`;
  if (!first) return ok('workers', detail);
  const more = `${paused.length} paused: ${first.paused}`;
  return warn('workers', `${detail}; ${more}`, 'see swefarm-worker doctor on that node');
}

async function policyFindings(
  url: string,
  { policy, apiKey, signal, acceptRawLogprobs, pictures = false }: DoctorOptions,
): Promise<Finding[]> {
  const named = policy.model === ANY_MODEL ? null : policy.model;
  const model = named ?? (await firstModel(url, { model: null, apiKey, signal }));
  const config = model === null ? null : { ...policy, model };
  const sampling = effectiveSampling(policy);
  const probe = await probePolicy(url, { model: named, sampling, modes: policy, apiKey, signal });
  const healthy = probe.every(({ status }) => status !== 'fail');
  const tokens =
    healthy && config?.require_tokens
      ? await probeTokens(url, { config, apiKey, signal, acceptRawLogprobs })
      : [];
  const shown =
    healthy && model !== null && pictures
      ? [await probePictures(url, model, { sampling, apiKey, signal })]
      : [];
  return [...probe, ...tokens, ...shown].map((finding) => ({
    ...finding,
    subject: `policy ${finding.subject}`,
    detail: `${url}: ${finding.detail}`,
  }));
}

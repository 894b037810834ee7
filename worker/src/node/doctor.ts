/** `swefarm-worker doctor`: checks on this node everything that a rollout needs. */
import { readFile, statfs } from 'node:fs/promises';
import { listBundles } from '@swefarm/agents';
import { APIError, createEndpointClient } from '@swefarm/policy';
import { INTERNAL_SPEC, type Runtime, type RuntimeCheck, SCRATCH } from '@swefarm/sandbox';
import {
  errorMessage,
  type Finding,
  openFarm,
  ownFolder,
  RUNTIME_NAMES,
  silentLog,
  type WorkerConfig,
} from '@swefarm/shared';
import { PROGRAM_LIMITS } from '../evaluation/program.ts';
import { chooseRuntime, openRuntime } from './runtimes.ts';

const LOW_DISK_BYTES = 20 * 1024 ** 3;
const ENDPOINT_TIMEOUT_MS = 10_000;

/** Returns problems as findings and does not throw for them. Reads the list of models of `policyUrl`, if given. */
export async function diagnose(
  config: WorkerConfig,
  policyUrl: string | null,
  signal: AbortSignal,
): Promise<Finding[]> {
  return [
    ...(await runtimeFindings(config, signal)),
    ...(await parserImageFindings(config, signal)),
    await redisFinding(config, signal),
    await diskFinding(config),
    await agentsFinding(config),
    ...(await kernelFindings()),
    ...(policyUrl ? [await endpointFinding(policyUrl, signal)] : []),
  ];
}

async function runtimeFindings(config: WorkerConfig, signal: AbortSignal): Promise<Finding[]> {
  const names = config.runtime === 'auto' ? RUNTIME_NAMES : [config.runtime];
  const findings: Finding[] = [];
  let usable = false;
  for (const name of names) {
    await using runtime = await openRuntime(name, config, silentLog());
    const check = await runtime.check(signal);
    const needed = config.runtime === name;
    const status = check.usable ? (check.problems.length > 0 ? 'warn' : 'ok') : needed ? 'fail' : 'warn';
    findings.push({ status, subject: `runtime ${name}`, detail: describe(check) });
    // The runtime `host` does not isolate, so `auto` never chooses it.
    usable ||= check.usable && runtime.isolates;
  }
  if (config.runtime === 'auto' && !usable) {
    const detail = 'no runtime that isolates its containers can be used here';
    findings.push({ status: 'fail', subject: 'runtime', detail });
  }
  return findings;
}

function describe(check: RuntimeCheck): string {
  const limits = Object.entries(check.limits)
    .map(([name, how]) => `${name} ${how}`)
    .join(', ');
  const head = check.usable ? `${check.version ?? 'usable'}; limits: ${limits}` : 'not usable';
  return [head, ...check.problems].join('; ');
}

async function redisFinding(config: WorkerConfig, signal: AbortSignal): Promise<Finding> {
  if (config.redis_url === null) {
    const detail =
      'redis_url is not set: `swefarm rollout` starts a Redis; `swefarm-worker run` needs redis_url';
    return { status: 'warn', subject: 'redis', detail };
  }
  try {
    // A producer's connection fails fast; a worker's connection would wait for Redis.
    await using farm = await openFarm(config, 'producer', { signal });
    const ms = await farm.ping();
    const detail = [`${farm.address}, ${ms.toFixed(1)} ms`, ...farm.warnings].join('; ');
    const refused = config.redis_durability === 'required' && farm.hazards.length > 0;
    return { status: refused ? 'fail' : farm.warnings.length > 0 ? 'warn' : 'ok', subject: 'redis', detail };
  } catch (error) {
    return { status: 'fail', subject: 'redis', detail: errorMessage(error) };
  }
}

async function diskFinding(config: WorkerConfig): Promise<Finding> {
  try {
    await ownFolder(config.scratch_dir, SCRATCH);
    const stats = await statfs(config.scratch_dir);
    const free = stats.bavail * stats.bsize;
    const detail = `${(free / 1024 ** 3).toFixed(1)} GiB free at ${config.scratch_dir}`;
    if (free >= LOW_DISK_BYTES) return { status: 'ok', subject: 'disk', detail };
    return { status: 'warn', subject: 'disk', detail: `${detail}; SWE images are 1-5 GiB each` };
  } catch (error) {
    return { status: 'fail', subject: 'disk', detail: errorMessage(error) };
  }
}

/** Reads the endpoint's list of models. `url` is the base URL, as in `--policy-url`. */
async function endpointFinding(url: string, signal: AbortSignal): Promise<Finding> {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(ENDPOINT_TIMEOUT_MS)]);
  const finding = (status: Finding['status'], detail: string): Finding => ({
    status,
    subject: 'policy endpoint',
    detail: `${url}: ${detail}`,
  });
  try {
    const models = await createEndpointClient(url, null).models(limited);
    return finding('ok', `serves ${models.map(({ id }) => id).join(', ')}`);
  } catch (error) {
    const status = error instanceof APIError ? error.status : undefined;
    // A node has no key of a run, so a 401 shows that a server listens.
    if (status === 401 || status === 403) return finding('ok', `reachable, wants a key (HTTP ${status})`);
    return finding('fail', status === undefined ? errorMessage(error) : `HTTP ${status} at ${url}`);
  }
}

/** Kernel limits that apply to a user or the whole node, with recommended values: one sandbox can exhaust them for all. */
const KERNEL_LIMITS = { 'fs.inotify.max_user_instances': 8192, 'kernel.pty.max': 65536 } as const;

/** @param read returns the content of a file below /proc/sys */
export async function kernelFindings(
  read = (path: string): Promise<string> => readFile(`/proc/sys/${path}`, 'utf8'),
): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const [name, wanted] of Object.entries(KERNEL_LIMITS)) {
    const value = Number(await read(name.replaceAll('.', '/')).catch(() => Number.NaN));
    if (value >= wanted || Number.isNaN(value)) continue;
    const detail = `${name} is ${value}, which one sandbox can exhaust: sysctl -w ${name}=${wanted}`;
    findings.push({ status: 'warn', subject: 'kernel', detail });
  }
  return findings;
}

/** Lists the agents that come as programs and are installed on this node. */
async function agentsFinding({ agents_dir: dir }: WorkerConfig): Promise<Finding> {
  const subject = 'agents';
  try {
    const bundles = await listBundles(dir);
    const names = bundles.map(({ manifest: { name, version } }) => `${name} ${version}`);
    const detail = names.length > 0 ? `${names.join(', ')} in ${dir}` : `none installed in ${dir}`;
    return { status: 'ok', subject, detail: `${detail} (swefarm agents install)` };
  } catch (error) {
    return { status: 'fail', subject, detail: `agents_dir ${dir}: ${errorMessage(error)}` };
  }
}

const PARSER = 'parser_image';
const PYTHON_MS = 60_000;
const PACKAGE = 'multi_swe_bench';
const SCRIPT = `import importlib.util as u; print("${PACKAGE}" if u.find_spec("${PACKAGE}") else "none")`;

/**
 * Checks parser_image: whether Python starts in the image, and whether the image can grade Multi-SWE. Returns problems as findings; throws
 * only the signal's reason.
 */
export async function parserImageFindings(config: WorkerConfig, signal: AbortSignal): Promise<Finding[]> {
  const { parser_image: name } = config;
  if (name === null) {
    const detail =
      'not set: rows whose outcomes a program of the dataset reads (Multi-SWE, SWE-bench-Live) fail here';
    return [{ status: 'ok', subject: PARSER, detail }];
  }
  try {
    const { runtime: chosen } = await chooseRuntime(config, silentLog(), signal);
    await using runtime = chosen;
    return [await checkImage(runtime, name, signal)];
  } catch (error) {
    signal.throwIfAborted();
    return [{ status: 'fail', subject: PARSER, detail: `${name}: ${errorMessage(error)}` }];
  }
}

async function checkImage(runtime: Runtime, name: string, signal: AbortSignal): Promise<Finding> {
  const image = await runtime.ensureImage(name, signal);
  await using container = await runtime.start({ ...INTERNAL_SPEC, image, limits: PROGRAM_LIMITS }, signal);
  const options = { cwd: '/', timeoutMs: PYTHON_MS, maxOutputBytes: 1_000, signal };
  const { exitCode, output } = await container.exec(['python3', '-c', SCRIPT], options);
  const printed = output.toString('utf8').trim();
  if (exitCode !== 0)
    return { status: 'fail', subject: PARSER, detail: `${name}: python3 does not start: ${printed}` };
  if (printed === PACKAGE)
    return { status: 'ok', subject: PARSER, detail: `${name}: python3 and ${PACKAGE}` };
  const detail = `${name}: python3; without the package multi-swe-bench, rows of Multi-SWE fail`;
  return { status: 'warn', subject: PARSER, detail };
}

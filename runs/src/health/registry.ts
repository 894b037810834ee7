/** The registry of instances: a JSONL file of findings. The last finding of an instance, image, grader and network counts. */
import { appendFile, mkdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { chosenSha256, type Dataset } from '@swefarm/datasets';
import { brokenBecause, type Instance, InstanceHealth, UsageError } from '@swefarm/shared';
import { z } from 'zod';

const HealthFinding = InstanceHealth.extend({
  format: z.literal('swefarm-health-1'),
  instance_id: z.string(),
});
export type HealthFinding = z.infer<typeof HealthFinding>;

export type HealthRegistry = ReadonlyMap<string, readonly InstanceHealth[]>;

/** Returns the path of the registry: the value of `--health`, or a file in the state folder. */
export const registryPath = (given: unknown, stateDir: string): string =>
  given === undefined ? join(stateDir, 'health.jsonl') : String(given);

/** Returns the findings by instance id; an absent file is an empty registry. Throws UsageError for an invalid line. */
export async function readRegistry(path: string): Promise<HealthRegistry> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return new Map();
    throw new UsageError(`${path}: cannot be read: ${(error as Error).message}`, { cause: error });
  }
  const found = new Map<string, Map<string, InstanceHealth>>();
  // Text after the last line feed is an incomplete line that a crashed writer left.
  for (const [index, line] of text.split('\n').slice(0, -1).entries()) {
    if (line.trim() === '') continue;
    const { instance_id, format: _format, ...health } = parseFinding(path, index + 1, line);
    const own = found.get(instance_id) ?? new Map<string, InstanceHealth>();
    found.set(instance_id, own.set([health.image_digest, health.grader, health.network].join(' '), health));
  }
  return new Map([...found].map(([id, own]) => [id, [...own.values()]]));
}

function parseFinding(path: string, number: number, line: string): HealthFinding {
  try {
    return HealthFinding.parse(JSON.parse(line));
  } catch (error) {
    throw new UsageError(
      `${path}:${number}: not a finding of swefarm health; remove the line or the file, or name another with --health`,
      { cause: error },
    );
  }
}

/** Appends one line per finding, all lines with one write. */
export async function appendFindings(path: string, findings: readonly HealthFinding[]): Promise<void> {
  if (findings.length === 0) return;
  await mkdir(dirname(path), { recursive: true });
  await appendFile(path, findings.map((one) => `${JSON.stringify(one)}\n`).join(''));
}

/**
 * Adds the findings of the registry to the instances of a run. `broken`: reasons by instance id; an instance is broken when every finding
 * about it gives a reason. Omits broken instances if `skipBroken`.
 */
export function addKnownHealth(
  dataset: Dataset,
  registry: HealthRegistry,
  skipBroken: boolean,
): { dataset: Dataset; broken: ReadonlyMap<string, string> } {
  const broken = new Map<string, string>();
  const instances = dataset.instances.flatMap((instance): Instance[] => {
    const health = registry.get(instance.instance_id);
    if (!health) return [instance];
    const reasons = health.map(brokenBecause);
    const [reason] = reasons;
    if (reason && !reasons.includes(null)) {
      broken.set(instance.instance_id, reason);
      if (skipBroken) return [];
    }
    return [{ ...instance, health: [...health] }];
  });
  if (instances.length === dataset.instances.length) return { dataset: { ...dataset, instances }, broken };
  const chosen = dataset.instances.filter(({ instance_id }) => !broken.has(instance_id));
  return { dataset: { ...dataset, instances, sha256: chosenSha256(chosen) }, broken };
}

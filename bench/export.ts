/** How fast `swefarm export` writes each format, and how much memory it takes, over a store of made-up trajectories. */
import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { encodeArtifact } from '@swefarm/shared';
import { madeTrajectory } from '@swefarm/testkit';
import { rounded } from './statistics.ts';

const MIB = 1024 ** 2;
const BIN = resolve(import.meta.dirname, '../producer/bin/swefarm.mjs');
const FLOOR = resolve(import.meta.dirname, 'exportfloor.ts');
const USAGE = new URL('usage.ts', import.meta.url).href;
const PARALLEL = 16;

export type ExportSize = { trajectories: number; turns: number };

export type ExportFigure = {
  format: string;
  form: string;
  seconds: number;
  /** Of user and system time, over all threads. */
  cpu_seconds: number;
  /** Of the floor, measured just before. */
  floor_cpu_seconds: number;
  written_mib: number;
  /** Of JSON that was read or bytes that were written, whichever is more, for each second of CPU. */
  mib_per_cpu_second: number;
  /** CPU of the export divided by that of the floor. */
  floors: number;
  peak_rss_mib: number;
};

export type ExportPart = ExportSize & { artifacts_mib: number; json_mib: number; formats: ExportFigure[] };

const FORMATS: readonly (readonly [format: string, form: string, name: string])[] = [
  ['sft-messages', 'jsonl', 'sft.jsonl'],
  ['swesmith-xml', 'xml', 'ft_xml.jsonl'],
  ['openhands', 'output', 'output.jsonl'],
  ['openhands', 'completions', 'output.with_completions.jsonl.gz'],
  ['swe-agent', 'tree', 'swe-agent'],
  ['mini-swe-agent', '1.1', 'mini'],
  ['atif', '1.7', 'atif'],
  ['nemo-gym', 'rows', 'X.jsonl'],
  ['verifier', 'jsonl', 'verifier.jsonl'],
  ['tokens', 'parquet', 'tokens-parquet'],
  ['tokens', 'safetensors', 'tokens-safetensors'],
  ['parquet', 'parquet', 'everything'],
];

/** `only`: names of formats; absent: all. */
export async function measureExport(
  size: ExportSize,
  reps: number,
  only?: readonly string[],
): Promise<ExportPart> {
  const folder = await mkdtemp(join(tmpdir(), 'swefarm-export-'));
  try {
    const { results, ...stored } = await makeStore(folder, size);
    const formats: ExportFigure[] = [];
    for (const [format, form, name] of FORMATS) {
      if (only && !only.includes(format)) continue;
      const runs: ExportFigure[] = [];
      for (let rep = 0; rep < reps; rep++) {
        const out = join(folder, `out-${name}`);
        const floor = await measured([FLOOR, join(folder, 'artifacts')], folder);
        const args = [BIN, 'export', results, '--format', format, '--form', form, '--out', out];
        const usage = await measured(args, folder);
        runs.push(
          figureOf({
            format,
            form,
            usage,
            floor,
            json: stored.json_mib,
            written: (await bytesOf(out)) / MIB,
          }),
        );
        await rm(out, { recursive: true, force: true });
      }
      formats.push(middle(runs));
    }
    return { ...size, ...stored, formats };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The run with the median of CPU. */
function middle(runs: readonly ExportFigure[]): ExportFigure {
  const sorted = runs.toSorted((a, b) => a.cpu_seconds - b.cpu_seconds);
  return sorted[Math.floor((sorted.length - 1) / 2)] as ExportFigure;
}

/** Artifacts as `--copy-artifacts` leaves them: the trajectory, a patch, and a log of 16 KiB. */
async function makeStore(folder: string, { trajectories, turns }: ExportSize) {
  const artifacts = join(folder, 'artifacts');
  await mkdir(artifacts);
  const lines: string[] = [];
  let [packed, plain] = [0, 0];
  for (let from = 0; from < trajectories; from += PARALLEL) {
    const part = Array.from({ length: Math.min(PARALLEL, trajectories - from) }, (_, more) => from + more);
    const stored = await Promise.all(part.map((at) => storeOne(artifacts, at, turns)));
    for (const { line, bytes, json } of stored) {
      lines.push(line);
      packed += bytes;
      plain += json;
    }
  }
  const results = join(folder, 'results.jsonl');
  await writeFile(results, lines.join(''));
  return { results, artifacts_mib: rounded(packed / MIB, 1), json_mib: rounded(plain / MIB, 1) };
}

async function storeOne(artifacts: string, at: number, turns: number) {
  const instance_id = `owner__name-${Math.floor(at / 4)}`;
  const rollout_id = `bench.${instance_id}.${at % 4}`;
  const trajectory = madeTrajectory(turns, at);
  const patch = `diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = ${at}\n`;
  const content = {
    ...{ format: 'swefarm-artifact-1' as const, rollout_id, attempt: 1, instance_id, trajectory, patch },
    ...{ report: null, test_log: 'PASSED tests/test_core.py::test_1\n'.repeat(500) },
    ...{ eval_script: null, failure_detail: null },
  };
  const blob = await encodeArtifact(content);
  const artifact_file = join(artifacts, `${rollout_id}.json.gz`);
  await writeFile(artifact_file, blob);
  const line = {
    ...{ run_id: 'bench', instance_id, rollout_id, rollout_index: at % 4, outcome: 'judged' },
    ...{ resolved: true, reward: 1, reward_row: 'resolved', reward_table: 'swefarm-reward-1:00', turns },
    ...{ exit_status: 'submitted', failure: null, facts: null, patch, report: null },
    seconds: {
      queued: 0,
      image: 0,
      sandbox: 0,
      agent: 1,
      model: 1,
      command: 0,
      patch: 0,
      evaluation: 1,
      total: 3,
    },
    ...{ tokens: { prompt: 1, completion: 1 }, policy_version: '1', artifact: null, artifact_file },
    ...{ attempt: 1, worker: 'w', node: 'n', runtime: 'rootfs', finished_at: 1 },
  };
  return { line: `${JSON.stringify(line)}\n`, bytes: blob.length, json: gunzipSync(blob).length };
}

type Usage = { seconds: number; cpu_seconds: number; peak_rss_mib: number };

/** Runs a script of Node as a process of its own. */
async function measured(args: readonly string[], folder: string): Promise<Usage> {
  const file = join(folder, 'usage.json');
  const from = performance.now();
  const child = spawn(process.execPath, ['--import', `${USAGE}?file=${encodeURIComponent(file)}`, ...args], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const code = await new Promise((ended) => child.once('close', ended));
  if (code !== 0) throw new Error(`node ${args.join(' ')} ended with ${code}`);
  const seconds = (performance.now() - from) / 1000;
  return { seconds, ...(JSON.parse(await readFile(file, 'utf8')) as Omit<Usage, 'seconds'>) };
}

type Measured = {
  format: string;
  form: string;
  usage: Usage;
  floor: Usage;
  /** MiB. */
  json: number;
  written: number;
};

const figureOf = ({ format, form, usage, floor, json, written }: Measured): ExportFigure => ({
  ...{ format, form, seconds: rounded(usage.seconds, 2), cpu_seconds: rounded(usage.cpu_seconds, 2) },
  floor_cpu_seconds: rounded(floor.cpu_seconds, 2),
  written_mib: rounded(written, 1),
  mib_per_cpu_second: rounded(Math.max(json, written) / usage.cpu_seconds, 1),
  floors: rounded(usage.cpu_seconds / floor.cpu_seconds, 2),
  peak_rss_mib: rounded(usage.peak_rss_mib, 0),
});

async function bytesOf(path: string): Promise<number> {
  const info = await stat(path);
  if (info.isFile()) return info.size;
  const names = await readdir(path);
  const sizes = await Promise.all(names.map((name) => bytesOf(join(path, name))));
  return sizes.reduce((sum, size) => sum + size, 0);
}

export function printExport(part: ExportPart): string {
  const head = `export: ${part.trajectories} trajectories of ${part.turns} turns, ${part.json_mib} MiB of JSON (${part.artifacts_mib} MiB stored)`;
  const rows = part.formats.map((one) =>
    [
      `  ${`${one.format} ${one.form}`.padEnd(24)}`,
      cell(one.seconds, 's'),
      cell(one.cpu_seconds, 's CPU'),
      cell(one.floors, 'floors'),
      cell(one.written_mib, 'MiB written'),
      cell(one.mib_per_cpu_second, 'MiB/s of CPU'),
      cell(one.peak_rss_mib, 'MiB peak'),
    ].join('  '),
  );
  return [head, ...rows].join('\n');
}

const cell = (value: number, unit: string): string => `${String(value).padStart(7)} ${unit}`;

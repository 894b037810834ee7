/** How fast `swefarm export` writes each format, and how much memory it takes, over a store of made-up trajectories. */
import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { encodeArtifact } from '@swefarm/shared';
import { madeTrajectory } from '@swefarm/testkit';
import { median, rounded } from './statistics.ts';

const MIB = 1024 ** 2;
const BIN = resolve(import.meta.dirname, '../producer/bin/swefarm.mjs');
const PARALLEL = 16;

export type ExportSize = { trajectories: number; turns: number };

export type ExportFigure = {
  format: string;
  form: string;
  seconds: number;
  /** Of user and system time, over all threads. */
  cpu_seconds: number;
  written_mib: number;
  /** Bytes of JSON in the artifacts that were read, and bytes written, for each second. */
  read_mib_per_second: number;
  written_mib_per_second: number;
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

export async function measureExport(size: ExportSize, reps: number): Promise<ExportPart> {
  const folder = await mkdtemp(join(tmpdir(), 'swefarm-export-'));
  try {
    const { results, ...stored } = await makeStore(folder, size);
    const formats: ExportFigure[] = [];
    for (const [format, form, name] of FORMATS) {
      const runs: ExportFigure[] = [];
      for (let rep = 0; rep < reps; rep++) {
        const out = join(folder, `out-${name}`);
        runs.push(await measureOne({ results, format, form, out, jsonMib: stored.json_mib }));
        await rm(out, { recursive: true, force: true });
      }
      formats.push(middle(runs));
    }
    return { ...size, ...stored, formats };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The run with the median time. */
function middle(runs: readonly ExportFigure[]): ExportFigure {
  const seconds = median(runs.map((run) => run.seconds));
  return runs.find((run) => run.seconds === seconds) as ExportFigure;
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

type Export = { results: string; format: string; form: string; out: string; jsonMib: number };

async function measureOne({ results, format, form, out, jsonMib }: Export): Promise<ExportFigure> {
  const from = performance.now();
  const args = [BIN, 'export', results, '--format', format, '--form', form, '--out', out];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  let [peak, ticks] = [0, 0];
  const watch = setInterval(async () => {
    const read = (name: string) => readFile(`/proc/${child.pid}/${name}`, 'utf8').catch(() => '');
    peak = Math.max(peak, Number(/^VmHWM:\s+(\d+) kB$/m.exec(await read('status'))?.[1] ?? 0));
    const fields = (await read('stat')).split(') ')[1]?.split(' ') ?? [];
    ticks = Math.max(ticks, Number(fields[11] ?? 0) + Number(fields[12] ?? 0));
  }, 50);
  const code = await new Promise((ended) => child.once('close', ended));
  clearInterval(watch);
  if (code !== 0) throw new Error(`export --format ${format} ended with ${code}`);
  const seconds = (performance.now() - from) / 1000;
  const written = (await bytesOf(out)) / MIB;
  return {
    ...{ format, form, seconds: rounded(seconds, 2), cpu_seconds: rounded(ticks / 100, 2) },
    written_mib: rounded(written, 1),
    read_mib_per_second: rounded(jsonMib / seconds, 1),
    written_mib_per_second: rounded(written / seconds, 1),
    peak_rss_mib: rounded(peak / 1024, 0),
  };
}

async function bytesOf(path: string): Promise<number> {
  const info = await stat(path);
  if (info.isFile()) return info.size;
  const names = await readdir(path);
  const sizes = await Promise.all(names.map((name) => bytesOf(join(path, name))));
  return sizes.reduce((sum, size) => sum + size, 0);
}

export function printExport(part: ExportPart): string {
  const head = `export: ${part.trajectories} trajectories of ${part.turns} turns, ${part.json_mib} MiB of JSON (${part.artifacts_mib} MiB stored)`;
  const rows = part.formats.map(
    (one) =>
      `  ${`${one.format} ${one.form}`.padEnd(26)} ${String(one.seconds).padStart(7)} s  cpu ${String(one.cpu_seconds).padStart(7)} s  ${String(one.read_mib_per_second).padStart(7)} MiB/s read  ${String(one.written_mib_per_second).padStart(7)} MiB/s written  ${String(one.peak_rss_mib).padStart(5)} MiB`,
  );
  return [head, ...rows].join('\n');
}

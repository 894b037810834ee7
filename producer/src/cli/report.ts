/** `swefarm report`: prints the profile of one or several outputs, or of a run that is still in Redis. */
import { existsSync } from 'node:fs';
import { describeUnreadable, openFarm, type RunRecord, startedRollouts } from '@swefarm/shared';
import { type Command, InvalidArgumentError } from 'commander';
import { profileOf, type RolloutFact } from '../output/profile.ts';
import { countOutput, countRun } from '../reports/read.ts';
import { type ProfileReport, renderReport } from '../reports/render.ts';
import { EXIT } from '../run/exit.ts';
import { addFarmOptions, type Flags, producerConfig } from './options.ts';
import { print, say } from './terminal.ts';

export function addReport(program: Command): void {
  const command = program
    .command('report')
    .description('report on results: accuracy, pass@k, failures by cause, by repository and by group')
    .argument('<output...>', 'output files (several: shards, counted as one), or ids of runs in Redis')
    .option('--k <list>', 'values of k for pass@k, such as 1,2,4 (default: powers of two)', numbers)
    .option('--json', 'print JSON (the default in a pipe)');
  addFarmOptions(command).action(async (names: string[], flags: Flags) => {
    const { report, ks } = await reportOf(names, flags);
    const human = flags.json !== true && process.stdout.isTTY;
    await print(
      human ? renderReport(report, ks) : JSON.stringify({ ...report, pass_at: chosen(report, ks) }),
    );
    process.exitCode = EXIT.allJudged;
  });
}

async function reportOf(
  names: readonly string[],
  flags: Flags,
): Promise<{ report: ProfileReport; ks: number[] }> {
  const rollouts = new Map<string, RolloutFact>();
  const records = new Map<string, RunRecord>();
  const replaced = new Set<string>();
  let known = true;
  for (const name of names) {
    const counted = existsSync(name) ? await countOutput(name) : await fromFarm(name, flags);
    for (const [id, fact] of counted.rollouts) rollouts.set(id, fact);
    for (const id of counted.replaced) replaced.add(id);
    if (counted.record) records.set(counted.record.run_id, counted.record);
    else known = false;
    for (const entry of counted.unreadable) say(`swefarm: not counted: ${describeUnreadable(entry)}`);
  }
  for (const id of replaced) rollouts.delete(id);
  const facts = [...rollouts.values()];
  const runs = [...records.values()];
  const [first] = runs;
  // Shards that share instances make larger groups than any single run requested.
  const size = known && runs.length === 1 ? first?.group_size : undefined;
  const profile = profileOf(facts, size);
  // A group without any result counts as a group too.
  const total = size === undefined ? 0 : (first?.dataset.instances ?? 0);
  const groups = { ...profile.groups, total: Math.max(total, profile.groups.total) };
  const expected = known ? runs.reduce((sum, run) => sum + startedRollouts(run), 0) : null;
  const most = Object.keys(profile.pass_at).length;
  const ks = (flags.k as number[] | undefined) ?? powersOfTwo(most);
  return { report: { expected, ...profile, groups }, ks };
}

async function fromFarm(runId: string, flags: Flags) {
  await using farm = await openFarm(producerConfig(flags), 'producer');
  return await countRun(farm, runId);
}

/** Null where no group has enough judged rollouts. */
const chosen = (report: ProfileReport, ks: readonly number[]): Record<string, number | null> =>
  Object.fromEntries(ks.map((k) => [String(k), report.pass_at[String(k)] ?? null]));

const powersOfTwo = (most: number): number[] =>
  Array.from({ length: Math.floor(Math.log2(Math.max(1, most))) + 1 }, (_, power) => 2 ** power);

function numbers(text: string): number[] {
  const ks = text.split(',').map(Number);
  if (ks.some((k) => !Number.isInteger(k) || k < 1))
    throw new InvalidArgumentError('expected numbers: 1,2,4.');
  return ks;
}

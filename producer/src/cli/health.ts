/** `swefarm health`: evaluates the gold patch and the untouched tree of each instance and records the findings. */
import {
  type ArtifactContent,
  brokenBecause,
  type Instance,
  parseRolloutId,
  type Result,
} from '@swefarm/shared';
import type { Command } from 'commander';
import type { Dataset } from '../datasets/read.ts';
import { type EvaluationRound, healthFinding, withEgress } from '../health/finding.ts';
import { appendFindings, type HealthFinding, registryPath } from '../health/registry.ts';
import { streamOutput } from '../output/output.ts';
import { EXIT, type ExitCode } from '../run/exit.ts';
import { newRunRecord } from '../run/record.ts';
import { rolloutIds } from '../run/submit.ts';
import { renderTable } from '../view/table.ts';
import { openFarmPatiently } from './farm.ts';
import { openRunFolder, runLocally } from './local.ts';
import {
  addDatasetOptions,
  addFarmOptions,
  addGradingOptions,
  addWorkerOptions,
  datasetOf,
  type Flags,
  producerConfig,
  runFlags,
  wholeNumber,
} from './options.ts';
import { listenForStop, type Stop } from './stop.ts';
import { print, say } from './terminal.ts';

export function addHealth(program: Command): void {
  const command = program
    .command('health')
    .description(
      'evaluate the gold patch and the untouched tree of each instance, and record which instances are broken',
    )
    .option('--n-times <k>', 'evaluations of the gold patch; several show flaky tests', wholeNumber, 1)
    .option('--try-egress', 'evaluate the gold patch again with a network where it fails without one')
    .option('--timeout <seconds>', 'longest time of the tests (default: 1800)')
    .option('--health <file>', 'file that records the findings (default: health.jsonl in the state folder)');
  addDatasetOptions(command);
  addGradingOptions(command);
  addWorkerOptions(command, ['--concurrency <n>', 'evaluations at once; auto: what the machine allows']);
  addFarmOptions(command).action(async (flags: Flags) => {
    process.exitCode = await runHealth(flags);
  });
}

async function runHealth(flags: Flags): Promise<ExitCode> {
  const stop = listenForStop(() =>
    say('\nswefarm: draining: running evaluations may end, no new ones start; Ctrl-C again stops at once'),
  );
  const registry = registryPath(flags.health, producerConfig(flags).state_dir);
  const dataset = await datasetOf(flags, stop.draining);
  const instances = dataset.instances.filter(({ patch }) => patch.trim() !== '');
  const without = dataset.instances.length - instances.length;
  if (without > 0) say(`swefarm: ${without} rows withhold their gold patch: nothing can be known of them`);
  if (instances.length === 0) return EXIT.someNotJudged;

  const times = Math.max(1, flags.nTimes as number);
  const first = await examine({ ...dataset, instances }, flags, times, stop);
  const findings = first.findings;
  if (flags.tryEgress === true && first.complete) {
    const failing = instances.filter(({ instance_id }) => findings.get(instance_id)?.gold_resolves === false);
    const again = await examine(
      { ...dataset, instances: failing },
      { ...flags, evalNetwork: 'egress' },
      1,
      stop,
    );
    await appendFindings(registry, [...again.findings.values()]);
    for (const [id, finding] of findings) {
      findings.set(id, withEgress(finding, again.findings.get(id) ?? null));
    }
  }
  await appendFindings(registry, [...findings.values()]);
  await tell(instances, findings, registry);
  if (!first.complete) return EXIT.interrupted;
  return findings.size < instances.length ? EXIT.someNotJudged : EXIT.allJudged;
}

type Examined = { findings: Map<string, HealthFinding>; complete: boolean };

/** One run: the first rounds of each instance evaluate gold, the last one the untouched tree. */
async function examine(dataset: Dataset, flags: Flags, times: number, stop: Stop): Promise<Examined> {
  const { instances } = dataset;
  if (instances.length === 0) return { findings: new Map(), complete: true };
  const given = { ...runFlags(flags), agent: 'patch', kind: 'validation', groupSize: times + 1 };
  const record = newRunRecord({ dataset, flags: { ...given, evalTimeout: flags.timeout } }, false);
  const patches = new Map(
    instances.map(({ instance_id, patch }) => [instance_id, [...Array<string>(times).fill(patch), '']]),
  );
  const rounds = new Map<string, EvaluationRound[]>();
  await using stack = new AsyncDisposableStack();
  const place = await openRunFolder(producerConfig(flags), record, null, stack, stop.draining);
  const farm = stack.use(await openFarmPatiently(place.config, stop.draining, { entrusts: true }));
  const output = stack.use(streamOutput(() => Promise.resolve()));
  const onResult = async (result: Result, content: ArtifactContent | null): Promise<void> => {
    const { instanceId, index } = parseRolloutId(result.rollout_id);
    const own = rounds.get(instanceId) ?? [];
    own[index] = { result, report: content?.report ?? null };
    rounds.set(instanceId, own);
  };
  const rollouts = new Set(rolloutIds(record, instances));
  const { complete } = await runLocally({
    ...{ farm, output, record, instances, patches, rollouts, onResult, flags, place, stop },
  });
  const findings = new Map<string, HealthFinding>();
  for (const instance of instances) {
    const own = rounds.get(instance.instance_id) ?? [];
    const network = instance.needs_egress ? 'egress' : record.sandbox.eval_network;
    const gold = own.slice(0, times).filter((round) => round !== undefined);
    const finding = healthFinding(instance, network, gold, own[times], new Date());
    if (finding) findings.set(instance.instance_id, finding);
  }
  return { findings, complete };
}

/** Prints a table on a terminal, else the findings as JSONL. */
async function tell(
  instances: readonly Instance[],
  findings: ReadonlyMap<string, HealthFinding>,
  registry: string,
): Promise<void> {
  const word = (finding: HealthFinding | undefined): string =>
    finding === undefined ? 'no verdict: see the worker log' : (brokenBecause(finding) ?? 'healthy');
  const rows = instances.map(({ instance_id }) => {
    const finding = findings.get(instance_id);
    return [instance_id, finding ? finding.gold_seconds.toFixed(1) : '-', word(finding)];
  });
  const columns = [{ name: 'instance' }, { name: 'gold s', align: 'right' as const }, { name: 'health' }];
  if (process.stdout.isTTY) await print(renderTable(columns, rows));
  else for (const finding of findings.values()) await print(JSON.stringify(finding));
  for (const { instance_id, flaky } of findings.values()) {
    for (const name of flaky) say(`flaky: ${instance_id}: ${name}`);
  }
  const healthy = [...findings.values()].filter((finding) => brokenBecause(finding) === null).length;
  say(`${healthy} of ${instances.length} instances are healthy; registry: ${registry}`);
}

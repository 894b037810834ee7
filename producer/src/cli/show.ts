/** `swefarm show`: one rollout, turn by turn, with its report and the time that each stage took. */

import { createReadStream } from 'node:fs';
import { parseJsonLines } from '@swefarm/datasets';
import { ensurePage, readFileSource, servePage } from '@swefarm/gateway';
import type { RewardComponents } from '@swefarm/shared';
import {
  type ArtifactContent,
  createLog,
  type Farm,
  openFarm,
  parseRolloutId,
  type Result,
  UsageError,
  whenAborted,
} from '@swefarm/shared';
import type { OutputLine } from '@swefarm/trajectories';
import { artifactOfLine, renderReward, terminalSafe } from '@swefarm/trajectories';
import type { Command } from 'commander';
import { describeArtifact } from '../view/transcript.ts';
import { EXIT } from './exit.ts';
import { lazyFarm } from './farm.ts';
import { addFarmOptions, type Flags, producerConfig } from './options.ts';
import { listenForStop } from './stop.ts';
import { print, say, styled, widthOf } from './terminal.ts';

type Found = {
  facts: Result | OutputLine;
  content: ArtifactContent | null;
};

export function addShow(program: Command): void {
  const command = program
    .command('show')
    .argument(
      '<rollout>',
      'a rollout id, FILE#ID of an output (ID may be INSTANCE.INDEX), or with --web a FILE',
    )
    .option('--turns', 'print only turns, patch and report')
    .option('--full', 'print whole observations, test ids and the test log')
    .option('--web', 'serve the page over a whole output file on this machine and print its address')
    .option('--dataset <file>', 'with --web: the dataset with the gold patches (default: the one of the run)')
    .option('--json', 'print facts and artifact as JSON (the default in a pipe)');
  addFarmOptions(command).action(async (name: string, flags: Flags) => {
    if (flags.web === true) {
      process.exitCode = await showWeb(name, flags);
      return;
    }
    const at = name.lastIndexOf('#');
    const found =
      at > 0 ? await fromFile(name.slice(0, at), name.slice(at + 1), flags) : await fromFarm(name, flags);
    const human =
      flags.json !== true && (process.stdout.isTTY || flags.turns === true || flags.full === true);
    await print(human ? describe(found, flags) : JSON.stringify(found));
  });
}

/** Serves the page for a result file alone, until Ctrl-C. */
async function showWeb(path: string, flags: Flags): Promise<number> {
  const stop = listenForStop();
  await using late = lazyFarm(() => producerConfig(flags));
  const dataset = typeof flags.dataset === 'string' ? flags.dataset : null;
  const source = await readFileSource(path, { dataset, farm: late.farm });
  await ensurePage(() => say('the page is built, once; that takes some seconds'));
  await using page = await servePage(source, createLog({ log_level: 'warn', log_format: 'auto' }));
  await print(page.url);
  say('open this address; it is for you alone, and ends with Ctrl-C');
  await whenAborted(stop.draining);
  return EXIT.allJudged;
}

async function fromFarm(name: string, flags: Flags): Promise<Found> {
  parseRolloutId(name);
  await using farm = await openFarm(producerConfig(flags), 'producer');
  const result = await farm.results.get(name);
  if (!result) throw new UsageError(await withoutResult(farm, name));
  return { facts: result, content: await farm.artifacts.read(result.artifact) };
}

/** Says why there is nothing to show yet, and which command shows more. */
async function withoutResult(farm: Farm, name: string): Promise<string> {
  const { runId, instanceId } = parseRolloutId(name);
  const known = await farm.runs.getInstance(runId, instanceId);
  const why = known
    ? `it waits or runs; swefarm logs ${name} --follow shows its turns`
    : 'swefarm status lists the runs there are';
  return `rollout ${name}: has no result at ${farm.address}: ${why}`;
}

/** A line of an output and its artifact, from a file or from Redis. */
async function fromFile(path: string, id: string, flags: Flags): Promise<Found> {
  const line = await findLine(path, id);
  await using opened = lazyFarm(() => producerConfig(flags));
  return { facts: line, content: await artifactOfLine(line, opened.farm) };
}

async function findLine(path: string, id: string): Promise<OutputLine> {
  const known: string[] = [];
  try {
    for await (const row of parseJsonLines(createReadStream(path))) {
      if ('problem' in row) continue;
      const line = (row.value.swefarm ?? row.value) as OutputLine;
      if (line.rollout_id === id || `${line.instance_id}.${line.rollout_index}` === id) return line;
      if (known.length < 5) known.push(`${line.instance_id}.${line.rollout_index}`);
    }
  } catch (error) {
    throw new UsageError(`${path}: cannot be read: ${(error as Error).message}`, { cause: error });
  }
  throw new UsageError(
    `${path}: has no rollout ${id}; it begins with ${known.join(', ') || 'no line at all'}`,
  );
}

function describe(found: Found, flags: Flags): string {
  const heading = (text: string): string => styled('bold', text, process.stdout);
  const options = { width: widthOf(process.stdout), full: flags.full === true, heading };
  const body = found.content
    ? describeArtifact(found.content, options)
    : 'no trajectory was kept for this rollout';
  return flags.turns === true ? body : [facts(found.facts), body].join('\n');
}

const partsOf = (parts: RewardComponents): string =>
  Object.entries(parts)
    .map(([name, value]) => `${name} ${renderReward(value)}`)
    .join(', ');

function facts(of: Result | OutputLine): string {
  const reward = of.reward === null ? 'no reward' : `reward ${renderReward(of.reward)}`;
  const seconds = Object.entries(of.seconds).map(([stage, spent]) => `${stage} ${(spent ?? 0).toFixed(1)}`);
  const verdict = of.resolved === null ? '' : of.resolved ? ', resolved' : ', not resolved';
  return [
    `${of.rollout_id}: ${of.outcome}${verdict}, ${reward} (row ${of.reward_row}, table ${of.reward_table})`,
    ...(of.reward_components ? [`made of ${partsOf(of.reward_components)}`] : []),
    ...(of.failure
      ? [
          `failed: ${of.failure.stage}/${of.failure.class} after ${of.failure.attempts} attempts: ${terminalSafe(of.failure.message)}`,
        ]
      : []),
    `${of.turns} turns, ${of.exit_status ?? 'no exit status'}, ${of.tokens.prompt} + ${of.tokens.completion} tokens, weights ${terminalSafe(of.policy_version ?? 'unnamed')}`,
    `attempt ${of.attempt} on ${of.node} (${of.runtime}), seconds: ${seconds.join(', ')}`,
  ].join('\n');
}

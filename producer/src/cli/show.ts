/** `swefarm show`: prints a rollout turn by turn, with report and times, or serves a page over an output (`--web`). */
import { ensurePage, readFileSource, servePage } from '@swefarm/gateway';
import {
  type ArtifactContent,
  createLog,
  errorMessage,
  type Farm,
  type InstalledAgent,
  openFarm,
  parseRolloutId,
  type Replay,
  type Result,
  UsageError,
  whenAborted,
} from '@swefarm/shared';
import type { OutputLine } from '@swefarm/trajectories';
import { artifactOfLine, openFolderTree, readLines, renderReward, terminalSafe } from '@swefarm/trajectories';
import { describeArtifact } from '../view/transcript.ts';
import { command, flag, text } from './declare.ts';
import { EXIT, type ExitCode } from './exit.ts';
import { lazyFarm } from './farm.ts';
import { FARM, type FarmValues, producerConfig } from './options.ts';
import { listenForStop } from './stop.ts';
import { print, printStatus, styled, widthOf } from './terminal.ts';

type Found = {
  facts: Result | OutputLine;
  content: ArtifactContent | null;
};

export const show = command({
  arguments: {
    '<rollout>': 'a rollout id, FILE#ID of an output (ID may be INSTANCE.INDEX), or with --web a FILE',
  },
  options: {
    '--turns': flag('print only turns, patch and report'),
    '--full': flag('print whole observations, test ids and the test log'),
    '--web': flag('serve the page over a whole output file on this machine and print its address'),
    '--dataset <file>': text('with --web: the dataset with the gold patches (default: the one of the run)'),
    '--out <folder>': text('write what the agent printed and wrote into this new folder'),
    '--json': flag('print facts and artifact as JSON (the default in a pipe)'),
    ...FARM,
  },
  example: 'swefarm show results.jsonl#INSTANCE.0 --full',
  async run(o, { rollout: name }) {
    if (o.web) return await showWeb(name, o.dataset ?? null, o);
    const found = await findRollout(name, o);
    if (o.out !== undefined) return await writeOutputs(found.content, o.out);
    const human = !o.json && (process.stdout.isTTY || o.turns || o.full);
    await print(human ? describe(found, o) : JSON.stringify(found));
    return EXIT.allJudged;
  },
});

async function showWeb(path: string, dataset: string | null, o: FarmValues): Promise<ExitCode> {
  const stop = listenForStop();
  await using late = lazyFarm(() => producerConfig(o));
  const source = await readFileSource(path, { dataset, farm: late.farm });
  await ensurePage(() => printStatus('building the page, once; this takes some seconds'));
  await using page = await servePage(source, createLog({ log_level: 'warn', log_format: 'auto' }));
  await print(page.url);
  printStatus('open this address; it is for you alone, and ends with Ctrl-C');
  await whenAborted(stop.draining);
  return EXIT.allJudged;
}

/** Writes the outputs of the agent. A name comes from the sandbox, so only its harmless parts become names of files. */
async function writeOutputs(content: ArtifactContent | null, folder: string): Promise<ExitCode> {
  const outputs = content?.outputs ?? [];
  if (outputs.length === 0) throw new UsageError('the rollout has no outputs of an agent');
  await using tree = await openFolderTree(folder);
  for (const { name, content: stored, bytes } of outputs) {
    const data =
      typeof stored === 'string' ? stored : Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength);
    try {
      await tree.write(fileName(name), data);
      if (Buffer.byteLength(data) < bytes)
        printStatus(`swefarm: ${terminalSafe(name)}: its end was not stored`);
    } catch (error) {
      printStatus(`swefarm: ${terminalSafe(name)}: not written: ${errorMessage(error)}`);
    }
  }
  await tree.finish();
  printStatus(`swefarm: ${outputs.length} outputs: ${folder}`);
  return EXIT.allJudged;
}

const LONGEST_NAME = 100;

const fileName = (name: string): string =>
  name
    .split('/')
    .map((part) => part.replace(/^\.*$|[^\w.+=@-]/g, '_').slice(-LONGEST_NAME))
    .join('/');

/** Returns a stored rollout by its id, or by FILE#ID of an output. Throws UsageError if there is none. */
export async function findRollout(name: string, o: FarmValues): Promise<Found> {
  const at = name.lastIndexOf('#');
  return at > 0 ? await fromFile(name.slice(0, at), name.slice(at + 1), o) : await fromFarm(name, o);
}

async function fromFarm(name: string, o: FarmValues): Promise<Found> {
  parseRolloutId(name);
  await using farm = await openFarm(producerConfig(o), 'producer');
  const result = await farm.results.get(name);
  if (!result) throw new UsageError(await withoutResult(farm, name));
  return { facts: result, content: await farm.artifacts.read(result.artifact) };
}

async function withoutResult(farm: Farm, name: string): Promise<string> {
  const { runId, instanceId } = parseRolloutId(name);
  const known = await farm.runs.getInstance(runId, instanceId);
  const why = known
    ? `it waits or runs; swefarm logs ${name} --follow shows its turns`
    : 'swefarm status lists all runs';
  return `rollout ${name}: has no result at ${farm.address}: ${why}`;
}

async function fromFile(path: string, id: string, o: FarmValues): Promise<Found> {
  const line = await findLine(path, id);
  await using opened = lazyFarm(() => producerConfig(o));
  return { facts: line, content: await artifactOfLine(line, path, opened.farm) };
}

async function findLine(path: string, id: string): Promise<OutputLine> {
  const known: string[] = [];
  for await (const line of readLines(path)) {
    const name = `${line.instance_id}.${line.rollout_index}`;
    if (line.rollout_id === id || name === id) return line;
    if (known.length < 5) known.push(name);
  }
  throw new UsageError(
    `${path}: has no rollout ${id}; it begins with ${known.join(', ') || 'no line at all'}`,
  );
}

function describe(found: Found, { turns, full }: { turns: boolean; full: boolean }): string {
  const heading = (text: string): string => styled('bold', text, process.stdout);
  const options = { width: widthOf(process.stdout), full, heading };
  const body = found.content
    ? describeArtifact(found.content, options)
    : 'no trajectory is stored for this rollout';
  return turns ? body : [facts(found.facts), body].join('\n');
}

function facts(of: Result | OutputLine): string {
  const reward = of.reward === null ? 'no reward' : `reward ${renderReward(of.reward)}`;
  const seconds = Object.entries(of.seconds).map(([stage, spent]) => `${stage} ${(spent ?? 0).toFixed(1)}`);
  const verdict = of.resolved === null ? '' : of.resolved ? ', resolved' : ', not resolved';
  const named = (numbers: Result['reward_parts']): string =>
    Object.entries(numbers ?? {})
      .map(([name, value]) => `${name} ${renderReward(value)}`)
      .join(', ');
  return [
    `${of.rollout_id}: ${of.outcome}${verdict}, ${reward} (row ${of.reward_row}, table ${of.reward_table})`,
    ...(of.reward_components ? [`made of ${named(of.reward_components)}`] : []),
    ...(of.reward_parts ? [`parts without weights: ${named(of.reward_parts)}`] : []),
    ...(of.failure
      ? [
          `failed: ${of.failure.stage}/${of.failure.class} after ${of.failure.attempts} attempts: ${terminalSafe(of.failure.message)}`,
        ]
      : []),
    `${of.turns} turns, ${of.exit_status ?? 'no exit status'}, ${of.tokens.prompt} + ${of.tokens.completion} tokens, weights ${terminalSafe(of.policy_version ?? 'unnamed')}`,
    ...(of.agent ? [agentText(of.agent)] : []),
    ...(of.branch_of ? [`branch of ${of.branch_of.rollout_id} behind turn ${of.branch_of.turn}`] : []),
    ...(of.replay ? [replayText(of.replay)] : []),
    `attempt ${of.attempt} on ${of.node} (${of.runtime}), seconds: ${seconds.join(', ')}`,
  ].join('\n');
}

const replayText = ({ turns, differed_at: differed }: Replay): string =>
  differed === null
    ? `${turns} turns replayed from an earlier attempt`
    : `begun anew, because the replay of an earlier attempt differed at turn ${differed}`;

function agentText(agent: InstalledAgent): string {
  const { lines, masked, requests, whole, repeated, repaired, refused } = agent;
  const left = Object.entries(masked).map(([reason, turns]) => `${turns} ${reason}`);
  const counted = (what: string, counts: Record<string, number> = {}): string[] => {
    const names = Object.entries(counts).map(([name, times]) => `${name} (${times})`);
    return names.length > 0 ? [`${what}: ${terminalSafe(names.join(', '))}`] : [];
  };
  return [
    terminalSafe(
      `agent ${agent.name} ${agent.version}, exit code ${agent.exit_code ?? 'none'}, ${lines} lines`,
    ),
    `${requests} requests: ${whole} rendered whole, ${repeated} repeated, ${repaired} given back in another form, ${refused} refused`,
    ...(left.length > 0 ? [`turns that are not trained on: ${left.join(', ')}`] : []),
    ...counted('paths that are not served', agent.unknown_paths),
    ...counted('left out of requests', agent.dropped),
  ].join('; ');
}

/** `swefarm logs`: shows the live turns of a running rollout, or the trajectory of one that has ended. */
import { type Farm, type LiveTurn, openFarm, parseRolloutId, sleepAtMost, UsageError } from '@swefarm/shared';
import { plainJson } from '@swefarm/trajectories';
import type { Command } from 'commander';
import { describeLiveTurn, describeTurns } from '../view/transcript.ts';
import { EXIT } from './exit.ts';
import { addFarmOptions, type Flags, producerConfig } from './options.ts';
import { listenForStop } from './stop.ts';
import { print, say, styled, widthOf } from './terminal.ts';

const LOOK_MS = 500;

export function addLogs(program: Command): void {
  const command = program
    .command('logs')
    .argument('<rollout>', 'a rollout id')
    .option('-f, --follow', 'follow the rollout until it ends')
    .option('--full', 'print whole observations')
    .option('--json', 'print a line of JSON for each turn');
  addFarmOptions(command).action(async (rolloutId: string, flags: Flags) => {
    process.exitCode = await logs(rolloutId, flags);
  });
}

async function logs(rolloutId: string, flags: Flags): Promise<number> {
  const { runId, instanceId } = parseRolloutId(rolloutId);
  const stop = listenForStop();
  await using farm = await openFarm(producerConfig(flags), 'producer', { signal: stop.draining });
  if (!(await farm.runs.getInstance(runId, instanceId))) {
    throw new UsageError(
      `rollout ${rolloutId}: not at ${farm.address}; swefarm status lists the runs there are`,
    );
  }
  const options = {
    width: widthOf(process.stdout),
    full: flags.full === true,
    heading: (text: string) => styled('bold', text, process.stdout),
  };
  const show = (turn: LiveTurn): Promise<void> =>
    print(flags.json === true ? JSON.stringify(turn) : describeLiveTurn(turn, options));
  let after = '0';
  let shown = 0;
  let said = '';
  for (;;) {
    const result = await farm.results.get(rolloutId);
    const { turns, last_id } = await farm.live.turns(rolloutId, after);
    after = last_id;
    for (const turn of turns) await show(turn);
    shown += turns.length;
    if (result && shown === 0) await print(await kept(farm, result.artifact, flags, options));
    if (result) {
      say(`swefarm: ${rolloutId} ${result.outcome}; swefarm show ${rolloutId} has patch, report and timings`);
      return EXIT.allJudged;
    }
    const where = await whereabouts(farm, rolloutId);
    if (where !== said) say(`swefarm: ${where}`);
    said = where;
    if (flags.follow !== true || stop.draining.aborted) return EXIT.allJudged;
    await sleepAtMost(LOOK_MS, stop.draining);
  }
}

type Options = Parameters<typeof describeTurns>[1];

async function kept(farm: Farm, locator: string | null, flags: Flags, options: Options): Promise<string> {
  const content = await farm.artifacts.read(locator);
  if (!content?.trajectory) return 'no trajectory was kept for this rollout';
  if (flags.json === true) return plainJson(content.trajectory);
  return describeTurns(content.trajectory, options);
}

async function whereabouts(farm: Farm, rolloutId: string): Promise<string> {
  const workers = await farm.registry.list();
  const running = await farm.live.running(workers.map(({ worker }) => worker));
  const state = running.find((one) => one.rollout_id === rolloutId);
  if (!state) return `${rolloutId} waits in the queue`;
  return `${rolloutId} runs on ${state.node}, attempt ${state.attempt}: ${state.stage}`;
}

/** `swefarm logs`: shows the live turns of a running rollout, or the trajectory of an ended rollout. */
import { type Farm, type LiveTurn, openFarm, parseRolloutId, sleepAtMost, UsageError } from '@swefarm/shared';
import { plainJson } from '@swefarm/trajectories';
import { describeLiveTurn, describeTurns } from '../view/transcript.ts';
import { command, flag } from './declare.ts';
import { EXIT } from './exit.ts';
import { FARM, producerConfig } from './options.ts';
import { listenForStop } from './stop.ts';
import { print, printStatus, styled, widthOf } from './terminal.ts';

const LOOK_MS = 500;

export const logs = command({
  arguments: { '<rollout>': 'a rollout id' },
  options: {
    '-f, --follow': flag('follow the rollout until it ends'),
    '--full': flag('print whole observations'),
    '--json': flag('print a line of JSON for each turn'),
    ...FARM,
  },
  example: 'swefarm logs ROLLOUT --follow',
  async run(o, { rollout: rolloutId }) {
    const { runId, instanceId } = parseRolloutId(rolloutId);
    const stop = listenForStop();
    await using farm = await openFarm(producerConfig(o), 'producer', { signal: stop.draining });
    if (!(await farm.runs.getInstance(runId, instanceId))) {
      throw new UsageError(`rollout ${rolloutId}: not at ${farm.address}; swefarm status lists all runs`);
    }
    const options = {
      width: widthOf(process.stdout),
      full: o.full,
      heading: (text: string) => styled('bold', text, process.stdout),
    };
    const show = (turn: LiveTurn): Promise<void> =>
      print(o.json ? JSON.stringify(turn) : describeLiveTurn(turn, options));
    let after = '0';
    let shown = 0;
    let lastState = '';
    for (;;) {
      const result = await farm.results.get(rolloutId);
      const { turns, last_id } = await farm.live.turns(rolloutId, after);
      after = last_id;
      for (const turn of turns) await show(turn);
      shown += turns.length;
      if (result && shown === 0) await print(await storedTurns(farm, result.artifact, o.json, options));
      if (result) {
        printStatus(
          `swefarm: ${rolloutId} ${result.outcome}; swefarm show ${rolloutId} has patch, report and timings`,
        );
        return EXIT.allJudged;
      }
      const state = await stateOf(farm, rolloutId);
      if (state !== lastState) printStatus(`swefarm: ${state}`);
      lastState = state;
      if (!o.follow || stop.draining.aborted) return EXIT.allJudged;
      await sleepAtMost(LOOK_MS, stop.draining);
    }
  },
});

async function storedTurns(
  farm: Farm,
  locator: string | null,
  json: boolean,
  options: Parameters<typeof describeTurns>[1],
): Promise<string> {
  const content = await farm.artifacts.read(locator);
  if (!content?.trajectory) return 'no trajectory is stored for this rollout';
  if (json) return plainJson(content.trajectory);
  return describeTurns(content.trajectory, options);
}

async function stateOf(farm: Farm, rolloutId: string): Promise<string> {
  const workers = await farm.registry.list();
  const running = await farm.live.running(workers.map(({ worker }) => worker));
  const state = running.find((one) => one.rollout_id === rolloutId);
  if (!state) return `${rolloutId} waits in the queue`;
  return `${rolloutId} runs on ${state.node}, attempt ${state.attempt}: ${state.stage}`;
}

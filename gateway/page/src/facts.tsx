/** Outcome, reward and other facts of a rollout. */
import type { InstalledAgent } from '@swefarm/shared';
import { renderReward } from '@swefarm/trajectories/renderreward';
import { terminalSafe } from '@swefarm/trajectories/terminalsafe';
import type { PageDetail } from '../../src/page/data.ts';
import { duration, integer, moment, words } from './format.ts';
import { Mark } from './mark.tsx';
import { nameOf, toRollout } from './route.ts';
import { stateOf } from './rows.ts';

export function Facts({ detail, turns }: { detail: PageDetail; turns: number }) {
  const { result, live, attempts, trajectory } = detail;
  return (
    <section aria-label="Outcome">
      <p>
        <Mark state={stateOf(result, live !== null)} />
        {result && (
          <>
            {' '}
            reward <b>{renderReward(result.reward)}</b>{' '}
            <span className="dim">
              (row {words(result.reward_row)}
              {Object.entries(result.reward_components ?? {}).map(
                ([name, value]) => `, ${name} ${renderReward(value)}`,
              )}
              )
            </span>{' '}
            · <b>{result.turns}</b> turns · {words(result.exit_status ?? 'no exit status')} ·{' '}
            {integer(result.tokens.prompt)} + {integer(result.tokens.completion)} tokens
            {result.policy_version !== null && ` · weights ${terminalSafe(result.policy_version)}`} · attempt{' '}
            {result.attempt} on {result.node} ({result.runtime}) · {duration(result.seconds.total)}
          </>
        )}
        {!result &&
          live &&
          ` ${words(live.stage)} · ${turns} turns · attempt ${live.attempt} on ${live.node}`}
      </p>
      {result?.reward_parts && <Parts parts={result.reward_parts} />}
      {trajectory && (
        <p className="dim">
          {trajectory.model ? `model ${terminalSafe(trajectory.model)} · ` : ''}token mode{' '}
          {trajectory.token_mode ?? 'none'}
          {trajectory.contiguous !== undefined &&
            ` · token ids ${trajectory.contiguous ? 'contiguous' : 'not contiguous'}`}
        </p>
      )}
      {result && <Origin result={result} />}
      {result?.agent && <Agent agent={result.agent} />}
      {result?.failure && (
        <p className="notice bad">
          {result.failure.stage} / {words(result.failure.class)} after {result.failure.attempts} attempts:{' '}
          {terminalSafe(result.failure.message)}
        </p>
      )}
      {attempts.length > 1 && <Attempts attempts={attempts} />}
    </section>
  );
}

function Attempts({ attempts }: Pick<PageDetail, 'attempts'>) {
  return (
    <details>
      <summary>{attempts.length} attempts</summary>
      <ul>
        {attempts.map((one) => (
          <li key={one.attempt}>
            {one.attempt}: {moment(one.claimed_at)} on {one.node},{' '}
            {one.end ? words(one.end.class) : 'end unknown'}
            {one.end?.cause ? `: ${terminalSafe(one.end.cause)}` : ''}
          </li>
        ))}
      </ul>
    </details>
  );
}

/** Shows shared turns, turns of an earlier attempt, and a verdict of another rollout. */
function Origin({ result }: { result: NonNullable<PageDetail['result']> }) {
  const { branch_of: branch, dry_run: dry, replay, graded_by: grader } = result;
  const replayed = replay && (branch ? replay.turns - branch.turn : replay.turns);
  const continued = replay?.tokens ?? 0;
  return (
    <>
      {dry && (
        <p>
          <strong>dry run</strong>: the stored rollout {terminalSafe(dry.of ?? 'none')}
          {dry.faults.map((fault) => `; ${fault}`)}
        </p>
      )}
      {branch && (
        <p className="dim">
          branch of <a href={toRollout(branch.rollout_id)}>{terminalSafe(nameOf(branch.rollout_id))}</a>{' '}
          behind turn {branch.turn}
        </p>
      )}
      {replay?.differed_at != null && (
        <p className="dim">
          began anew: turn {replay.differed_at} of an earlier attempt observed something else in a fresh
          sandbox
        </p>
      )}
      {replay && replay.differed_at === null && (replayed ?? 0) > 0 && (
        <p className="dim">continued behind turn {replay.turns}, which an earlier attempt recorded</p>
      )}
      {continued > 0 && (
        <p className="dim">{integer(continued)} tokens of an interrupted answer were continued</p>
      )}
      {grader && (
        <p className="dim">
          same patch as <a href={toRollout(grader)}>{terminalSafe(nameOf(grader))}</a>, which was graded
        </p>
      )}
    </>
  );
}

function Parts({ parts }: { parts: Readonly<Record<string, number>> }) {
  const shown = Object.entries(parts).map(([name, value]) => `${words(name)} ${renderReward(value)}`);
  return <p className="dim">parts of the reward, without weights: {shown.join(', ')}</p>;
}

/** The agent that came as a program, and how its requests were recorded. */
function Agent({ agent }: { agent: InstalledAgent }) {
  const masked = Object.entries(agent.masked).map(([reason, turns]) => `${turns} ${words(reason)}`);
  const counts = [
    ...[`${agent.requests} requests`, `${agent.whole} rendered whole`, `${agent.repeated} repeated`],
    ...[`${agent.repaired} given back in another form`, `${agent.refused} refused`],
  ];
  return (
    <p className="dim">
      agent {terminalSafe(`${agent.name} ${agent.version}`)} · exit code {agent.exit_code ?? 'none'} ·{' '}
      {agent.lines} lines · {counts.filter((text) => !text.startsWith('0 ')).join(', ')}
      {masked.length > 0 && ` · turns that are not trained on: ${masked.join(', ')}`}
    </p>
  );
}

/** View of one rollout: facts, times of stages, turns, patch and tests. The view reloads while the rollout runs. */
import type { LiveTurn, Message } from '@swefarm/shared';
import { terminalSafe } from '@swefarm/trajectories/terminalsafe';
import { useState } from 'react';
import type { PageDetail, PageLive } from '../../src/page/data.ts';
import { get, rolloutPath } from './api.ts';
import { Branches } from './branches.tsx';
import { Facts } from './facts.tsx';
import { Fold, OnDemand } from './fold.tsx';
import { bytes, integer, words } from './format.ts';
import { LineNote, Lines } from './lines.tsx';
import { useLoaded } from './load.ts';
import { Notice } from './notice.tsx';
import { Outputs } from './outputs.tsx';
import { Patches } from './patch.tsx';
import { toCompare, toRollout } from './route.ts';
import { stateOf } from './rows.ts';
import { Tests } from './tests.tsx';
import { Timing } from './timing.tsx';
import { Turn } from './turn.tsx';
import { actionsIn, type ShownLine, shownLines, shownLive } from './turns.ts';

const LIVE_MS = 1_000;

/** `cursor`: position after the known live turns; null: they have not been requested. */
type Known = { detail: PageDetail; turns: LiveTurn[]; cursor: string | null };

/** Loads the whole rollout at the first call and when the rollout has ended, and only new turns in between. */
async function update(path: string, known: Known | null): Promise<Known> {
  if (!known) return { detail: await get(path), turns: [], cursor: null };
  const after = known.cursor ?? '0';
  const { turns, cursor, live, finished } = await get<PageLive>(`${path}/live?after=${after}`);
  if (finished) return { ...known, detail: await get(path) };
  return { detail: { ...known.detail, live }, turns: [...known.turns, ...turns], cursor };
}

/** Returns the milliseconds until the next request; 0: none. The first request for live turns follows the details immediately. */
const againMs = ({ detail, cursor }: Known): number => (detail.result ? 0 : cursor === null ? 1 : LIVE_MS);

export function Rollout({ id }: { id: string }) {
  const path = rolloutPath(id);
  const { value, error } = useLoaded<Known>(path, againMs, (known) => update(path, known));
  if (!value) return <Notice error={error} />;
  const { detail, turns } = value;
  const lines = detail.trajectory ? shownLines(detail.trajectory) : shownLive(turns);
  const count = lines.reduce((sum, line) => sum + line.turns.length, 0);
  return (
    <>
      <Notice error={error} quiet />
      <h1 className="mono">
        {detail.instance_id} <span className="dim">#{id.slice(id.lastIndexOf('.') + 1)}</span>
      </h1>
      <Siblings id={id} siblings={detail.siblings} />
      <Facts detail={detail} turns={count} />
      <Branches id={id} />
      {detail.result && <Timing seconds={detail.result.seconds} />}
      {detail.missing && <p className="notice bad">{terminalSafe(detail.missing)}</p>}
      <nav aria-label="Parts" className="tabs flow">
        {['Turns', 'Patch', 'Tests'].map((part) => (
          <a key={part} href={`#${part.toLowerCase()}`} onClick={jump}>
            {part}
          </a>
        ))}
      </nav>
      <Turns id={id} lines={lines} detail={detail} />
      <Outputs id={id} outputs={detail.outputs} />
      {detail.result && <Judgement id={id} detail={detail} />}
    </>
  );
}

/** Scrolls to the target of a link and moves the focus there, without a change of the address. */
function jump(event: React.MouseEvent<HTMLAnchorElement>): void {
  event.preventDefault();
  const target = document.getElementById(event.currentTarget.hash.slice(1));
  target?.scrollIntoView({ block: 'start' });
  target?.focus({ preventScroll: true });
}

function Siblings({ id, siblings }: { id: string; siblings: readonly number[] }) {
  if (siblings.length < 2) return null;
  const stem = id.slice(0, id.lastIndexOf('.') + 1);
  return (
    <nav aria-label="Siblings" className="flow">
      <span className="dim">siblings</span>
      {siblings.map((index) => {
        const other = `${stem}${index}`;
        return other === id ? (
          <b key={index} aria-current="page">
            #{index}
          </b>
        ) : (
          <span key={index}>
            <a href={toRollout(other)}>#{index}</a>{' '}
            <a className="dim" href={toCompare(id, other)} aria-label={`compare with ${index}`}>
              ⇄
            </a>
          </span>
        );
      })}
    </nav>
  );
}

const NO_LINE: ShownLine = { id: 'L1', kind: 'main', from: null, masked: null, given: [], turns: [] };

function Turns({ id, lines, detail }: { id: string; lines: readonly ShownLine[]; detail: PageDetail }) {
  const [chosen, choose] = useState<string | null>(null);
  const running = detail.result === null;
  const shown = lines.find((line) => line.id === chosen) ?? lines[0] ?? NO_LINE;
  const problem = { role: 'the problem', content: detail.problem };
  const isFirst = shown === (lines[0] ?? NO_LINE);
  const given = shown.given.length > 0 ? shown.given : isFirst && detail.problem ? [problem] : [];
  return (
    <section id="turns" aria-label="Turns" tabIndex={-1}>
      <h2>
        Turns <span className="dim">{integer(shown.turns.length)}</span>
      </h2>
      <Lines lines={lines} chosen={shown} choose={choose} />
      {lines.length > 1 && <LineNote line={shown} choose={choose} />}
      <div className="columns">
        <ol className="index" aria-label="Turns">
          {shown.turns.map((one) => (
            <li key={one.index}>
              <a href={`#turn-${one.index + 1}`} className="cut" onClick={jump}>
                <b>{one.index + 1}</b> {terminalSafe(actionsIn(one)[0]?.split('\n')[0] ?? 'says')}
              </a>
            </li>
          ))}
        </ol>
        <div>
          {given.map((message, at) => (
            <Given key={at} message={message} />
          ))}
          {shown.turns.map((one) => (
            <Turn
              key={`${shown.id} ${one.index}`}
              rollout={id}
              line={isFirst ? null : shown.id}
              shown={one}
            />
          ))}
          {shown.turns.length === 0 && (
            <p className="notice dim">{running ? 'No turn yet.' : 'No turn was taken.'}</p>
          )}
          {running && (
            <p className="notice" role="status">
              {detail.live
                ? `Running: ${words(detail.live.stage)}, ${detail.live.turns} turns, on ${detail.live.node}.`
                : 'It waits in the queue.'}
            </p>
          )}
          {detail.failure_detail && (
            <div className="notice">
              <h3 className="bad">Why it failed</h3>
              <Fold text={detail.failure_detail} lines={40} />
            </div>
          )}
        </div>
      </div>
    </section>
  );
}

/** A message of the prompt. */
function Given({ message: { role, content } }: { message: Pick<Message, 'content'> & { role: string } }) {
  return (
    <details>
      <summary>
        {role} <span className="dim">{integer(content?.length ?? 0)} characters</span>
      </summary>
      <Fold text={content ?? ''} lines={80} className="prose" />
    </details>
  );
}

function Judgement({ id, detail }: { id: string; detail: PageDetail }) {
  const state = stateOf(detail.result, false);
  return (
    <>
      <section id="patch" aria-label="Patch" tabIndex={-1}>
        <h2>Patch</h2>
        <Patches
          left={{
            name: `Taken (${state})`,
            patch: detail.patch,
            none: detail.patch === '' ? 'Empty.' : 'None was taken.',
          }}
          right={detail.gold === null ? null : { name: 'Gold', patch: detail.gold, none: '' }}
        />
        {detail.gold === null && (
          <p className="dim">
            The golden patch is unknown: the dataset is not readable at the path of the run.
          </p>
        )}
      </section>
      <section id="tests" aria-label="Tests" tabIndex={-1}>
        <h2>Tests</h2>
        {detail.report ? <Tests report={detail.report} /> : <p className="notice dim">There is no report.</p>}
        {detail.log_size !== null && (
          <OnDemand summary={`test log, ${bytes(detail.log_size)}`}>
            <Log id={id} />
          </OnDemand>
        )}
      </section>
    </>
  );
}

function Log({ id }: { id: string }) {
  const { value, error } = useLoaded<{ log: string | null }>(`${rolloutPath(id)}/log`);
  return value ? <Fold text={value.log ?? ''} lines={120} /> : <Notice error={error} />;
}

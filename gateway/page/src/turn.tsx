/** One turn: reasoning, answer, commands, observations and token ids. */
import type { CommandRecord, Message } from '@swefarm/shared';
import { terminalSafe } from '@swefarm/trajectories/terminalsafe';
import type { PageTokens, PageTurn } from '../../src/page/data.ts';
import { rolloutPath } from './api.ts';
import { Fold, OnDemand } from './fold.tsx';
import { bytes, decimal, duration, integer, words } from './format.ts';
import { useLoaded } from './load.ts';
import { Notice } from './notice.tsx';
import type { ShownTurn } from './turns.ts';

/** `line`: id of the turn's line; null: the main line. */
type Props = { rollout: string; line?: string | null; shown: ShownTurn; narrow?: boolean; differs?: boolean };

export function Turn({ rollout, line = null, shown, narrow = false, differs = false }: Props) {
  const { index, turn, answer, seen } = shown;
  const count = 'token_count' in turn ? turn.token_count : null;
  const id = narrow ? undefined : `turn-${index + 1}`;
  return (
    <article
      className={`turn${differs ? ' differs' : ''}`}
      id={id}
      tabIndex={-1}
      aria-label={`Turn ${index + 1}`}
    >
      <header>
        <h3>{index + 1}</h3>
        <span className="dim">
          {duration(turn.model_seconds)}
          {turn.usage &&
            ` · ${integer(turn.usage.prompt_tokens)} + ${integer(turn.usage.completion_tokens)} tokens`}
          {turn.policy_version.end !== null && ` · weights ${terminalSafe(turn.policy_version.end)}`}
        </span>
        {turn.finish_reason === 'length' && <span className="tag bad">cut by the token limit</span>}
        {'request' in turn && turn.request && <RequestTags request={turn.request} />}
        {differs && <span className="tag">differs from here</span>}
      </header>
      {answer && <Answer message={answer} commands={turn.commands} />}
      {turn.commands.map((command, at) => (
        <Command key={at} command={command} seen={seen[at] ?? null} />
      ))}
      {seen.slice(turn.commands.length).map((message, at) => (
        <div className="seen" key={at}>
          <Fold text={message.content ?? ''} />
        </div>
      ))}
      {count !== null && (
        <OnDemand summary={`${integer(count)} token ids and log-probabilities`}>
          <Tokens rollout={rollout} line={line} turn={index} />
        </OnDemand>
      )}
    </article>
  );
}

/** Shows how a request differs from a request that continues the previous answer. */
function RequestTags({ request }: { request: NonNullable<PageTurn['request']> }) {
  const { matched, repaired, repeated = 0, delivered } = request;
  return (
    <>
      {matched !== 'continued' && (
        <span className="tag">
          {matched === 'first' ? 'first prompt' : `rendered whole: ${words(matched)}`}
        </span>
      )}
      {repaired && <span className="tag">given back in another form</span>}
      {repeated > 0 && <span className="tag">asked {repeated + 1} times</span>}
      {!delivered && <span className="tag bad">not delivered</span>}
    </>
  );
}

function Answer({ message, commands }: { message: Message; commands: readonly CommandRecord[] }) {
  const text = withoutCommands(message.content ?? '', commands);
  const calls = (message.tool_calls ?? []).filter(
    (call) => call.function.name !== 'bash' || commands.length === 0,
  );
  return (
    <>
      {message.reasoning_content && (
        <details>
          <summary>thinks ({integer(message.reasoning_content.length)} characters)</summary>
          <Fold text={message.reasoning_content} lines={60} className="prose notice dim" />
        </details>
      )}
      {text !== '' && <Fold text={text} lines={30} className="prose" />}
      {calls.map((call) => (
        <Fold key={call.id} text={`${call.function.name}(${call.function.arguments})`} className="call" />
      ))}
    </>
  );
}

/** Removes the fenced blocks of commands, because the page shows each command with its observation. */
function withoutCommands(text: string, commands: readonly CommandRecord[]): string {
  let left = text;
  for (const { command } of commands) {
    left = left.replace(/```\w*\n([\s\S]*?)\n?```/, (block, code: string) =>
      code.trim() === command.trim() ? '' : block,
    );
  }
  return left.trim();
}

function Command({ command, seen }: { command: CommandRecord; seen: Message | null }) {
  const good = command.exit_code === 0;
  return (
    <div className="command">
      <div className="bar">
        <Fold text={`$ ${command.command}`} lines={12} className="ran" />
        <span className={good ? 'tag' : 'tag bad'}>
          {command.exit_code === null ? 'no exit code' : `exit ${command.exit_code}`}
        </span>
        <span className="dim">
          {duration(command.seconds)} · {bytes(command.output_bytes)}
          {command.note && ` · ${words(command.note)}`}
        </span>
      </div>
      {seen && (
        <div className="seen">
          <Fold text={seen.content ?? ''} />
        </div>
      )}
    </div>
  );
}

/** Maximum number of generated tokens that the page lists; a turn may have tens of thousands. */
const MOST = 4_000;
/** Log-probabilities below which a token gets a stronger mark. */
const MARKS = [-0.1, -1, -3];

/** Shows token ids and log-probabilities of one turn. Unlikely tokens are marked. */
function Tokens({ rollout, line, turn }: { rollout: string; line: string | null; turn: number }) {
  const query = line === null ? '' : `?line=${encodeURIComponent(line)}`;
  const path = `${rolloutPath(rollout)}/turns/${turn}/tokens${query}`;
  const { value, error } = useLoaded<{ tokens: PageTokens | null }>(path);
  if (!value?.tokens) return <Notice error={error} />;
  const { generation, log_probs, prompt, prefix_length } = value.tokens;
  const sum = log_probs.reduce((all, one) => all + one, 0);
  return (
    <div className="tokens">
      <p className="dim">
        Prompt: {integer(prefix_length)} tokens of earlier turns, then {integer(prompt.length)} new.
        Generated: {integer(generation.length)}, log-probability {decimal(sum, 2)} in all
        {log_probs.length > 0 && `, ${decimal(sum / log_probs.length, 3)} a token`}.
      </p>
      <ol className="flow mono" aria-label="Generated tokens">
        {generation.slice(0, MOST).map((token, at) => {
          const probability = log_probs[at];
          const level = MARKS.filter((bound) => (probability ?? 0) < bound).length;
          return (
            <li
              key={at}
              style={{ background: `color-mix(in srgb, var(--series-1) ${14 * level}%, transparent)` }}
            >
              {token} <small className="dim">{probability?.toFixed(2)}</small>
            </li>
          );
        })}
      </ol>
      {generation.length > MOST && <p className="dim">… and {integer(generation.length - MOST)} more</p>}
      <details>
        <summary>{integer(prompt.length)} new ids of the prompt</summary>
        <pre>{prompt.slice(0, MOST * 4).join(' ')}</pre>
      </details>
    </div>
  );
}

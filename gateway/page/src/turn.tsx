/** One turn: reasoning, answer, commands and observations. */
import type { CommandRecord, Message } from '@swefarm/shared';
import { terminalSafe } from '@swefarm/trajectories/terminalsafe';
import { useState } from 'react';
import { Fold } from './fold.tsx';
import { bytes, duration, integer, words } from './format.ts';
import { Tokens } from './tokens.tsx';
import type { ShownTurn } from './turns.ts';

type Props = { rollout: string; shown: ShownTurn; narrow?: boolean; differs?: boolean };

export function Turn({ rollout, shown, narrow = false, differs = false }: Props) {
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
      {count !== null && <OnDemand rollout={rollout} turn={index} count={count} />}
    </article>
  );
}

function Answer({ message, commands }: { message: Message; commands: readonly CommandRecord[] }) {
  const text = withoutCommands(message.content ?? '', commands);
  const calls = (message.tool_calls ?? []).filter((call) => call.function.name !== 'bash');
  return (
    <>
      {message.reasoning_content && (
        <details className="thinks">
          <summary>thinks ({integer(message.reasoning_content.length)} characters)</summary>
          <Fold text={message.reasoning_content} lines={60} className="prose" />
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

function OnDemand({ rollout, turn, count }: { rollout: string; turn: number; count: number }) {
  const [open, setOpen] = useState(false);
  return (
    <details className="ondemand" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{integer(count)} token ids and log-probabilities</summary>
      {open && <Tokens rollout={rollout} turn={turn} />}
    </details>
  );
}

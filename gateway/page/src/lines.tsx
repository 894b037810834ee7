/** The lines of a rollout: requests of an agent that comes as a program, each of which continues the one before. */
import { integer } from './format.ts';
import type { ShownLine } from './turns.ts';

type Props = { lines: readonly ShownLine[]; chosen: ShownLine; choose: (id: string) => void };

/** A list of the lines, of which one is shown. Nothing if there is only one. */
export function Lines({ lines, chosen, choose }: Props) {
  if (lines.length < 2) return null;
  return (
    <nav aria-label="Lines" className="lines flow">
      {lines.map((line) => (
        <button
          key={line.id}
          type="button"
          aria-current={line === chosen ? 'true' : undefined}
          onClick={() => choose(line.id)}
        >
          <b>{line.id}</b> {line.kind}
          <span className="dim">
            {' '}
            {integer(line.turns.length)} {line.turns.length === 1 ? 'turn' : 'turns'}
            {line.from && `, from ${line.from.line} after ${line.from.turns}`}
          </span>
          {line.masked !== null && (
            <>
              {' '}
              <span className="tag bad">not trained</span>
            </>
          )}
        </button>
      ))}
    </nav>
  );
}

/** Shows the kind and the start of the line, and why it is not trained on. */
export function LineNote({ line, choose }: Pick<Props, 'choose'> & { line: ShownLine }) {
  const { from, masked } = line;
  return (
    <p className="notice dim">
      {KINDS[line.kind]}
      {from && (
        <>
          {' '}
          It continues{' '}
          <button type="button" className="link" onClick={() => choose(from.line)}>
            {from.line}
          </button>{' '}
          after {integer(from.turns)} turns.
        </>
      )}
      {masked !== null && ` Its turns are not trained on: ${masked}.`}
    </p>
  );
}

const KINDS: Readonly<Record<ShownLine['kind'], string>> = {
  main: 'The agent works on the task.',
  subagent: 'A sub-agent works for the task, with a prompt of its own.',
  summary: 'The agent condenses its history.',
  side: 'A side request, such as a title.',
  abandoned: 'The agent did not continue the last answer, but asked for another one.',
  foreign: 'Another program than the agent asked.',
};

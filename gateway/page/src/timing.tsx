/** Where the time of a rollout went, as one bar with its numbers below. */
import type { Seconds } from '@swefarm/shared';
import { duration } from './format.ts';

type Part = { name: string; seconds: number };

/** The stages in their order; the time of a stage inside another one is subtracted from that one. */
function parts(seconds: Seconds): Part[] {
  const { evaluation_start = 0, tests = 0 } = seconds;
  const all: Part[] = [
    { name: 'queued', seconds: seconds.queued },
    { name: 'image', seconds: seconds.image },
    { name: 'sandbox', seconds: seconds.sandbox },
    { name: 'model', seconds: seconds.model },
    { name: 'commands', seconds: seconds.command },
    { name: 'rest of the agent', seconds: seconds.agent - seconds.model - seconds.command },
    { name: 'patch', seconds: seconds.patch },
    { name: 'clean container', seconds: evaluation_start },
    { name: 'tests', seconds: tests },
    { name: 'rest of the evaluation', seconds: seconds.evaluation - evaluation_start - tests },
  ];
  return all.filter((part) => part.seconds > 0.0005);
}

const classOf = (name: string): string => `stage-${name.replaceAll(' ', '-')}`;

export function Timing({ seconds }: { seconds: Seconds }) {
  const shown = parts(seconds);
  const sum = shown.reduce((all, part) => all + part.seconds, 0);
  return (
    <div className="timing">
      <div className="stages" aria-hidden="true">
        {shown.map(({ name, seconds: spent }) => (
          <i
            key={name}
            className={classOf(name)}
            style={{ width: `${(100 * spent) / sum}%` }}
            title={`${name} ${duration(spent)}`}
          />
        ))}
      </div>
      <ul>
        {shown.map(({ name, seconds: spent }) => (
          <li key={name}>
            <i className={classOf(name)} aria-hidden="true" />
            {name} <b>{duration(spent)}</b>
          </li>
        ))}
      </ul>
    </div>
  );
}

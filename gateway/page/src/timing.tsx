/** The times of a rollout's stages, as a bar and as numbers. */
import type { Seconds } from '@swefarm/shared';
import { duration } from './format.ts';

/** Returns the stages in order, with colours. The time of a nested stage is subtracted from the outer stage. */
function parts(seconds: Seconds): [name: string, seconds: number, background: string][] {
  const { evaluation_start = 0, tests = 0, model, command } = seconds;
  return [
    ['queued', seconds.queued, 'light-dark(#d5d9df, #3b434e)'],
    ['image', seconds.image, 'light-dark(#b4bac4, #566070)'],
    ['sandbox', seconds.sandbox, 'light-dark(#8f98a6, #758194)'],
    ['model', model, 'light-dark(#3b7fc4, #4d8fd1)'],
    ['commands', command, 'light-dark(#2aa198, #2f9c93)'],
    ['rest of the agent', seconds.agent - model - command, 'light-dark(#a6c8e8, #2a4a6b)'],
    ['patch', seconds.patch, 'light-dark(#8c6bb1, #9477bd)'],
    ['clean container', evaluation_start, 'light-dark(#e3c878, #8a7330)'],
    ['tests', tests, 'light-dark(#c58b1f, #c99636)'],
    ['rest of the evaluation', seconds.evaluation - evaluation_start - tests, 'light-dark(#efe0b5, #5c4e24)'],
  ];
}

export function Timing({ seconds }: { seconds: Seconds }) {
  const shown = parts(seconds).filter(([, spent]) => spent > 0.0005);
  const sum = shown.reduce((all, [, spent]) => all + spent, 0);
  return (
    <div className="timing">
      <div className="progress" aria-hidden="true">
        {shown.map(([name, spent, background]) => (
          <i
            key={name}
            style={{ width: `${(100 * spent) / sum}%`, background }}
            title={`${name} ${duration(spent)}`}
          />
        ))}
      </div>
      <ul className="flow dim">
        {shown.map(([name, spent, background]) => (
          <li key={name}>
            <i style={{ background }} aria-hidden="true" /> {name} <b>{duration(spent)}</b>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** The state of a rollout as colour, sign and word: never by colour alone. */
import { SIGNS, type State } from './rows.ts';

export const Mark = ({ state, word = true }: { state: State; word?: boolean }) => (
  <span className={`state ${state}`}>
    <span className="sign" aria-hidden={word}>
      {SIGNS[state]}
    </span>
    {word ? state : <span className="visually-hidden">{state}</span>}
  </span>
);

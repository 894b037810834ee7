/** The state of a rollout as colour, sign and word. */
import { SIGNS, type State } from './rows.ts';

export const Mark = ({ state }: { state: State }) => (
  <span className={`state ${state}`}>
    <span className="sign" aria-hidden="true">
      {SIGNS[state]}
    </span>
    {state}
  </span>
);

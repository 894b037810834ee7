/** The filter of a run's rollouts, stored in the address so that a user can share the view. */
import { countNames } from '@swefarm/trajectories/tally';
import { integer, words } from './format.ts';
import { Mark } from './mark.tsx';
import { replaceHash, withValue } from './route.ts';
import { CHOICES, type Choice, type Filter, passes, type Row, STATES, statesOf } from './rows.ts';

type Props = {
  rows: readonly Row[];
  filter: Filter;
  query: URLSearchParams;
  shown: number;
  to: (query: URLSearchParams) => string;
};

export function Filters({ rows, filter, query, shown, to }: Props) {
  const set = (name: string, value: string): void => replaceHash(to(withValue(query, name, value)));
  const chosen = statesOf(query);
  const toggle = (state: string): void => {
    const next = STATES.filter((one) => (one === state) !== chosen.has(one));
    set('state', next.join(','));
  };
  const states = countBy(rows, filter, 'state', (row) => row.state);
  const any = query.size > 0;
  return (
    <form className="filters" aria-label="Filter" onSubmit={(event) => event.preventDefault()}>
      <fieldset>
        <legend className="visually-hidden">Outcome</legend>
        {STATES.filter((state) => states.has(state) || chosen.has(state)).map((state) => (
          <button key={state} type="button" aria-pressed={chosen.has(state)} onClick={() => toggle(state)}>
            <Mark state={state} /> <b>{integer(states.get(state) ?? 0)}</b>
          </button>
        ))}
      </fieldset>
      {CHOICES.map((choice) => (
        <Select
          key={choice.name}
          {...choice}
          counts={countBy(rows, filter, choice.name, choice.of)}
          value={query.get(choice.name) ?? ''}
          onChoose={(value) => set(choice.name, value)}
        />
      ))}
      <label>
        <span className="visually-hidden">Instance or reason</span>
        <input
          type="search"
          placeholder="instance, reason"
          value={query.get('text') ?? ''}
          onChange={(event) => set('text', event.target.value)}
        />
      </label>
      <output className="dim" aria-live="polite">
        {any ? `${integer(shown)} of ${integer(rows.length)}` : `${integer(rows.length)} rollouts`}
      </output>
      {any && (
        <button type="button" className="quiet" onClick={() => replaceHash(to(new URLSearchParams()))}>
          Show all
        </button>
      )}
    </form>
  );
}

type SelectProps = Choice & {
  counts: Map<string, number>;
  value: string;
  onChoose: (value: string) => void;
};

function Select({ name, label, counts, value, onChoose }: SelectProps) {
  const names = [...new Set([...counts.keys(), value])].filter(Boolean).sort();
  if (names.length === 0) return null;
  return (
    <select aria-label={label} value={value} onChange={(event) => onChoose(event.target.value)}>
      <option value="">any {label}</option>
      {names.map((one) => (
        <option key={one} value={one}>
          {name === 'repo' ? one : words(one)} ({integer(counts.get(one) ?? 0)})
        </option>
      ))}
    </select>
  );
}

/** Counts rows by the result of `of`. Only rows that pass all conditions of the filter except `but` count. */
function countBy(rows: readonly Row[], filter: Filter, but: string, of: (row: Row) => string) {
  const passed = rows.filter((row) => passes(row, filter, but));
  return new Map(Object.entries(countNames(passed.map(of))));
}

/** The filter of a run's rollouts, stored in the address so that a user can share the view. */
import { integer, words } from './format.ts';
import { replaceHash } from './route.ts';
import { type Filter, passes, type Row, SIGNS, STATES, type State } from './rows.ts';

type Props = {
  rows: readonly Row[];
  filter: Filter;
  query: URLSearchParams;
  shown: number;
  to: (query: URLSearchParams) => string;
};

export function Filters({ rows, filter, query, shown, to }: Props) {
  const set = (name: string, value: string): void => {
    const next = new URLSearchParams(query);
    if (value === '') next.delete(name);
    else next.set(name, value);
    replaceHash(to(next));
  };
  const toggle = (state: State): void => {
    const next = new Set(filter.states);
    if (!next.delete(state)) next.add(state);
    set('state', STATES.filter((one) => next.has(one)).join(','));
  };
  const states = countBy(rows, filter, 'states', (row) => row.state);
  const any = query.size > 0;
  return (
    <form className="filters" aria-label="Filter" onSubmit={(event) => event.preventDefault()}>
      <fieldset>
        <legend className="visually-hidden">Outcome</legend>
        {STATES.filter((state) => states.has(state) || filter.states.has(state)).map((state) => (
          <button
            key={state}
            type="button"
            className={`chip ${state}`}
            aria-pressed={filter.states.has(state)}
            onClick={() => toggle(state)}
          >
            <span className="sign" aria-hidden="true">
              {SIGNS[state]}
            </span>
            {state} <b>{integer(states.get(state) ?? 0)}</b>
          </button>
        ))}
      </fieldset>
      <Choice name="repo" filter={filter} rows={rows} of={(row) => row.repo} set={set} />
      <Choice name="exit" filter={filter} rows={rows} of={(row) => row.result?.exit ?? ''} set={set} />
      <Choice name="failure" filter={filter} rows={rows} of={(row) => row.result?.failure ?? ''} set={set} />
      <label>
        <span className="visually-hidden">Instance or reason</span>
        <input
          type="search"
          placeholder="instance, reason"
          value={filter.text}
          onChange={(event) => set('text', event.target.value)}
        />
      </label>
      <output aria-live="polite">
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

const LABELS = { repo: 'repository', exit: 'exit status', failure: 'failure' };

function Choice(props: {
  name: 'repo' | 'exit' | 'failure';
  filter: Filter;
  rows: readonly Row[];
  of: (row: Row) => string;
  set: (name: string, value: string) => void;
}) {
  const { name, filter, rows, of, set } = props;
  const counts = countBy(rows, filter, name, of);
  counts.delete('');
  if (counts.size < 1 && filter[name] === '') return null;
  const names = [...new Set([...counts.keys(), ...(filter[name] ? [filter[name]] : [])])].sort();
  return (
    <select
      aria-label={LABELS[name]}
      value={filter[name]}
      onChange={(event) => set(name, event.target.value)}
    >
      <option value="">any {LABELS[name]}</option>
      {names.map((value) => (
        <option key={value} value={value}>
          {name === 'repo' ? value : words(value)} ({integer(counts.get(value) ?? 0)})
        </option>
      ))}
    </select>
  );
}

/** Counts rows by the result of `of`. Only rows that pass all conditions of the filter except `but` count. */
function countBy<T>(
  rows: readonly Row[],
  filter: Filter,
  but: keyof Filter,
  of: (row: Row) => T,
): Map<T, number> {
  const counts = new Map<T, number>();
  for (const row of rows) {
    if (!passes(row, filter, but)) continue;
    const value = of(row);
    counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  return counts;
}

/** Shows the branches of a rollout or a run as a tree, with the mean reward behind each turn. */
import { mean } from '@swefarm/trajectories/tally';
import { terminalSafe } from '@swefarm/trajectories/terminalsafe';
import type { PageBranches } from '../../src/page/data.ts';
import { decimal, integer } from './format.ts';
import { useLoaded } from './load.ts';
import { nameOf, toRollout } from './route.ts';
import { SIGNS, stateOf } from './rows.ts';

const AGAIN_MS = 10_000;

type Branch = PageBranches['branches'][number];
/** Runs of branches by the rollout that they continue. */
type Tree = ReadonlyMap<string, readonly Branch[]>;

/** Shows nothing without branches. @param id id of a run or a rollout */
export function Branches({ id }: { id: string }) {
  const { value } = useLoaded<PageBranches>(`branches/${encodeURIComponent(id)}`, () => AGAIN_MS);
  if (!value) return null;
  const isRollout = id.includes('.');
  const tree: Tree = Map.groupBy(value.branches, ({ rollout_id }) => rollout_id);
  const roots = isRollout ? [id] : [...tree.keys()].filter((parent) => parent.startsWith(`${id}.`)).sort();
  const count = value.branches.reduce((sum, { group_size: size }) => sum + size, 0);
  return (
    <>
      {value.of && !isRollout && <Parent of={value.of} />}
      {count > 0 && (
        <section aria-label="Branches">
          <h2>
            Branches <span className="dim">{integer(count)}</span>
          </h2>
          {isRollout ? (
            <Points of={id} tree={tree} />
          ) : (
            <ul className="tree">
              {roots.map((root) => (
                <Below key={root} of={root} name={nameOf(root)} tree={tree} />
              ))}
            </ul>
          )}
        </section>
      )}
    </>
  );
}

const Parent = ({ of: { rollout_id: parent, turn } }: { of: NonNullable<PageBranches['of']> }) => (
  <p className="dim">
    branches of <a href={toRollout(parent)}>{terminalSafe(nameOf(parent))}</a> behind turn {turn}
  </p>
);

const Below = ({ of, name, tree }: { of: string; name: string; tree: Tree }) => (
  <li>
    <a className="mono" href={toRollout(of)}>
      {terminalSafe(name)}
    </a>
    <Points of={of} tree={tree} />
  </li>
);

/** Shows the turns after which branches continue a rollout, in order. */
function Points({ of, tree }: { of: string; tree: Tree }) {
  const points = [...Map.groupBy(tree.get(of) ?? [], ({ turn }) => turn)].sort(([a], [b]) => a - b);
  return (
    <ul className="tree">
      {points.map(([turn, runs]) => (
        <Point key={turn} turn={turn} runs={runs} tree={tree} />
      ))}
    </ul>
  );
}

function Point({ turn, runs, tree }: { turn: number; runs: readonly Branch[]; tree: Tree }) {
  const branches = runs.flatMap((run) => rolloutsOf(run));
  const rewards = branches.flatMap(({ result }) => result?.reward ?? []);
  const below = branches.filter(({ id }) => tree.has(id));
  return (
    <li>
      <span className="point">
        <span>behind turn {turn}</span>
        <span className="right">
          {rewards.length > 0 ? (
            <>
              mean reward <b>{decimal(mean(rewards), 2)}</b>
            </>
          ) : (
            <span className="dim">no reward yet</span>
          )}
        </span>
        <span className="dim">
          {rewards.length} of {branches.length} rewarded
        </span>
        <span className="squares">
          {branches.map(({ id, index, result, state }) => {
            const title = `#${index}: ${state}${result?.reward == null ? '' : `, reward ${result.reward}`}`;
            return (
              <a key={id} href={toRollout(id)} className={`square ${state}`} title={title} aria-label={title}>
                {SIGNS[state]}
              </a>
            );
          })}
        </span>
      </span>
      {below.length > 0 && (
        <ul className="tree">
          {below.map(({ id, index }) => (
            <Below key={id} of={id} name={`#${index}`} tree={tree} />
          ))}
        </ul>
      )}
    </li>
  );
}

/** Returns all rollouts of a run of branches, including rollouts without a result. */
function rolloutsOf({ run_id, instance_id, group_size, rollouts }: Branch) {
  const ended = new Map(rollouts.map((one) => [one.index, one]));
  const indices = new Set([...Array(group_size).keys(), ...ended.keys()]);
  return [...indices].map((index) => {
    const result = ended.get(index) ?? null;
    return { id: `${run_id}.${instance_id}.${index}`, index, result, state: stateOf(result, false) };
  });
}
